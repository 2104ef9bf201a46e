//! Files in the making. An output appears under its name by one step, and until then is a file of its own beside it:
//! new, private, under a name that nobody can foresee, and never one that was there before.
//!
//! - What is there under the name is neither opened nor cut before its successor is ready; it is replaced, not reused:
//!   a foreign file, another name of the same file or a link laid there meanwhile keep what they have.
//! - Mode 0600: recordings and dumps hold what the process knew. A file of our own that is replaced passes its mode on,
//!   where nobody else can have put it there.
//! - A draft that is dropped is deleted, and at the end of the program those that nobody dropped.
//!
//! Refuses to interpret what is written.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::output::error::{Cause, Error};
use crate::output::names::NAMES_TRIED;
use crate::output::native::{self, FolderHandle, LOADABLE, Mode, PRIVATE, PUBLIC};
use crate::output::place::{Folder, Lead, Place};

/// A file that has no name yet that anybody asked for.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// Its place until it has its own; `None` for what is written to as it is.
    beside: Option<Beside>,
    /// The name that it is to have, as it was given.
    path: Option<PathBuf>,
}

/// A file under a name of ours.
#[derive(Debug)]
struct Beside {
    folder: Folder,
    name: OsString,
    to: Option<OsString>,
    /// The mode that its predecessor had.
    mode: Option<Mode>,
}

impl Draft {
    /// Opens what is to be under this path. Nothing that is there is changed.
    ///
    /// # Errors
    /// No file can be made there, or what is there may not be replaced.
    pub fn of(path: &Path) -> Result<Self, Error> {
        Self::with_rights(path, PRIVATE)
    }

