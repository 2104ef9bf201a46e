//! Handles that are closed again. Refuses to share them.

use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION,
};

/// What a call has opened; its error, where it has opened nothing.
///
/// # Safety
/// The handle is valid and nobody else's, or null or `INVALID_HANDLE_VALUE`.
#[expect(unsafe_code, reason = "the caller vouches for the handle")]
pub(crate) unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: valid and nobody else's, says the caller.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A process, to look at. That takes no rights over it but being of the same user, as a rule.
pub(crate) fn process(pid: u32) -> io::Result<OwnedHandle> {
    opened(pid, PROCESS_QUERY_LIMITED_INFORMATION)
}

/// A process, for what these rights allow.
#[expect(unsafe_code, reason = "a call of the system")]
pub(crate) fn opened(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only, and gives a new handle or null.
    unsafe { owned(OpenProcess(rights, 0, pid)) }
}

/// Whether a call has worked, by what it gives.
pub(crate) fn worked(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
