//! The directory, which is private because the directory for temporary files is. Sockets are pipes, and not in the
//! directory.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn make(name: &str) -> io::Result<PathBuf> {
    let path = env::temp_dir().join(name);
    // Fails if the directory exists already, which is unlikely because its name is random.
    fs::create_dir(&path)?;
    Ok(path)
}

pub(super) fn socket(directory: &Path, name: &str) -> PathBuf {
    let own = directory.file_name().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!(r"\\.\pipe\testingplatform.pipe.{own}.{name}"))
}
