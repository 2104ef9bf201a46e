//! How large a console is.

use std::io::IsTerminal;
use std::os::windows::io::AsHandle;

/// How many columns a console has; `None` for what is none, and for one that does not say.
#[expect(clippy::needless_pass_by_value, reason = "the same as on Unix")]
pub(super) fn columns(stream: impl AsHandle + IsTerminal) -> Option<usize> {
    stream.is_terminal().then(|| runtap_windows::console::columns(stream.as_handle()))?
}
