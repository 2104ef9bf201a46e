//! Consoles. Refuses to write to one.

use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::System::Console::{CONSOLE_SCREEN_BUFFER_INFO, GetConsoleScreenBufferInfo};

use crate::handle::worked;

/// How many columns the window of a console has; `None` for what is none.
#[expect(unsafe_code, reason = "a call of the system, which fills a structure")]
pub fn columns(console: BorrowedHandle<'_>) -> Option<usize> {
    let mut information = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: the handle is open, and there is room for the structure.
    worked(unsafe { GetConsoleScreenBufferInfo(console.as_raw_handle(), &raw mut information) }).ok()?;
    let window = information.srWindow;
    usize::try_from(i32::from(window.Right) - i32::from(window.Left) + 1).ok()
}
