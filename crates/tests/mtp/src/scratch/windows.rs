//! The directory, which is the user's as the one for temporary files is; sockets are pipes, and lie in no directory.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn make(name: &str) -> io::Result<PathBuf> {
    let path = env::temp_dir().join(name);
    // Fails if somebody has it already, which can't be foreseen.
    fs::create_dir(&path)?;
    Ok(path)
}

pub(super) fn socket(directory: &Path, name: &str) -> PathBuf {
    let own = directory.file_name().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!(r"\\.\pipe\testingplatform.pipe.{own}.{name}"))
}
