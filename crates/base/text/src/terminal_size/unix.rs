//! The size of a terminal, on Unix.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Returns the rows and columns of stdout, or `None` if stdout is not a terminal.
pub fn size() -> Option<(usize, usize)> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok())??;
    // A size of 0 means unknown: assume 24 rows of 80 columns.
    let or = |given: u16, usual| if given == 0 { usual } else { usize::from(given) };
    Some((or(size.ws_row, 24), or(size.ws_col, 80)))
}

/// Returns the width of a stream in columns; `None` if the stream is not a terminal or its width is unknown.
pub(super) fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
