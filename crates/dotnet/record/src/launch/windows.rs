//! A command on Windows: what is typed at a console, or told to its programs, reaches the command too.

use std::convert::Infallible;
use std::future;
use std::io;

use tokio::process::Child;

/// What would have to be passed on: nothing.
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

/// Ends a command: there is no asking.
pub(super) fn end(child: &mut Child) {
    // One that has just ended needs nothing.
    let _ = child.start_kill();
}
