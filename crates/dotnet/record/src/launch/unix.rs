//! Signals of a command on Unix.

use std::fs::File;
use std::future;
use std::io;
use std::task::Poll;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind};

use crate::stops::is_ignored;

/// Whether a terminal sends the signal to the command itself when its key is typed.
type Typed = bool;

/// Every signal that is sent to a program to tell it something.
#[derive(Debug)]
pub(super) struct Signals(Vec<(Signal, Typed, unix::Signal)>);

/// One that we were sent.
pub(super) struct Sent(Signal, Typed);

impl Signals {
    /// A hang-up that is ignored stays so.
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

    /// The next one. Cancel safe.
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
    /// Passes it on to a command, unless the terminal has sent it to the command too.
    pub(super) fn pass_on(self, child: &Child) {
        let Self(signal, typed) = self;
        if !(typed && is_in_foreground()) {
            send(child, signal);
        }
    }
}

/// Asks a command to end.
#[expect(clippy::needless_pass_by_ref_mut, reason = "the same as on Windows")]
pub(super) fn end(child: &mut Child) {
    send(child, Signal::TERM);
}

/// Its id is its own as long as it was not waited for.
fn send(child: &Child, signal: Signal) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // One that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// Whether we are in the foreground of a terminal: what is typed there reaches the command too.
fn is_in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
