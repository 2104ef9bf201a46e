//! The size of the terminal that text is laid out for.

#[cfg_attr(unix, path = "terminal_size/unix.rs")]
#[cfg_attr(windows, path = "terminal_size/windows.rs")]
mod native;

use std::io;

pub use self::native::size;

/// Returns the width of stdout in columns; `None` if it is not a terminal or its width is unknown.
pub fn stdout_columns() -> Option<usize> {
    native::columns(io::stdout())
}

/// Returns the width of stderr in columns; `None` if it is not a terminal or its width is unknown.
pub fn stderr_columns() -> Option<usize> {
    native::columns(io::stderr())
}
