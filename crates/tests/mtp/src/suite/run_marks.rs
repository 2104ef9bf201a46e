//! Marks of running runs: an empty file for each module of a run beside the histories, which exists from the start of a
//! run until its history is written. A mark that is found later belongs to a run without a recorded end: it was killed,
//! could not write its history, or is still running.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Module;
use sha2::{Digest as _, Sha256};

use crate::suite::fingerprint::hex;

const SUFFIX: &str = ".begun";

/// Returns the prefix of the marks of a module. Marks are not assigned to histories, because only a run reveals the
/// framework of a module, and modules for several frameworks share a history.
fn prefix(module: &Module) -> String {
    let path = std::path::absolute(module.path()).unwrap_or_else(|_| module.path().to_owned());
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()), 8) + "."
}

/// Creates the mark of a run of a module that started at this time.
pub(crate) fn mark(directory: &Path, module: &Module, at: u64) -> io::Result<PathBuf> {
    let path = directory.join(format!("{}{at}-{}{SUFFIX}", prefix(module), std::process::id()));
    File::options().write(true).create_new(true).open(&path)?;
    Ok(path)
}

/// Returns the marks of a module, and when their runs started.
pub(crate) fn marks(directory: &Path, module: &Module) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let (prefix, mut found) = (prefix(module), Vec::new());
    for entry in entries {
        let name = entry?.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(SUFFIX));
        if let Some((at, _)) = rest.and_then(|rest| rest.split_once('-')) {
            found.push((at.parse().unwrap_or(0), directory.join(&name)));
        }
    }
    Ok(found)
}

/// Removes a mark.
pub(crate) fn unmark(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
