//! Consoles. Refuses to write to one.

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent, GetConsoleScreenBufferInfo,
};

use crate::windows::handle::worked;

/// How many columns the window of a console has; `None` for what is none.
pub fn columns(console: BorrowedHandle<'_>) -> Option<usize> {
    size(console).map(|(_, columns)| columns)
}

/// Rows and columns of the window of a console; `None` for what is none.
#[expect(unsafe_code, reason = "a call of the system, which fills a structure")]
pub fn size(console: BorrowedHandle<'_>) -> Option<(usize, usize)> {
    let mut information = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: the handle is open, and there is room for the structure.
    worked(unsafe { GetConsoleScreenBufferInfo(console.as_raw_handle(), &raw mut information) }).ok()?;
    let window = information.srWindow;
    let length = |from: i16, to: i16| usize::try_from(i32::from(to) - i32::from(from) + 1).ok();
    Some((length(window.Top, window.Bottom)?, length(window.Left, window.Right)?))
}

/// Types Ctrl-Break for a process that was started as a group of its own, and for all that it has started.
///
/// # Errors
/// It is at no console, or at another one than ours.
#[expect(unsafe_code, reason = "a call of the system")]
pub fn interrupt(group: u32) -> io::Result<()> {
    // SAFETY: it takes numbers only.
    worked(unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) })
}
