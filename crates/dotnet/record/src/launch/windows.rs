//! Signal forwarding on Windows: console events reach the command anyway.

use std::convert::Infallible;
use std::future;
use std::io;

use tokio::process::Child;

/// The signals that are forwarded: none.
#[derive(Debug)]
pub(super) struct Signals;

pub(super) struct Sent(Infallible);

impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "the same as on Unix")]
    pub(super) async fn next(&mut self) -> Sent {
        future::pending().await
    }
}

impl Sent {
    pub(super) fn pass_on(self, _child: &Child) {
        match self.0 {}
    }
}

/// Kills a command, because it can't be requested to exit.
pub(super) fn end(child: &mut Child) {
    // A command that has just exited needs no signal.
    let _ = child.start_kill();
}
