//! Operations on files in a directory on Windows, by path. Creating symbolic links requires a privilege that ordinary
//! users do not have, so the path contains none of other users. Access rights are inherited from the directory; there
//! are no modes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::windows::file::{self, is_same};

use crate::output::error::Cause;
use crate::output::place::Folder;

/// Placeholder: access rights are inherited from the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode;

pub(crate) const PRIVATE: Mode = Mode;
pub(crate) const PUBLIC: Mode = Mode;
pub(crate) const LOADABLE: Mode = Mode;

/// Absolute path of a directory.
pub(crate) type FolderHandle = PathBuf;

impl Folder {
    pub(crate) fn handle(&self) -> FolderHandle {
        self.absolute.clone()
    }

    /// Creates a new file for reading and writing.
    pub(crate) fn create(&self, name: &OsStr, _mode: Mode) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.absolute.join(name))
    }

    pub(crate) fn remove(&self, name: &OsStr) {
        remove(&self.absolute, name);
    }

    /// Renames a file, replacing any file named `to`.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.absolute.join(from), self.absolute.join(to))
    }

    /// Returns whether `name` refers to `file`.
    pub(crate) fn has(&self, name: &OsStr, file: &File) -> io::Result<bool> {
        is_same(&File::open(self.absolute.join(name))?, file)
    }

    /// Does nothing: Windows does not allow replacing an open file.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same as on Unix")]
    pub(crate) fn reject_if_locked(&self, _name: &OsStr) -> Result<(), Cause> {
        Ok(())
    }

    /// Returns true, because this is unknown on Windows.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same as on Unix")]
    pub(crate) fn can_be_replaced(&self, _user: u32) -> io::Result<bool> {
        Ok(true)
    }
}

pub(crate) fn remove(folder: &Path, name: &OsStr) {
    // The directory may have been deleted.
    let _ = fs::remove_file(folder.join(name));
}

/// Does nothing; see [`Folder::reject_if_locked`].
pub(crate) fn lock(_file: &File) {}

pub(crate) fn set_mode(_file: &File, _mode: Mode) {}

pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Returns a number for the name of a new file, which only has to be unpredictable.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Returns whether two paths refer to the same file.
pub fn is_same_path(a: &Path, b: &Path) -> bool {
    matches!((File::open(a), File::open(b)), (Ok(a), Ok(b)) if is_same(&a, &b).unwrap_or(false))
}

/// Returns whether `path` refers to `file`.
pub fn is_path_of(path: &Path, file: &File) -> bool {
    File::open(path).is_ok_and(|there| is_same(&there, file).unwrap_or(false))
}

/// Opens the file again for reading from its start: by its path if that still refers to it, otherwise by its handle.
pub fn reopened(file: &File, path: &Path) -> io::Result<File> {
    match File::open(path) {
        Ok(there) if is_same(&there, file)? => Ok(there),
        _ => file::reopened(file),
    }
}
