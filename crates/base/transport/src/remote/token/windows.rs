//! Reading a token file on Windows: not supported, because access rights are not checked.

use std::io;
use std::path::Path;

use super::TokenError;

/// Fails, because access rights are not checked on Windows.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TokenError> {
    let why = "checking who can read a token file is not supported on Windows";
    let source = io::Error::new(io::ErrorKind::Unsupported, why);
    Err(TokenError::Io { path: path.to_owned(), source })
}
