//! Scripts that act as test applications: servers accept any executable file as one.

#[cfg_attr(unix, path = "script/unix.rs")]
#[cfg_attr(windows, path = "script/windows.rs")]
mod system;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use runtap_os::output::PendingFile;
use thiserror::Error;

use self::system::{HEAD, make_executable, script};

/// An error that prevents writing a script.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// Writing failed.
    #[error("can't write the script: {0}")]
    Io(#[from] io::Error),
    /// The file can't be created.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// A word contains a NUL byte.
    #[error("an argument of the command contains a NUL byte")]
    Nul,
    /// Another file exists, such as the application itself.
    #[error("the existing file is not a script that runtap has written, and is not replaced")]
    Taken,
    /// A word contains characters that no script on this system can pass on.
    #[error(
        "an argument of the command contains a quotation mark or a line break, which a script can't pass on"
    )]
    Unquotable,
    /// The system would not execute the file.
    #[error("the name of a script must end in .cmd")]
    Name,
    /// Servers would run the file with `dotnet`.
    #[error("the name of a script can't end in .dll")]
    Dll,
}

/// Writes an executable script that starts `words`, followed by the arguments of the script. The file appears atomically.
/// Replaces only files written by this function.
///
/// # Errors
/// Fails if the file can't be written, is another file, or has an unsuitable name, or if a word contains a NUL byte.
pub fn write_module(path: &Path, words: &[OsString]) -> Result<(), ScriptError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dll")) {
        return Err(ScriptError::Dll);
    }
    let text = script(path, words)?;
    if !may_be_replaced(path)? {
        return Err(ScriptError::Taken);
    }
    let pending = PendingFile::of(path)?;
    let mut file = pending.file();
    file.write_all(&text)?;
    let (file, _) = pending.appear()?;
    // Uses the open file, because its path may have been replaced.
    make_executable(&file)?;
    Ok(())
}

/// Returns whether the path is free or has a script of runtap.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let mut start = Vec::new();
            runtap_os::output::open_ordinary(path)?.take(HEAD.len() as u64).read_to_end(&mut start)?;
            Ok(start == HEAD)
        }
        // A link may refer to the application, and other kinds of files are not modules.
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
