//! Stops the program on Unix: by a signal.

use std::io;
use std::process::{Child, Command, Stdio};

use runtap_diag_server::EventPipe;
use runtap_events::CpuSamples;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;
use crate::work::WorkerPosition;

/// Waits for SIGTERM or SIGINT, which are handled from now on.
pub(crate) fn stop_requested() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Waits for SIGTERM. SIGINT is handled but ignored.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => {}
            }
        }
    })
}

/// Samples the threads of this process for sessions that have enabled it, until dropped.
pub(crate) fn samples(pipe: &EventPipe) -> Result<CpuSamples, Error> {
    Ok(CpuSamples::start(pipe)?)
}

/// Does nothing: the sampler unwinds stacks itself.
#[inline(always)]
pub(crate) fn at(_place: WorkerPosition) {}

/// Returns the standard input of a child process.
pub(crate) fn stdin() -> Stdio {
    Stdio::null()
}

/// Prepares a command to be stopped by a signal: nothing to do.
pub(crate) fn prepare(_command: &mut Command) {}

/// Requests a child process to stop.
#[expect(clippy::needless_pass_by_ref_mut, reason = "the same as on Windows")]
pub(crate) fn terminate(child: &mut Child) {
    // A process that has exited needs no signal.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
}
