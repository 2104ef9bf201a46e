//! The user of a process, as a security identifier (SID).

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;

use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::ConvertSidToStringSidW;
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TOKEN_USER, TokenUser};
use windows_sys::Win32::System::Threading::OpenProcessToken;

use crate::windows::handle::{owned, process, worked};

/// Maximum length of a textual SID (`S-1-` and 15 numbers), rounded up.
const LONGEST_SID: usize = 256;

/// Returns the SID of a process's user in textual form (`S-1-5-21-…`).
///
/// # Errors
/// If the process has exited or may not be accessed.
#[expect(unsafe_code, reason = "calls of the system, which fill a buffer")]
pub(crate) fn sid_of(pid: u32) -> io::Result<String> {
    let process = process(pid)?;
    let mut raw: HANDLE = ptr::null_mut();
    // SAFETY: the process is open, and the call writes one handle to where there is one.
    worked(unsafe { OpenProcessToken(process.as_raw_handle(), TOKEN_QUERY, &raw mut raw) })?;
    // SAFETY: the call succeeded, so the handle is valid and owned by this function.
    let token: OwnedHandle = unsafe { owned(raw) }?;
    let mut needed = 0;
    // SAFETY: with a buffer size of zero only the required size is written.
    unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, ptr::null_mut(), 0, &raw mut needed) };
    // An array of `u64` for alignment.
    let size = usize::try_from(needed).map_err(io::Error::other)?.max(size_of::<TOKEN_USER>());
    let mut room = vec![0u64; size.div_ceil(size_of::<u64>())];
    let bytes = u32::try_from(room.len() * size_of::<u64>()).map_err(io::Error::other)?;
    // SAFETY: the buffer has `bytes` bytes.
    worked(unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            room.as_mut_ptr().cast(),
            bytes,
            &raw mut needed,
        )
    })?;
    // SAFETY: the call wrote a TOKEN_USER, which points into this buffer; the buffer is aligned.
    let sid = unsafe { (*room.as_ptr().cast::<TOKEN_USER>()).User.Sid };
    let mut text: *mut u16 = ptr::null_mut();
    // SAFETY: the SID in `room` is valid; the call allocates the text.
    worked(unsafe { ConvertSidToStringSidW(sid, &raw mut text) })?;
    let units = (0..LONGEST_SID).map(|at| {
        // SAFETY: the text is zero-terminated, and nothing after the zero is read.
        unsafe { *text.add(at) }
    });
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    // SAFETY: allocated by the call above, and not used any more.
    unsafe { LocalFree(text.cast()) };
    String::from_utf16(&units).map_err(io::Error::other)
}
