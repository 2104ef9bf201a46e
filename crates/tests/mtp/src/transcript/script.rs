//! A script in the place of a test application: servers take any executable file for one.

#[cfg_attr(unix, path = "script/unix.rs")]
#[cfg_attr(windows, path = "script/windows.rs")]
mod system;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use runtap_os::output::PendingFile;
use thiserror::Error;

use self::system::{HEAD, make_executable, script};

/// A script that can't be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The system does not take it.
    #[error("can't write the script: {0}")]
    Io(#[from] io::Error),
    /// The file can't be made.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// A word that no script can have.
    #[error("a word of the command has a NUL byte")]
    Nul,
    /// There is a file that is something else, such as the application itself.
    #[error("there is a file that is no script of runtap: it is not replaced")]
    Taken,
    /// A word that no script of this system can have.
    #[error("a word of the command has a quotation mark or a line break, which no script can pass on")]
    Unquotable,
    /// The system would not start it.
    #[error("the name of a script ends in .cmd")]
    Name,
    /// Servers would have it run by `dotnet`.
    #[error("the name of a script can't end in .dll")]
    Dll,
}

/// Writes an executable script that starts `words` with the arguments that it gets itself behind them. It is there when it
/// is whole. A script that was written in this way before is replaced, and no other file.
///
/// # Errors
/// It can't be written there, is another file, or must not have this name; or a word has a NUL byte.
pub fn write_module(path: &Path, words: &[OsString]) -> Result<(), ScriptError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dll")) {
        return Err(ScriptError::Dll);
    }
    let text = script(path, words)?;
    if !may_be_replaced(path)? {
        return Err(ScriptError::Taken);
    }
    let draft = PendingFile::of(path)?;
    let mut file = draft.file();
    file.write_all(&text)?;
    let (file, _) = draft.appear()?;
    // Not by its path, where something else may be by now.
    make_executable(&file)?;
    Ok(())
}

/// Whether nothing is there, or a script of ours.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let mut start = Vec::new();
            runtap_os::output::open_ordinary(path)?.take(HEAD.len() as u64).read_to_end(&mut start)?;
            Ok(start == HEAD)
        }
        // A link may lead to the application, and nothing else that there is can be a module.
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
