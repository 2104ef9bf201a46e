//! Named pipes: creates private ones, and identifies the processes at their ends.

use std::ffi::OsStr;
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId, PIPE_REJECT_REMOTE_CLIENTS,
    PIPE_UNLIMITED_INSTANCES, PeekNamedPipe, WaitNamedPipeW,
};

use crate::windows::handle::{owned, worked};
use crate::windows::text::wide;
use crate::windows::user::sid_of;

/// Buffer size in each direction, in bytes.
const BUFFER_SIZE: u32 = 64 << 10;

/// Creates an instance of a pipe that only the current user, the system and administrators can open, and only locally.
/// If `is_first`, it fails if the pipe exists. Must be called within a tokio runtime with I/O.
///
/// # Errors
/// If the name is in use (`PermissionDenied`) or invalid.
#[expect(unsafe_code, reason = "tokio takes the security attributes as a raw pointer")]
pub fn listen(path: &OsStr, is_first: bool) -> io::Result<NamedPipeServer> {
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first).reject_remote_clients(true);
    with_private_attributes(|attributes| {
        // SAFETY: `attributes` points to SECURITY_ATTRIBUTES that are valid until the call returns.
        unsafe { options.create_with_security_attributes_raw(path, attributes.cast()) }
    })
}

/// Like [`listen`], without tokio, for overlapped I/O.
#[expect(unsafe_code, reason = "calls CreateNamedPipeW")]
pub(crate) fn listen_blocking(path: &OsStr, is_first: bool) -> io::Result<OwnedHandle> {
    let path = wide(path)?;
    let first = if is_first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
    let (open, mode) = (PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first, PIPE_REJECT_REMOTE_CLIENTS);
    with_private_attributes(|attributes| {
        let path = path.as_ptr();
        // SAFETY: `path` ends with a zero, and the attributes are valid until the call returns. The result is a new
        // handle or INVALID_HANDLE_VALUE.
        unsafe {
            owned(CreateNamedPipeW(
                path,
                open,
                mode,
                PIPE_UNLIMITED_INSTANCES,
                BUFFER_SIZE,
                BUFFER_SIZE,
                0,
                attributes,
            ))
        }
    })
}

/// Calls `create` with security attributes that grant full access (GA) only to the current user, SYSTEM (SY) and
/// administrators (BA); protected (P) means that no rights are inherited.
#[expect(unsafe_code, reason = "creates a security descriptor and frees it")]
fn with_private_attributes<T>(
    create: impl FnOnce(*mut SECURITY_ATTRIBUTES) -> io::Result<T>,
) -> io::Result<T> {
    let rights = format!("D:P(A;;GA;;;{})(A;;GA;;;SY)(A;;GA;;;BA)", sid_of(std::process::id())?);
    let rights = wide(OsStr::new(&rights))?;
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    // SAFETY: `rights` ends with a zero; the system allocates the descriptor.
    worked(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            rights.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            ptr::null_mut(),
        )
    })?;
    let created = size().and_then(|size| {
        let mut attributes =
            SECURITY_ATTRIBUTES { nLength: size, lpSecurityDescriptor: descriptor, bInheritHandle: 0 };
        create(&raw mut attributes)
    });
    // SAFETY: the conversion allocated the descriptor and leaves freeing to the caller; the pipe has a copy.
    unsafe { LocalFree(descriptor) };
    created
}

fn size() -> io::Result<u32> {
    u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)
}

/// Returns the id of the process that created the pipe instance.
///
/// # Errors
/// If the handle is not a connected pipe.
#[expect(unsafe_code, reason = "calls a function that writes an integer")]
pub fn server_process(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open, and `pid` is valid for writing.
    worked(unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut pid) })?;
    Ok(pid)
}

/// Returns the id of the process that connected to the pipe instance.
///
/// # Errors
/// If the handle is not a connected pipe.
#[expect(unsafe_code, reason = "calls a function that writes an integer")]
pub fn client_process(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open, and `pid` is valid for writing.
    worked(unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut pid) })?;
    Ok(pid)
}

/// Returns the number of bytes that can be read, without reading them.
///
/// # Errors
/// If the peer has closed the connection (`BrokenPipe`).
#[expect(unsafe_code, reason = "calls a function that writes an integer")]
pub fn available(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut bytes = 0;
    // SAFETY: the handle is open; no bytes are requested, and `bytes` is valid for writing.
    worked(unsafe {
        PeekNamedPipe(
            pipe.as_raw_handle(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            &raw mut bytes,
            ptr::null_mut(),
        )
    })?;
    Ok(bytes)
}

/// Returns whether this is Wine, whose version 8 does not enforce the first instance of a name. For tests.
pub fn is_wine() -> bool {
    std::env::var_os("WINEPREFIX").is_some()
}

/// Returns whether a pipe with this path exists. Does not open it, which would occupy an instance.
pub fn exists(path: &OsStr) -> bool {
    let Ok(path) = wide(path) else { return false };
    has_instance(&path).is_ok_and(|found| found)
}

/// Returns whether a pipe has an instance. If all instances are busy, waiting for the shortest time fails with a time-out,
/// which shows that the pipe exists.
#[expect(unsafe_code, reason = "calls WaitNamedPipeW")]
fn has_instance(path: &[u16]) -> io::Result<bool> {
    const TIMEOUT_MS: u32 = 1;
    // SAFETY: `path` ends with a zero.
    match worked(unsafe { WaitNamedPipeW(path.as_ptr(), TIMEOUT_MS) }) {
        Err(error) if error.raw_os_error().map(i32::cast_unsigned) == Some(ERROR_FILE_NOT_FOUND) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(true),
        Err(error) => Err(error),
        Ok(()) => Ok(true),
    }
}
