//! Identity of open files, and opening them again.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::GENERIC_READ;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_STANDARD_INFO,
    FileStandardInfo, GetFileInformationByHandle, GetFileInformationByHandleEx, ReOpenFile,
};

use crate::windows::handle::{owned, worked};

/// Returns whether two handles refer to the same file.
///
/// # Errors
/// If a handle is not a file.
pub fn is_same(a: &File, b: &File) -> io::Result<bool> {
    let ((a_volume, a), (b_volume, b)) = (identity(a)?, identity(b)?);
    // Wine reports no volume for a file that was renamed after it was opened.
    Ok(a == b && (a_volume == b_volume || a_volume == 0 || b_volume == 0))
}

/// Returns the volume of a file and its number there.
#[expect(unsafe_code, reason = "a call of the system, which fills a structure")]
fn identity(file: &File) -> io::Result<(u32, u64)> {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the file is open, and there is room for the structure.
    worked(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) })?;
    let number = u64::from(information.nFileIndexHigh) << 32 | u64::from(information.nFileIndexLow);
    Ok((information.dwVolumeSerialNumber, number))
}

/// Returns whether the open file was deleted.
///
/// # Errors
/// If the handle is not a file.
#[expect(unsafe_code, reason = "a call of the system, which fills a structure")]
pub fn is_deleted(file: &File) -> io::Result<bool> {
    let mut information = FILE_STANDARD_INFO::default();
    let size = u32::try_from(size_of::<FILE_STANDARD_INFO>()).map_err(io::Error::other)?;
    let room: *mut c_void = (&raw mut information).cast();
    // SAFETY: the file is open, and there is room for the structure, whose size is told.
    worked(unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), FileStandardInfo, room, size) })?;
    Ok(information.DeletePending || information.NumberOfLinks == 0)
}

/// Opens the file again for reading, with an independent position.
///
/// # Errors
/// If the file cannot be read.
#[expect(unsafe_code, reason = "a call of the system, which gives a handle")]
pub fn reopened(file: &File) -> io::Result<File> {
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: the file is open; the call gives a new handle or INVALID_HANDLE_VALUE.
    let handle = unsafe { owned(ReOpenFile(file.as_raw_handle(), GENERIC_READ, share, 0)) }?;
    Ok(handle.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_file_is_the_same_under_every_name() {
        let [old, new] = ["old", "new"]
            .map(|name| std::env::temp_dir().join(format!("runtap-os-{}-{name}", std::process::id())));
        let mut file = File::options().write(true).read(true).create_new(true).open(&old).unwrap();
        file.write_all(b"hello").unwrap();
        fs::rename(&old, &new).unwrap();
        assert!(is_same(&File::open(&new).unwrap(), &file).unwrap());
        let other = File::open(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_same(&other, &file).unwrap());
        // Wine reopens by the old name, so open by the new one first.
        let mut text = String::new();
        reopened(&File::open(&new).unwrap()).unwrap().read_to_string(&mut text).unwrap();
        drop(file);
        fs::remove_file(&new).unwrap();
        assert_eq!(text, "hello");
    }
}
