//! Names of pipes on Windows.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Converts the name of a local pipe to its path.
pub(super) fn socket_path(name: &OsStr) -> PathBuf {
    if name.as_encoded_bytes().starts_with(br"\\") {
        return PathBuf::from(name);
    }
    let mut path = OsString::from(r"\\.\pipe\");
    path.push(name);
    path.into()
}