    /// The same for what everybody may read, unless the process's mask says otherwise.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub fn public(path: &Path) -> Result<Self, Error> {
        Self::with_rights(path, PUBLIC)
    }

    /// The same for what everybody may read, and programs load: nobody else may write to it, whatever the process's mask is,
    /// and whatever the rights of its predecessor were.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub fn loadable(path: &Path) -> Result<Self, Error> {
        let mut draft = Self::with_rights(path, LOADABLE)?;
        if let Some(beside) = &mut draft.beside {
            beside.mode = None;
        }
        Ok(draft)
    }

    fn with_rights(path: &Path, rights: Mode) -> Result<Self, Error> {
        let open = || -> Result<Self, Cause> {
            match Lead::of(path)? {
                Lead::AsItIs(file) => Ok(Self { file, beside: None, path: Some(path.to_owned()) }),
                Lead::Name(Place { folder, name, mode }) => {
                    // What is being recorded there would be lost with the file.
                    folder.refuse_a_writer(&name)?;
                    let mut draft = Self::make(folder, Some(name), mode, rights)?;
                    draft.path = Some(path.to_owned());
                    Ok(draft)
                }
            }
        };
        open().map_err(Error::file(path))
    }

    /// A file in this folder that gets its name later, by [`settle`](Self::settle), or never.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn within(folder: &Path) -> Result<Self, Error> {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let make = || Self::make(Folder::of(folder)?, None, None, PRIVATE);
        make().map_err(Error::within(shown))
    }

    /// One more file in the folder of this one; `None` where this one is written to as it is.
    pub fn sibling(&self) -> Result<Option<Self>, Error> {
        let Some(Beside { folder, .. }) = &self.beside else { return Ok(None) };
        Self::make(folder.clone(), None, None, PRIVATE).map(Some).map_err(Error::within(&folder.path))
    }

    /// One more file in the folder of this one, under this one's present name with `behind` it: where a program that is
    /// told the one writes another.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn companion(&self, behind: &str) -> Result<Self, Error> {
        let no_file = || Error::file(&self.place())(io::Error::from(ErrorKind::InvalidInput));
        let Beside { folder, name, .. } = self.beside.as_ref().ok_or_else(no_file)?;
        let mut name = name.clone();
        name.push(behind);
        let file = folder.create(&name, PRIVATE).map_err(Error::file(&folder.path.join(&name)))?;
        let beside = Beside::new(folder.clone(), name, None, None);
        Ok(Self { file, beside: Some(beside), path: None })
    }

    fn make(folder: Folder, to: Option<OsString>, mode: Option<Mode>, rights: Mode) -> Result<Self, Cause> {
        let mut tries = 0;
        loop {
            let name = OsString::from(unforeseen());
            match folder.create(&name, rights) {
                Ok(file) => {
                    let beside = Beside::new(folder, name, to, mode);
                    return Ok(Self { file, beside: Some(beside), path: None });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < NAMES_TRIED => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The open file, to write and to read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it is a file that will appear; what else there is, is written to as it is.
    pub fn is_file(&self) -> bool {
        self.beside.is_some()
    }

    /// Whether anybody but us, root and this user can put something else under its path meanwhile. Where that can't be told
    /// it is taken for granted.
    pub fn can_be_exchanged(&self, user: u32) -> bool {
        let Some(beside) = &self.beside else { return true };
        beside.folder.can_be_exchanged(user).unwrap_or(true)
    }

    /// The name that it is to have, as it was given.
    pub fn wanted(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| self.place())
    }

    /// Where its bytes are by now.
    pub fn place(&self) -> PathBuf {
        match &self.beside {
            Some(Beside { folder, name, .. }) => folder.path.join(name),
            None => self.path.clone().unwrap_or_default(),
        }
    }

    /// Gives it the name that was asked for, in place of what has it. What is in it need not be whole: the file is written
    /// on, and locked as long as it is open. Gives the path.
    ///
    /// # Errors
    /// The folder does not take it, or somebody has exchanged the file.
    pub fn appear(mut self) -> Result<(File, PathBuf), Error> {
        let path = self.wanted();
        let file = self.file.try_clone().map_err(Error::file(&path))?;
        match &mut self.beside {
            Some(beside) => {
                let to = beside.to.take().unwrap_or_else(|| beside.name.clone());
                // Another recording may have begun since.
                beside.folder.refuse_a_writer(&to).map_err(Error::file(&path))?;
                native::lock(&self.file);
                beside.rename(&self.file, &to).map_err(Error::file(&path))?;
                self.beside = None;
            }
            // A file of ours that can't be replaced.
            None if self.file.metadata().is_ok_and(|meta| meta.is_file()) => {
                self.file.set_len(0).map_err(Error::file(&path))?;
            }
            None => {}
        }
        Ok((file, path))
    }

    /// The same for what is whole: it is on the disk before it appears, so that a machine which fails leaves the old
    /// file or the new one.
    ///
    /// # Errors
    /// Those of [`appear`](Self::appear), and a disk that does not take it.
    pub fn appear_whole(self) -> Result<PathBuf, Error> {
        if self.is_file() {
            native::sync(&self.file).map_err(Error::file(&self.wanted()))?;
        }
        self.appear_soon()
    }

    /// The same for what can be made anew: nobody waits for the disk, and a machine which fails may leave a part of it.
    ///
    /// # Errors
    /// Those of [`appear`](Self::appear).
    pub fn appear_soon(self) -> Result<PathBuf, Error> {
        if self.is_file() {
            return Ok(self.appear()?.1);
        }
        // It is there already. What it was longer before is cut off.
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

    /// Gives a file that was made [`within`](Self::within) a folder the first of these names that is free there.
    ///
    /// # Errors
    /// None is, or the folder does not take it.
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

    /// The same for what is whole, as [`appear_whole`](Self::appear_whole) has it.
    ///
    /// # Errors
    /// Those of both.
    pub fn settle_whole(self, name: impl Fn(u32) -> PathBuf) -> Result<PathBuf, Error> {
        native::sync(&self.file).map_err(Error::file(&name(1)))?;
        Ok(self.settle(name)?.1)
    }

    /// Says which name it is to have.
    pub fn name(&mut self, path: PathBuf) {
        if let (Some(beside), Some(name)) = (&mut self.beside, path.file_name()) {
            beside.to = Some(name.to_owned());
        }
        self.path = Some(path);
    }

    /// Leaves it as it is, under the name that nobody asked for.
    pub fn keep(mut self) -> PathBuf {
        let place = self.place();
        self.beside = None;
        place
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Not what somebody else has put there.
            if beside.folder.has(&beside.name, &self.file).unwrap_or(false) {
                beside.folder.remove(&beside.name);
            }
        }
    }
}

/// The drafts that there are: those on threads which the end of the program ends are not dropped.
static DRAFTS: Mutex<BTreeMap<OsString, FolderHandle>> = Mutex::new(BTreeMap::new());

/// Deletes all drafts: the program ends.
pub fn sweep() {
    for (name, folder) in std::mem::take(&mut *drafts()) {
        native::remove(&folder, &name);
    }
}

fn drafts() -> MutexGuard<'static, BTreeMap<OsString, FolderHandle>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Beside {
    fn drop(&mut self) {
        drafts().remove(&self.name);
    }
}

impl Beside {
    fn new(folder: Folder, name: OsString, to: Option<OsString>, mode: Option<Mode>) -> Self {
        drafts().insert(name.clone(), folder.handle());
        Self { folder, name, to, mode }
    }

    /// Makes sure that a name is free, and keeps it.
    fn claim(&self, name: &OsStr) -> io::Result<()> {
        self.folder.create(name, PRIVATE).map(drop)
    }

    fn rename(&self, file: &File, to: &OsStr) -> Result<(), Cause> {
        // Otherwise what has this name by now would take the place of what is there.
        if !self.folder.has(&self.name, file)? {
            return Err(Cause::Exchanged);
        }
        if let Some(mode) = self.mode {
            // A file system without modes has none to keep, and ours is the strictest.
            native::set_mode(file, mode);
        }
        self.folder.rename(&self.name, to)?;
        // Who owns the folder, or a folder that is everybody's, may have exchanged the file under our hands.
        if !self.folder.has(to, file)? {
            return Err(Cause::Exchanged);
        }
        Ok(())
    }
}

/// A new name. That the file must not be there yet is what keeps others out; that nobody can foresee it keeps them from
/// taking it first.
pub fn unforeseen() -> String {
    format!("runtap.{:016x}.part", native::random_u64())
}

#[cfg(all(test, unix))]
#[path = "draft_tests.rs"]
mod tests;
