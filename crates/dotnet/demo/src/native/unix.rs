//! How the program is told to end, on Unix: by a signal.

use std::io;
use std::process::{Child, Command, Stdio};

use runtap_diag_server::EventPipe;
use runtap_events::CpuSamples;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;
use crate::work::Place;

/// Ready when SIGTERM or SIGINT has come. They are heard from now on.
pub(crate) fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Ready when SIGTERM has come; SIGINT is heard, and means nothing.
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

/// Samples the threads of this process for the sessions that want it, until it is dropped.
pub(crate) fn samples(pipe: &EventPipe) -> Result<CpuSamples, Error> {
    Ok(CpuSamples::start(pipe)?)
}

/// The worker is somewhere else: the sampler finds out by itself.
#[inline(always)]
pub(crate) fn at(_place: Place) {}

/// What a program that is started reads.
pub(crate) fn stdin() -> Stdio {
    Stdio::null()
}

/// How a program learns that it is told by a signal: it knows.
pub(crate) fn prepare(_command: &mut Command) {}

/// Tells a program that was started.
#[expect(clippy::needless_pass_by_ref_mut, reason = "the same as on Windows")]
pub(crate) fn terminate(child: &mut Child) {
    // A process that is gone needs no signal.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
}
