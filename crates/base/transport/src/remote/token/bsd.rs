//! Looking at a link without following it where no descriptor only points at one (macOS): by its name, before and after it
//! is read. The same functions as `linux.rs`. Nothing in it is foreign to Linux, so it is compiled and tested there too.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, readlinkat, statat};
use rustix::io::Errno;

/// How often a link is looked at that changes meanwhile.
const LOOKS: usize = 3;

/// The owner of a link, and its text: of one and the same link. There are no links here of which the kernel decides where
/// they lead.
pub(super) fn link(path: &Path) -> io::Result<Option<(u32, CString)>> {
    let look = || {
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        // A link's text does not change, and to rename it changes its time.
        let which = (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
        Ok::<_, Errno>((which, stat.st_uid))
    };
    for _ in 0..LOOKS {
        let (before, owner) = look()?;
        let text = readlinkat(CWD, path, Vec::new())?;
        if (before, owner) == look()? {
            return Ok(Some((owner, text)));
        }
    }
    Err(Errno::LOOP.into())
}

/// There is no `/proc`.
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
