//! Examines files by name, for systems that have no descriptors without access rights (macOS). The file is examined
//! again when it is used and must be the same one. In between, users who can write to the directory could exchange it;
//! in directories that other users can write to, links are not followed and nothing is opened
//! ([`crate::output::place`]). Directories are opened without following links. The functions are those of
//! `system/linux.rs`.
//!
//! The code is portable, so it is also compiled and tested on Linux. It has not been run on macOS.
//! Source: macOS's `open(2)`, `fd(4)`.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

/// Flags for opening a directory. Unlike on Linux, this requires permission to list it.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The directory whose entries are open files of this process.
const DESCRIPTORS: &str = "/dev/fd";
/// Maximum number of attempts to read a link that changes meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// The object with a given name.
pub(crate) enum Examined {
    Nothing,
    Link,
    /// An open file of this process, which only the kernel can resolve.
    MagicLink,
    Folder(OwnedFd),
    Other(OtherFile),
}

/// An examined file that is neither a directory nor a link.
pub(crate) struct OtherFile {
    pub(crate) stat: Stat,
}

pub(crate) fn look(folder: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<Examined> {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Examined::Nothing),
        found => found?,
    };
    if has_own_descriptors(path) {
        return Ok(Examined::MagicLink);
    }
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Examined::Link,
        // Fails if a link has replaced the directory meanwhile.
        FileType::Directory => {
            Examined::Folder(openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
        }
        _ => Examined::Other(OtherFile { stat }),
    })
}

/// Returns the metadata and the text of the same link.
pub(crate) fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<(Stat, CString)> {
    let look = || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    for _ in 0..MAX_ATTEMPTS {
        let before = look()?;
        let text = readlinkat(folder, name, Vec::new())?;
        let after = look()?;
        // The text of a link cannot change, and renaming a link changes its time.
        let is_same = is_same(&before, &after)
            && (before.st_ctime, before.st_ctime_nsec) == (after.st_ctime, after.st_ctime_nsec);
        if is_same {
            return Ok((before, text));
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns whether the entries of a directory are open files of this process.
pub(crate) fn has_own_descriptors(folder: &Path) -> bool {
    folder == Path::new(DESCRIPTORS)
}

impl OtherFile {
    /// Returns false: single files cannot be mount points.
    #[expect(clippy::unused_self, reason = "on Linux it is asked of the file")]
    pub(crate) fn is_mount(&self) -> bool {
        false
    }

    /// Opens the examined file; fails if another file has replaced it.
    pub(crate) fn open(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(folder, name, flags, Mode::empty())?;
        if is_same(&fstat(&fd)?, &self.stat) { Ok(fd.into()) } else { Err(exchanged()) }
    }
}

/// Returns true, because access lists can only be read through calls without a safe form. Called only if the group can
/// write; an access list of a directory whose mode grants no write access is missed.
pub(crate) fn has_access_list(_folder: BorrowedFd<'_>) -> bool {
    true
}

/// Opens the file again for reading from its start; fails if another file has replaced it. Opening it through `/dev/fd`
/// would share the position with the writer.
pub(crate) fn reopened(file: &File, path: &Path) -> io::Result<File> {
    let again = File::open(path)?;
    if is_same(&fstat(file)?, &fstat(&again)?) { Ok(again) } else { Err(exchanged()) }
}

fn is_same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino, a.st_mode) == (b.st_dev, b.st_ino, b.st_mode)
}

fn exchanged() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "another file has replaced it")
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
    fn each_kind_is_detected_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::create_dir(path.join("folder")).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        symlink("folder", path.join("link")).unwrap();
        let folder = opened(path);
        let look = |name: &str| look(&folder, path, name.as_ref()).unwrap();
        assert!(matches!(look("none"), Examined::Nothing));
        assert!(matches!(look("folder"), Examined::Folder(_)));
        assert!(matches!(look("link"), Examined::Link));
        assert!(matches!(look("file"), Examined::Other(thing) if thing.stat.st_size == 1));
        let (stat, text) = link(&folder, "link".as_ref()).unwrap();
        assert_eq!((stat.st_uid, text.to_bytes()), (rustix::process::geteuid().as_raw(), &b"folder"[..]));
        assert!(link(&folder, "file".as_ref()).is_err());
    }

    #[test]
    fn an_exchanged_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::write(path.join("file"), "").unwrap();
        let folder = opened(path);
        let Examined::Other(thing) = look(&folder, path, "file".as_ref()).unwrap() else { panic!("no file") };
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
    fn a_file_is_reopened_at_its_start_and_only_if_its_name_still_refers_to_it() {
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
