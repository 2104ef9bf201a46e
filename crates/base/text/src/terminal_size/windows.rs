//! The size of a console, on Windows.

use std::io::{self, IsTerminal};
use std::os::windows::io::AsHandle;

/// Returns the rows and columns of stdout, or `None` if stdout is not a console.
pub fn size() -> Option<(usize, usize)> {
    let out = io::stdout();
    out.is_terminal().then(|| runtap_os::windows::console::size(out.as_handle()))?
}

/// Returns the width of a stream in columns; `None` if the stream is not a console or its width is unknown.
#[expect(clippy::needless_pass_by_value, reason = "the same as on Unix")]
pub(super) fn columns(stream: impl AsHandle + IsTerminal) -> Option<usize> {
    stream.is_terminal().then(|| runtap_os::windows::console::columns(stream.as_handle()))?
}
