//! Output files that appear atomically: data goes to a private temporary file in the same directory, which is renamed
//! into place when complete. The temporary file is always new and has an unpredictable name.
//!
//! - An existing file with the final name is neither opened nor truncated. It is replaced when the new file is
//!   complete, so hard links to it and symbolic links put there meanwhile are not written through.
//! - The mode is 0600, because recordings and dumps contain data of the target. If the replaced file belonged to this
//!   user and no other user can have created it, its mode is kept.
//! - A dropped [`PendingFile`] is deleted. [`sweep`] deletes the remaining ones when the program exits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::output::error::{Cause, Error};
use crate::output::names::NAMES_TRIED;
use crate::output::native::{self, FolderHandle, LOADABLE, Mode, PRIVATE, PUBLIC};
use crate::output::place::{Folder, NameInFolder, ResolvedPath};

/// A file that does not have its final name yet.
#[derive(Debug)]
pub struct PendingFile {
    file: File,
    /// The temporary file; `None` if an existing object is written to directly.
    beside: Option<Temporary>,
    /// The final path as specified by the user.
    path: Option<PathBuf>,
}

/// A temporary file in the directory of the final file.
#[derive(Debug)]
struct Temporary {
    folder: Folder,
    name: OsString,
    to: Option<OsString>,
    /// Mode of the file that will be replaced.
    mode: Option<Mode>,
}

impl PendingFile {
    /// Creates a pending file for `path`, without changing what exists there.
    ///
    /// # Errors
    /// If no file can be created there, or the existing file may not be replaced.
    pub fn of(path: &Path) -> Result<Self, Error> {
        Self::with_rights(path, PRIVATE)
    }

    /// Like [`of`](Self::of), but the file is readable and writable by others as far as the process's umask permits.
    ///
    /// # Errors
    /// See [`of`](Self::of).
    pub fn public(path: &Path) -> Result<Self, Error> {
        Self::with_rights(path, PUBLIC)
    }

    /// Like [`of`](Self::of), for a file that other processes load: others can read it as far as the umask permits, but
    /// never write to it. The mode of a replaced file is not kept.
    ///
    /// # Errors
    /// See [`of`](Self::of).
    pub fn loadable(path: &Path) -> Result<Self, Error> {
        let mut draft = Self::with_rights(path, LOADABLE)?;
        if let Some(beside) = &mut draft.beside {
            beside.mode = None;
        }
        Ok(draft)
    }

    fn with_rights(path: &Path, rights: Mode) -> Result<Self, Error> {
        let open = || -> Result<Self, Cause> {
            match ResolvedPath::of(path)? {
                ResolvedPath::Direct(file) => Ok(Self { file, beside: None, path: Some(path.to_owned()) }),
                ResolvedPath::Name(NameInFolder { folder, name, mode }) => {
                    // A recording that is being written to the existing file would be lost.
                    folder.reject_if_locked(&name)?;
                    let mut draft = Self::make(folder, Some(name), mode, rights)?;
                    draft.path = Some(path.to_owned());
                    Ok(draft)
                }
            }
        };
        open().map_err(Error::file(path))
    }

