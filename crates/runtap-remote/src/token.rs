//! What both sides know: a secret from a file that nobody else can read, or from elsewhere.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use thiserror::Error;

/// The shortest token: what can be guessed protects nothing.
pub const MIN_TOKEN: usize = 16;
/// The longest one.
const MAX_TOKEN: usize = 4096;

/// The secret. Its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why there is no token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It can be guessed, or is no token.
    #[error("the token has {length} bytes: {MIN_TOKEN} to {MAX_TOKEN} are needed")]
    Length {
        /// Without white space around it.
        length: usize,
    },
    /// Others can read the file.
    #[error("{}: others can read it (mode {mode:03o})", path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to somebody else, who chooses what is in it.
    #[error("{}: it belongs to user {uid}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// It is no file.
    #[error("{}: it is no regular file", path.display())]
    NoFile {
        /// What it is.
        path: PathBuf,
    },
    /// It can't be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Token {
    /// A token, without the white space around it.
    ///
    /// # Errors
    /// [`TokenError::Length`].
    pub fn new(text: &[u8]) -> Result<Self, TokenError> {
        let text = text.trim_ascii();
        if !(MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) {
            return Err(TokenError::Length { length: text.len() });
        }
        Ok(Self(text.to_vec()))
    }

    /// The token in a file, which must be readable by its owner alone, and ours or root's.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let owned = || path.to_owned();
        let failed = |source| TokenError::Io { path: owned(), source };
        // What waits for somebody who writes is no file of a token.
        let file = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(TokenError::NoFile { path: owned() });
        }
        if metadata.uid() != geteuid().as_raw() && metadata.uid() != 0 {
            return Err(TokenError::Foreign { path: owned(), uid: metadata.uid() });
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(TokenError::Readable { path: owned(), mode: metadata.mode() & 0o777 });
        }
        let mut text = Vec::new();
        file.take(2 * MAX_TOKEN as u64).read_to_end(&mut text).map_err(failed)?;
        Self::new(&text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_long_and_never_shown() {
        let token = Token::new(b"  0123456789abcdef\n").unwrap();
        assert_eq!(token.as_bytes(), b"0123456789abcdef");
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(matches!(Token::new(b" 0123456789abcde "), Err(TokenError::Length { length: 15 })));
        assert!(matches!(Token::new(&[b'x'; 4097]), Err(TokenError::Length { .. })));
    }

    #[test]
    fn a_file_that_others_can_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        for mode in [0o640, 0o604, 0o644, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                matches!(Token::from_file(&path), Err(TokenError::Readable { mode: told, .. }) if told == mode)
            );
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Token::from_file(&path).unwrap(), Token::new(b"0123456789abcdef").unwrap());
        }
        assert!(matches!(Token::from_file(folder.path()), Err(TokenError::NoFile { .. })));
        assert!(matches!(Token::from_file(&folder.path().join("none")), Err(TokenError::Io { .. })));
    }
}
