//! Whose a process is: the user of its token, as a security identifier (SID). Refuses to name people.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;

use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::ConvertSidToStringSidW;
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TOKEN_USER, TokenUser};
use windows_sys::Win32::System::Threading::OpenProcessToken;

use crate::windows::handle::{owned, process, worked};

/// Longest text of a SID: `S-1-` and 15 numbers, with room to spare.
const LONGEST_SID: usize = 256;

/// The SID of the user of a process, in its textual form (`S-1-5-21-…`).
///
/// # Errors
/// The process is gone, or its user is not for us to know.
#[expect(unsafe_code, reason = "calls of the system, which fill a buffer")]
pub(crate) fn sid_of(pid: u32) -> io::Result<String> {
    let process = process(pid)?;
    let mut raw: HANDLE = ptr::null_mut();
    // SAFETY: the process is open, and the call writes one handle to where there is one.
    worked(unsafe { OpenProcessToken(process.as_raw_handle(), TOKEN_QUERY, &raw mut raw) })?;
    // SAFETY: the call has worked, so the handle is new and ours.
    let token: OwnedHandle = unsafe { owned(raw) }?;
    let mut needed = 0;
    // SAFETY: with no room nothing is written but how much is needed.
    unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, ptr::null_mut(), 0, &raw mut needed) };
    // Of words, so that what is in it is aligned.
    let size = usize::try_from(needed).map_err(io::Error::other)?.max(size_of::<TOKEN_USER>());
    let mut room = vec![0u64; size.div_ceil(size_of::<u64>())];
    let bytes = u32::try_from(room.len() * size_of::<u64>()).map_err(io::Error::other)?;
    // SAFETY: there is room for `bytes` bytes, and that is said.
    worked(unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            room.as_mut_ptr().cast(),
            bytes,
            &raw mut needed,
        )
    })?;
    // SAFETY: the call has filled in a TOKEN_USER, which points into the same room; that is aligned for it.
    let sid = unsafe { (*room.as_ptr().cast::<TOKEN_USER>()).User.Sid };
    let mut text: *mut u16 = ptr::null_mut();
    // SAFETY: the SID is one of the system's, in `room`; the text is a new allocation of the system's.
    worked(unsafe { ConvertSidToStringSidW(sid, &raw mut text) })?;
    let units = (0..LONGEST_SID).map(|at| {
        // SAFETY: the text ends with a zero, and nothing behind that is read.
        unsafe { *text.add(at) }
    });
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    // SAFETY: allocated by the call above, for us to free, and not used any more.
    unsafe { LocalFree(text.cast()) };
    String::from_utf16(&units).map_err(io::Error::other)
}
