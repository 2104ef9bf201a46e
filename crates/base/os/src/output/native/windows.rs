//! What is done to files in a folder on Windows: by its path, which has no links of others in it by the rules of the
//! system: making a symbolic link takes a right that users don't have, unless it was given to them.
//!
//! Who may read a file, its folder says: there are no modes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::windows::file::{self, is_same};

use crate::output::error::Cause;
use crate::output::place::Folder;

/// Who may read a file: its folder says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode;

pub(crate) const PRIVATE: Mode = Mode;
pub(crate) const PUBLIC: Mode = Mode;
pub(crate) const LOADABLE: Mode = Mode;

/// A folder, by its absolute path.
pub(crate) type FolderHandle = PathBuf;

impl Folder {
    pub(crate) fn handle(&self) -> FolderHandle {
        self.absolute.clone()
    }

    /// A file that was not there, to write and to read.
    pub(crate) fn create(&self, name: &OsStr, _mode: Mode) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.absolute.join(name))
    }

    pub(crate) fn remove(&self, name: &OsStr) {
        remove(&self.absolute, name);
    }

    /// In place of what has the new name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.absolute.join(from), self.absolute.join(to))
    }

    /// Whether a name is that of this file.
    pub(crate) fn has(&self, name: &OsStr, file: &File) -> io::Result<bool> {
        is_same(&File::open(self.absolute.join(name))?, file)
    }

    /// Nothing: a file that is open can't be replaced here.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same as on Unix")]
    pub(crate) fn refuse_a_writer(&self, _name: &OsStr) -> Result<(), Cause> {
        Ok(())
    }

    /// Whether anybody but us can put something else under a path in it: that is not known here.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same as on Unix")]
    pub(crate) fn can_be_exchanged(&self, _user: u32) -> io::Result<bool> {
        Ok(true)
    }
}

pub(crate) fn remove(folder: &Path, name: &OsStr) {
    // The folder may be gone with all that is in it.
    let _ = fs::remove_file(folder.join(name));
}

/// Nothing: see [`Folder::refuse_a_writer`].
pub(crate) fn lock(_file: &File) {}

pub(crate) fn set_mode(_file: &File, _mode: Mode) {}

pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// For names that must not be there yet: it is enough that nobody can foresee them.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Whether two paths are those of the same file.
pub fn is_same_path(a: &Path, b: &Path) -> bool {
    matches!((File::open(a), File::open(b)), (Ok(a), Ok(b)) if is_same(&a, &b).unwrap_or(false))
}

/// Whether a path is that of this file.
pub fn is_path_of(path: &Path, file: &File) -> bool {
    File::open(path).is_ok_and(|there| is_same(&there, file).unwrap_or(false))
}

/// The same file for reading, from its beginning: by its path, if that is still its own, else by the open file.
pub fn reopened(file: &File, path: &Path) -> io::Result<File> {
    match File::open(path) {
        Ok(there) if is_same(&there, file)? => Ok(there),
        _ => file::reopened(file),
    }
}
