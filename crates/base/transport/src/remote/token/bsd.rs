//! Examines links without following them, for systems that have no `O_PATH` (macOS): by name, before and after reading.
//! The functions are those of `linux.rs`. The code is portable, so it is also compiled and tested on Linux.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, readlinkat, statat};
use rustix::io::Errno;

/// Maximum number of attempts to read a link that changes meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// Returns the owner and the text of the same link. Never `None`, because there are no links that only the kernel can
/// resolve.
pub(super) fn link(path: &Path) -> io::Result<Option<(u32, CString)>> {
    let look = || {
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        // The text of a link cannot change, and renaming a link changes its time.
        let which = (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
        Ok::<_, Errno>((which, stat.st_uid))
    };
    for _ in 0..MAX_ATTEMPTS {
        let (before, owner) = look()?;
        let text = readlinkat(CWD, path, Vec::new())?;
        if (before, owner) == look()? {
            return Ok(Some((owner, text)));
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns false, because there is no `/proc`.
#[expect(clippy::unnecessary_wraps, reason = "on Linux it is asked of the kernel")]
pub(super) fn is_of_proc(_file: &impl AsFd) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let (owner, text) = link(&path).unwrap().unwrap();
        assert_eq!((owner, text.to_bytes()), (rustix::process::geteuid().as_raw(), &b"elsewhere"[..]));
        assert!(link(&folder.path().join("none")).is_err());
        assert!(!is_of_proc(&std::fs::File::open("/dev/null").unwrap()).unwrap());
    }
}
