//! Signal forwarding on Unix.

use std::fs::File;
use std::future;
use std::io;
use std::task::Poll;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind};

use crate::stops::is_ignored;

/// Whether the terminal sends the signal to the command itself when its key is typed.
type Typed = bool;

/// The signals that are forwarded.
#[derive(Debug)]
pub(super) struct Signals(Vec<(Signal, Typed, unix::Signal)>);

/// A received signal.
pub(super) struct Sent(Signal, Typed);

impl Signals {
    /// Listens for the signals, except for a hang-up that is ignored.
    pub(super) fn listen() -> io::Result<Self> {
        let all = [
            (Signal::INT, true),
            (Signal::QUIT, true),
            (Signal::TERM, false),
            (Signal::HUP, false),
            (Signal::USR1, false),
            (Signal::USR2, false),
        ];
        let mut listening = Vec::new();
        for (signal, typed) in all {
            let kind = SignalKind::from_raw(signal.as_raw());
            if signal == Signal::HUP && is_ignored(kind) {
                continue;
            }
            listening.push((signal, typed, unix::signal(kind)?));
        }
        Ok(Self(listening))
    }

    /// Waits for the next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> Sent {
        future::poll_fn(|cx| {
            for (signal, typed, stream) in &mut self.0 {
                if stream.poll_recv(cx).is_ready() {
                    return Poll::Ready(Sent(*signal, *typed));
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Sent {
    /// Forwards the signal to a command, unless the terminal has sent it to the command too.
    pub(super) fn pass_on(self, child: &Child) {
        let Self(signal, typed) = self;
        if !(typed && is_in_foreground()) {
            send(child, signal);
        }
    }
}

/// Requests a command to exit.
#[expect(clippy::needless_pass_by_ref_mut, reason = "the same as on Windows")]
pub(super) fn end(child: &mut Child) {
    send(child, Signal::TERM);
}

/// Sends a signal. The process id is valid until the exit status has been read.
fn send(child: &Child, signal: Signal) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // A command that has just exited needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// Whether this process is in the foreground of a terminal, so that signals of keys also reach the command.
fn is_in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
