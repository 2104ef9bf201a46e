//! How large a console is.

use std::io::{self, IsTerminal};
use std::os::windows::io::AsHandle;

/// Rows and columns of the console to which results go; `None` where it is none.
pub(crate) fn size() -> Option<(usize, usize)> {
    let out = io::stdout();
    out.is_terminal().then(|| runtap_os::windows::console::size(out.as_handle()))?
}

/// How many columns a console has; `None` for what is none, and for one that does not say.
#[expect(clippy::needless_pass_by_value, reason = "the same as on Unix")]
pub(super) fn columns(stream: impl AsHandle + IsTerminal) -> Option<usize> {
    stream.is_terminal().then(|| runtap_os::windows::console::columns(stream.as_handle()))?
}
