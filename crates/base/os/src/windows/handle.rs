//! Owned handles, and processes opened by id.

use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION,
};

/// Takes ownership of a handle that a call returned, or returns the last error if the call failed.
///
/// # Safety
/// The handle must be valid and owned by the caller, or be null or `INVALID_HANDLE_VALUE`.
#[expect(unsafe_code, reason = "the caller vouches for the handle")]
pub(crate) unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller guarantees that the handle is valid and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Opens a process for queries, which usually requires only that it belongs to the same user.
pub(crate) fn process(pid: u32) -> io::Result<OwnedHandle> {
    opened(pid, PROCESS_QUERY_LIMITED_INFORMATION)
}

/// Opens a process with the given access rights.
#[expect(unsafe_code, reason = "a call of the system")]
pub(crate) fn opened(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only, and gives a new handle or null.
    unsafe { owned(OpenProcess(rights, 0, pid)) }
}

/// Converts the result of a call to a `Result`.
pub(crate) fn worked(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
