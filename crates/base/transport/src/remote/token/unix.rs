//! Reading a token file on Unix: checks its owner and its mode.

#[cfg(all(test, target_os = "linux"))]
mod bsd;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "bsd.rs")]
mod system;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{MAX_TOKEN, TokenError};

/// Reads the file after checking its owner and mode.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TokenError> {
    let owned = || path.to_owned();
    let failed = |source| TokenError::Io { path: owned(), source };
    let file = open(path)?;
    let metadata = file.metadata().map_err(failed)?;
    // Files in `/proc` are not meant to be secrets.
    if !metadata.is_file() || system::is_of_proc(&file).map_err(failed)? {
        return Err(TokenError::NoFile { path: owned() });
    }
    if metadata.uid() != geteuid().as_raw() && metadata.uid() != 0 {
        return Err(TokenError::Foreign { path: owned(), uid: metadata.uid() });
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(TokenError::Readable { path: owned(), mode: metadata.mode() & 0o777 });
    }
    let mut text = Vec::new();
    file.take(2 * MAX_TOKEN as u64).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

/// Maximum number of links that are followed.
const MAX_LINKS: usize = 8;

/// Opens a file without blocking, which rejects pipes. Follows links of the current user and root, because mounted
/// secrets use them.
fn open(path: &Path) -> Result<File, TokenError> {
    let mut path = path.to_owned();
    let at = |path: &Path, source: io::Error| TokenError::Io { path: path.to_owned(), source };
    let common = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..=MAX_LINKS {
        let reading = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | common;
        match openat(CWD, &path, reading, Mode::empty()) {
            Ok(file) => return Ok(file.into()),
            Err(Errno::LOOP) => {}
            Err(error) => return Err(at(&path, error.into())),
        }
        let Some((uid, text)) = system::link(&path).map_err(|source| at(&path, source))? else {
            return Err(TokenError::NoFile { path });
        };
        if uid != geteuid().as_raw() && uid != 0 {
            return Err(TokenError::ForeignLink { path, uid });
        }
        let text = OsString::from_vec(text.into_bytes());
        path = path.parent().unwrap_or_else(|| Path::new("")).join(text);
    }
    Err(at(&path, Errno::LOOP.into()))
}
