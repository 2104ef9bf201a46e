//! Resolves the path of an output on Windows to a name in a directory, or to a device. This module changes no files.
//!
//! Source: "Naming Files, Paths, and Namespaces" on learn.microsoft.com.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};

use crate::output::error::Cause;
use crate::output::native::Mode;

/// The object that a path resolves to.
#[derive(Debug)]
pub(crate) enum ResolvedPath {
    /// A name in a directory, either unused or of a regular file.
    Name(NameInFolder),
    /// A device or pipe, which is written to directly.
    Direct(File),
}

/// A name in a directory.
#[derive(Debug)]
pub(crate) struct NameInFolder {
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
    /// Always `None`: files have no modes on Windows.
    pub(crate) mode: Option<Mode>,
}

/// A directory.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) absolute: PathBuf,
    /// Path by which it was reached, for messages.
    pub(crate) path: PathBuf,
}

impl ResolvedPath {
    /// Resolves a path. All components but the last must exist.
    ///
    /// # Errors
    /// If a directory is missing, or the path is a directory.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        // `absolute` converts device names such as `NUL` and `CON` to device paths.
        let whole = absolute(path)?;
        if whole.as_os_str().as_encoded_bytes().starts_with(br"\\.\") {
            return Ok(Self::Direct(File::options().write(true).open(&whole)?));
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
        Ok(Self::Name(NameInFolder { folder, name: name.to_owned(), mode: None }))
    }
}

impl Folder {
    /// Returns the directory with this path. The empty path is the working directory.
    ///
    /// # Errors
    /// If the path does not exist or is not a directory.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        let shown = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match fs::metadata(shown) {
            Ok(meta) if meta.is_dir() => Ok(Self { absolute: absolute(shown)?, path: path.to_owned() }),
            Ok(_file) => Err(Cause::NotADirectory(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Cause::MissingDirectory(path.to_owned()))
            }
            Err(error) => Err(Cause::Directory { path: path.to_owned(), error }),
        }
    }

    /// Returns the directory with this path and creates missing ones. Directories have no modes on Windows.
    ///
    /// # Errors
    /// See [`of`](Self::of); also if a directory cannot be created.
    pub(crate) fn made(path: &Path, _is_private: bool) -> Result<Self, Cause> {
        if !path.as_os_str().is_empty() {
            fs::create_dir_all(path)?;
        }
        Self::of(path)
    }
}
