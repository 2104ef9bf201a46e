//! How a program looks at a file where no descriptor only points at one (macOS): by its name, and again by its name when it
//! is used, where it has to be the same file. In between somebody who can write to the folder could exchange it; where
//! anybody but us and root can, links are not followed and nothing is opened ([`crate::output::place`]). Names of folders are
//! opened by steps that follow no link. The same functions as `system/linux.rs`.
//!
//! Nothing in it is foreign to Linux, so it is compiled and tested there too. On macOS it was never run.
//! Source: macOS's `open(2)`, `fd(4)`.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

/// A folder on the way. To open it takes the right to list it, which Linux does not ask for.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Here names are numbers of our own open files.
const DESCRIPTORS: &str = "/dev/fd";
/// How often a link is looked at that changes meanwhile.
const LOOKS: usize = 3;

/// What is under a name.
pub(crate) enum Seen {
    Nothing,
    Link,
    /// The kernel knows where it leads: an open file of ours.
    MagicLink,
    Folder(OwnedFd),
    Other(Thing),
}

/// A file that is no folder and no link, as it was looked at.
pub(crate) struct Thing {
    pub(crate) stat: Stat,
}

pub(crate) fn look(folder: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<Seen> {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Seen::Nothing),
        found => found?,
    };
    if has_own_descriptors(path) {
        return Ok(Seen::MagicLink);
    }
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Seen::Link,
        // A link that took its name meanwhile is refused.
        FileType::Directory => Seen::Folder(openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?),
        _ => Seen::Other(Thing { stat }),
    })
}

/// What is known of a link, and its text: of one and the same link.
pub(crate) fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<(Stat, CString)> {
    let look = || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    for _ in 0..LOOKS {
        let before = look()?;
        let text = readlinkat(folder, name, Vec::new())?;
        let after = look()?;
        // A link's text does not change, and to rename it changes its time.
        let is_same = is_same(&before, &after)
            && (before.st_ctime, before.st_ctime_nsec) == (after.st_ctime, after.st_ctime_nsec);
        if is_same {
            return Ok((before, text));
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether what is in a folder stands for open files of ourselves.
pub(crate) fn has_own_descriptors(folder: &Path) -> bool {
    folder == Path::new(DESCRIPTORS)
}

impl Thing {
    /// A single file has no mount of its own here.
    #[expect(clippy::unused_self, reason = "on Linux it is asked of the file")]
    pub(crate) fn is_mount(&self) -> bool {
        false
    }

    /// Opens what was looked at; what has taken its name by now is an error.
    pub(crate) fn open(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(folder, name, flags, Mode::empty())?;
        if is_same(&fstat(&fd)?, &self.stat) { Ok(fd.into()) } else { Err(exchanged()) }
    }
}

/// Access lists can't be asked for without a call that has no safe form. Where the group can write, there may be one; one
/// that stands beside a mode which lets nobody write is not seen.
pub(crate) fn has_access_list(_folder: BorrowedFd<'_>) -> bool {
    true
}

/// The same file for reading, from its beginning; what has taken its name by now is an error. `/dev/fd` would share the
/// place in it with whoever still writes.
pub(crate) fn reopened(file: &File, path: &Path) -> io::Result<File> {
    let again = File::open(path)?;
    if is_same(&fstat(file)?, &fstat(&again)?) { Ok(again) } else { Err(exchanged()) }
}

fn is_same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino, a.st_mode) == (b.st_dev, b.st_ino, b.st_mode)
}

fn exchanged() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "another file has taken its name")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::symlink;

    use super::*;

    fn opened(folder: &Path) -> OwnedFd {
        rustix::fs::open(folder, FOLDER, Mode::empty()).unwrap()
    }

    #[test]
    fn each_kind_is_told_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::create_dir(path.join("folder")).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        symlink("folder", path.join("link")).unwrap();
        let folder = opened(path);
        let look = |name: &str| look(&folder, path, name.as_ref()).unwrap();
        assert!(matches!(look("none"), Seen::Nothing));
        assert!(matches!(look("folder"), Seen::Folder(_)));
        assert!(matches!(look("link"), Seen::Link));
        assert!(matches!(look("file"), Seen::Other(thing) if thing.stat.st_size == 1));
        let (stat, text) = link(&folder, "link".as_ref()).unwrap();
        assert_eq!((stat.st_uid, text.to_bytes()), (rustix::process::geteuid().as_raw(), &b"folder"[..]));
        assert!(link(&folder, "file".as_ref()).is_err());
    }

    #[test]
    fn only_what_was_looked_at_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::write(path.join("file"), "").unwrap();
        let folder = opened(path);
        let Seen::Other(thing) = look(&folder, path, "file".as_ref()).unwrap() else { panic!("no file") };
        thing.open(&folder, "file".as_ref()).unwrap().write_all(b"x").unwrap();
        fs::write(path.join("other"), "").unwrap();
        fs::rename(path.join("other"), path.join("file")).unwrap();
        let refused = thing.open(&folder, "file".as_ref()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        fs::remove_file(path.join("file")).unwrap();
        symlink("elsewhere", path.join("file")).unwrap();
        assert!(thing.open(&folder, "file".as_ref()).is_err());
        assert!(!path.join("elsewhere").exists());
    }

    #[test]
    fn a_file_is_read_again_from_its_beginning_under_its_own_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = File::create_new(&path).unwrap();
        file.write_all(b"text").unwrap();
        let mut text = String::new();
        reopened(&file, &path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        assert!(reopened(&file, &path).is_err());
    }
}
