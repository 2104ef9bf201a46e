//! Processes on Windows. What is typed at a console, all of its processes are told: there is nothing to pass on.

use std::process::ExitStatus;
use std::time::Duration;

use runtap_windows::process::Running;
use tokio::process::Child;
use tokio::sync::oneshot;

use super::Stop;

/// How long it waits before it looks whether anybody still wants to know.
const A_WHILE: Duration = Duration::from_secs(1);

/// How a command has ended, in a number.
pub(super) fn number(status: ExitStatus) -> i64 {
    status.code().map_or(-1, i64::from)
}

/// The command has heard it too.
pub(super) fn pass_on(_child: &Child, _stop: Stop) {}

/// Whether what is typed reaches the command too.
pub fn is_in_foreground() -> bool {
    true
}

/// A process that can be waited for.
pub(super) struct Watched(Running);

impl Watched {
    pub(super) fn new(pid: u32) -> Option<Self> {
        Running::open(pid).ok().map(Self)
    }

    /// Waits for its end, as long as somebody waits for the answer.
    pub(super) fn has_ended(&self, answer: &oneshot::Sender<()>) -> bool {
        while !answer.is_closed() {
            match self.0.ends_within(A_WHILE) {
                Ok(false) => {}
                Ok(true) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}
