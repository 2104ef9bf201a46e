//! The command line of an application to be recorded, and the file of its recording.

#[cfg_attr(unix, path = "application/unix.rs")]
#[cfg_attr(windows, path = "application/windows.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use self::system::replaced;
use crate::{Module, ModuleKind};

/// An error in the command line of an application.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The file does not exist.
    #[error("there is no file {}", .0.display())]
    NoFile(PathBuf),
    /// The path cannot be made absolute.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns whether a word starts this file, either as a path or as a name found in PATH.
pub fn is_started_by(file: &Path, word: &OsStr) -> bool {
    let Ok(file) = file.canonicalize() else { return false };
    let word = Path::new(word);
    let looked_up = std::env::var_os("PATH").filter(|_| word.parent() == Some(Path::new("")));
    let folders = looked_up.map_or_else(Vec::new, |path| std::env::split_paths(&path).collect());
    let mut paths = folders.iter().map(|folder| folder.join(word)).chain([word.to_owned()]);
    paths.any(|path| path.canonicalize().is_ok_and(|path| path == file))
}

/// Returns the application's command line, with an absolute path if its first word is a file and not a name to look up.
///
/// # Errors
/// Returns an error if the file does not exist.
pub fn resolve_application(words: &[OsString]) -> Result<Vec<OsString>, ApplicationError> {
    let mut words = words.to_vec();
    if let Some(first) = words.first_mut()
        && (first.as_encoded_bytes().contains(&b'/') || is_managed(first))
    {
        let path = std::path::absolute(&*first)?;
        if !path.is_file() {
            return Err(ApplicationError::NoFile(path));
        }
        *first = path.into();
    }
    Ok(words)
}

/// Returns whether `dotnet` runs the file that a word names.
pub fn is_managed(word: &OsStr) -> bool {
    Module::new(word).kind() == ModuleKind::Managed
}

/// Replaces `%p` by the id of this process, because a module may be started several times.
pub fn with_process_id(path: &Path) -> PathBuf {
    replaced(path.as_os_str(), "%p", &std::process::id().to_string()).into()
}
