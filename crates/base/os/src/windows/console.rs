//! Console windows.

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent, GetConsoleScreenBufferInfo,
};

use crate::windows::handle::worked;

/// Returns the width of a console window in columns. `None` if the handle is not a console.
pub fn columns(console: BorrowedHandle<'_>) -> Option<usize> {
    size(console).map(|(_, columns)| columns)
}

/// Returns the numbers of rows and columns of a console window. `None` if the handle is not a console.
#[expect(unsafe_code, reason = "a call of the system, which fills a structure")]
pub fn size(console: BorrowedHandle<'_>) -> Option<(usize, usize)> {
    let mut information = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: the handle is open, and there is room for the structure.
    worked(unsafe { GetConsoleScreenBufferInfo(console.as_raw_handle(), &raw mut information) }).ok()?;
    let window = information.srWindow;
    let length = |from: i16, to: i16| usize::try_from(i32::from(to) - i32::from(from) + 1).ok();
    Some((length(window.Top, window.Bottom)?, length(window.Left, window.Right)?))
}

/// Sends Ctrl-Break to a process that was started as the leader of a process group, and to its descendants.
///
/// # Errors
/// If the process is not attached to the console of this process.
#[expect(unsafe_code, reason = "a call of the system")]
pub fn interrupt(group: u32) -> io::Result<()> {
    // SAFETY: it takes numbers only.
    worked(unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) })
}
