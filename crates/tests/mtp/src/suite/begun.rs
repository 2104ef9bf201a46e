//! Runs that have begun. Owns: a mark for each module of a run, an empty file beside the histories, which is there from the
//! beginning of a run until its history is written. A mark that is found later stands for a run without a recorded end: it
//! was killed, could not write, or is still running.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Module;
use sha2::{Digest as _, Sha256};

use crate::suite::fingerprint::hex;

const ENDING: &str = ".begun";

/// What the marks of a module begin with. Its history can't have them: only a run tells which framework the module is for,
/// and modules of several frameworks share a history.
fn prefix(module: &Module) -> String {
    let path = std::path::absolute(module.path()).unwrap_or_else(|_| module.path().to_owned());
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()), 8) + "."
}

/// Makes the mark of a run of a module that began at this time.
pub(crate) fn mark(directory: &Path, module: &Module, at: u64) -> io::Result<PathBuf> {
    let path = directory.join(format!("{}{at}-{}{ENDING}", prefix(module), std::process::id()));
    File::options().write(true).create_new(true).open(&path)?;
    Ok(path)
}

/// The marks of a module, and when their runs began.
pub(crate) fn marks(directory: &Path, module: &Module) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let (prefix, mut found) = (prefix(module), Vec::new());
    for entry in entries {
        let name = entry?.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(ENDING));
        if let Some((at, _)) = rest.and_then(|rest| rest.split_once('-')) {
            found.push((at.parse().unwrap_or(0), directory.join(&name)));
        }
    }
    Ok(found)
}

/// Takes a mark away.
pub(crate) fn unmark(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
