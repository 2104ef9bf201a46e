//! How large a terminal is, on Unix.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Rows and columns of the terminal to which results go; `None` where it is none.
pub(crate) fn size() -> Option<(usize, usize)> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok())??;
    // One that does not say is one of 24 rows.
    let or = |given: u16, usual| if given == 0 { usual } else { usize::from(given) };
    Some((or(size.ws_row, 24), or(size.ws_col, 80)))
}

/// How many columns a terminal has; `None` for what is no terminal, and for one that does not say.
pub(super) fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
