//! Where the path of an output leads on Windows: a name in a folder, or a device. Refuses to change anything that is there.
//!
//! Source: "Naming Files, Paths, and Namespaces" on learn.microsoft.com.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};

use crate::output::error::Cause;
use crate::output::native::Mode;

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Lead {
    /// A name in a folder; an ordinary file may be there.
    Name(Place),
    /// Something that is written to as it is: a device, a pipe.
    AsItIs(File),
}

/// A name in a folder.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
    /// Files have no modes here.
    pub(crate) mode: Option<Mode>,
}

/// A folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) absolute: PathBuf,
    /// How it was reached, for messages.
    pub(crate) path: PathBuf,
}

impl Lead {
    /// Follows a path, of which all but the last name has to be there.
    ///
    /// # Errors
    /// It leads nowhere, or to a folder.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        // What stands for a device has become its path: `NUL`, `CON`.
        let whole = absolute(path)?;
        if whole.as_os_str().as_encoded_bytes().starts_with(br"\\.\") {
            return Ok(Self::AsItIs(File::options().write(true).open(&whole)?));
        }
        let Some(name) = path.file_name() else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        };
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
            Ok(meta) if meta.permissions().readonly() => {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
            }
            _ => {}
        }
        let folder = Folder::of(path.parent().unwrap_or_else(|| Path::new("")))?;
        Ok(Self::Name(Place { folder, name: name.to_owned(), mode: None }))
    }
}

impl Folder {
    /// The folder of a path; the empty one is the working directory.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        let shown = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match fs::metadata(shown) {
            Ok(meta) if meta.is_dir() => Ok(Self { absolute: absolute(shown)?, path: path.to_owned() }),
            Ok(_file) => Err(Cause::NotAFolder(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Cause::NoFolder(path.to_owned())),
            Err(error) => Err(Cause::At { path: path.to_owned(), error }),
        }
    }

    /// The same, and makes what is missing. Folders have no modes here.
    ///
    /// # Errors
    /// Those of [`of`](Self::of), and a folder that can't be made.
    pub(crate) fn made(path: &Path, _is_private: bool) -> Result<Self, Cause> {
        if !path.as_os_str().is_empty() {
            fs::create_dir_all(path)?;
        }
        Self::of(path)
    }
}