    /// Creates a file in `folder` that gets its name later through [`settle`](Self::settle), or never.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn within(folder: &Path) -> Result<Self, Error> {
        Self::within_with_rights(folder, PRIVATE)
    }

    /// Like [`within`](Self::within), but with the rights of [`public`](Self::public).
    ///
    /// # Errors
    /// See [`within`](Self::within).
    pub fn public_within(folder: &Path) -> Result<Self, Error> {
        Self::within_with_rights(folder, PUBLIC)
    }

    fn within_with_rights(folder: &Path, rights: Mode) -> Result<Self, Error> {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let make = || Self::make(Folder::of(folder)?, None, None, rights);
        make().map_err(Error::within(shown))
    }

    /// Creates another temporary file in the same directory. `None` if this output is written to directly.
    pub fn sibling(&self) -> Result<Option<Self>, Error> {
        let Some(Temporary { folder, .. }) = &self.beside else { return Ok(None) };
        Self::make(folder.clone(), None, None, PRIVATE).map(Some).map_err(Error::within(&folder.path))
    }

    /// Creates a file named like this temporary file plus the suffix `behind`, for programs that derive the name of a
    /// second output from the first.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn companion(&self, behind: &str) -> Result<Self, Error> {
        let no_file = || Error::file(&self.place())(io::Error::from(ErrorKind::InvalidInput));
        let Temporary { folder, name, .. } = self.beside.as_ref().ok_or_else(no_file)?;
        let mut name = name.clone();
        name.push(behind);
        let file = folder.create(&name, PRIVATE).map_err(Error::file(&folder.path.join(&name)))?;
        let beside = Temporary::new(folder.clone(), name, None, None);
        Ok(Self { file, beside: Some(beside), path: None })
    }

    fn make(folder: Folder, to: Option<OsString>, mode: Option<Mode>, rights: Mode) -> Result<Self, Cause> {
        let mut tries = 0;
        loop {
            let name = OsString::from(temporary_name());
            match folder.create(&name, rights) {
                Ok(file) => {
                    let beside = Temporary::new(folder, name, to, mode);
                    return Ok(Self { file, beside: Some(beside), path: None });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < NAMES_TRIED => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the open file, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the output is a file that will be renamed into place, as opposed to a device, pipe or open file
    /// that is written to directly.
    pub fn is_file(&self) -> bool {
        self.beside.is_some()
    }

    /// Returns whether anyone other than the current user, root and `user` can replace the file at its path. True if
    /// unknown.
    pub fn can_be_replaced(&self, user: u32) -> bool {
        let Some(beside) = &self.beside else { return true };
        beside.folder.can_be_replaced(user).unwrap_or(true)
    }

    /// Returns the final path as specified by the user.
    pub fn wanted(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| self.place())
    }

    /// Returns the current path of the data.
    pub fn place(&self) -> PathBuf {
        match &self.beside {
            Some(Temporary { folder, name, .. }) => folder.path.join(name),
            None => self.path.clone().unwrap_or_default(),
        }
    }

    /// Renames the file into place, replacing any existing file, and returns it with its path. The file need not be
    /// complete: the caller may continue writing, and it stays locked while open.
    ///
    /// # Errors
    /// If the rename fails, or the temporary file was replaced by another process.
    pub fn appear(mut self) -> Result<(File, PathBuf), Error> {
        let path = self.wanted();
        let file = self.file.try_clone().map_err(Error::file(&path))?;
        match &mut self.beside {
            Some(beside) => {
                let to = beside.to.take().unwrap_or_else(|| beside.name.clone());
                // Another recording may have started meanwhile.
                beside.folder.reject_if_locked(&to).map_err(Error::file(&path))?;
                native::lock(&self.file);
                beside.rename(&self.file, &to).map_err(Error::file(&path))?;
                self.beside = None;
            }
            // A regular file that cannot be replaced is truncated.
            None if self.file.metadata().is_ok_and(|meta| meta.is_file()) => {
                self.file.set_len(0).map_err(Error::file(&path))?;
            }
            None => {}
        }
        Ok((file, path))
    }

    /// Renames a complete file into place after flushing it to disk, so that a system crash leaves either the old or
    /// the new file.
    ///
    /// # Errors
    /// See [`appear`](Self::appear); also if flushing fails.
    pub fn appear_whole(self) -> Result<PathBuf, Error> {
        if self.is_file() {
            native::sync(&self.file).map_err(Error::file(&self.wanted()))?;
        }
        self.appear_soon()
    }

    /// Renames a complete file into place without flushing it to disk, for data that can be regenerated: a system crash
    /// may leave a part of it.
    ///
    /// # Errors
    /// See [`appear`](Self::appear).
    pub fn appear_soon(self) -> Result<PathBuf, Error> {
        if self.is_file() {
            return Ok(self.appear()?.1);
        }
        // Already in place: truncate old data after the end.
        let path = self.wanted();
        let cut = || -> io::Result<()> {
            if self.file.metadata()?.is_file() {
                self.file.set_len((&self.file).stream_position()?)?;
            }
            Ok(())
        };
        cut().map_err(Error::file(&path))?;
        Ok(path)
    }

    /// Renames a file created by [`within`](Self::within) to the first unused one of the names `name(1)`, `name(2)`, ….
    ///
    /// # Errors
    /// If no name is unused, or the rename fails.
    pub fn settle(mut self, name: impl Fn(u32) -> PathBuf) -> Result<(File, PathBuf), Error> {
        let Some(beside) = &mut self.beside else { return self.appear() };
        let mut n = 1;
        loop {
            let path = name(n);
            let wanted = path
                .file_name()
                .ok_or_else(|| Error::file(&path)(io::Error::from(ErrorKind::IsADirectory)))?;
            match beside.claim(wanted) {
                Ok(()) => {
                    native::lock(&self.file);
                    let renamed = beside.rename(&self.file, wanted);
                    if renamed.is_err() {
                        beside.folder.remove(wanted);
                    }
                    renamed.map_err(Error::file(&path))?;
                    self.beside = None;
                    return Ok((self.file.try_clone().map_err(Error::file(&path))?, path));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && n < NAMES_TRIED => n += 1,
                Err(error) => return Err(Error::file(&path)(error)),
            }
        }
    }

    /// Like [`settle`](Self::settle), but flushes the complete file to disk first.
    ///
    /// # Errors
    /// See [`settle`](Self::settle); also if flushing fails.
    pub fn settle_whole(self, name: impl Fn(u32) -> PathBuf) -> Result<PathBuf, Error> {
        native::sync(&self.file).map_err(Error::file(&name(1)))?;
        Ok(self.settle(name)?.1)
    }

    /// Sets the final path.
    pub fn name(&mut self, path: PathBuf) {
        if let (Some(beside), Some(name)) = (&mut self.beside, path.file_name()) {
            beside.to = Some(name.to_owned());
        }
        self.path = Some(path);
    }

    /// Keeps the file under its temporary name and returns its path.
    pub fn keep(mut self) -> PathBuf {
        let place = self.place();
        self.beside = None;
        place
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Do not delete a file that replaced this one.
            if beside.folder.has(&beside.name, &self.file).unwrap_or(false) {
                beside.folder.remove(&beside.name);
            }
        }
    }
}

/// All pending files: those owned by threads that are still running when the program exits are not dropped.
static DRAFTS: Mutex<BTreeMap<OsString, FolderHandle>> = Mutex::new(BTreeMap::new());

/// Deletes all pending files. Call this before the program exits.
pub fn sweep() {
    for (name, folder) in std::mem::take(&mut *drafts()) {
        native::remove(&folder, &name);
    }
}

fn drafts() -> MutexGuard<'static, BTreeMap<OsString, FolderHandle>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Temporary {
    fn drop(&mut self) {
        drafts().remove(&self.name);
    }
}

impl Temporary {
    fn new(folder: Folder, name: OsString, to: Option<OsString>, mode: Option<Mode>) -> Self {
        drafts().insert(name.clone(), folder.handle());
        Self { folder, name, to, mode }
    }

    /// Reserves an unused name by creating an empty file.
    fn claim(&self, name: &OsStr) -> io::Result<()> {
        self.folder.create(name, PRIVATE).map(drop)
    }

    fn rename(&self, file: &File, to: &OsStr) -> Result<(), Cause> {
        // Otherwise an exchanged file would replace the existing one.
        if !self.folder.has(&self.name, file)? {
            return Err(Cause::Replaced);
        }
        if let Some(mode) = self.mode {
            // File systems without modes ignore the call.
            native::set_mode(file, mode);
        }
        self.folder.rename(&self.name, to)?;
        // The owner of the directory may have exchanged the file during the rename.
        if !self.folder.has(to, file)? {
            return Err(Cause::Replaced);
        }
        Ok(())
    }
}

/// Returns a new name for a temporary file. It is unpredictable so that other users cannot create a file with this name
/// first.
pub fn temporary_name() -> String {
    format!("runtap.{:016x}.part", native::random_u64())
}

#[cfg(all(test, unix))]
#[path = "pending_file_tests.rs"]
mod tests;
