//! The token: a secret that both sides know, usually from a file that only its owner can read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[cfg_attr(unix, path = "token/unix.rs")]
#[cfg_attr(windows, path = "token/windows.rs")]
mod native;

/// Minimum length of a token in bytes.
pub const MIN_TOKEN: usize = 16;
/// Maximum length of a token in bytes.
const MAX_TOKEN: usize = 4096;

/// A secret token. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The reasons why a token is rejected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The length is out of range.
    #[error("the token is {length} bytes long; it must be {MIN_TOKEN} to {MAX_TOKEN} bytes")]
    Length {
        /// Length in bytes, without surrounding white space.
        length: usize,
    },
    /// Other users can read the file.
    #[error("{} is readable by other users (mode {mode:03o})", path.display())]
    Readable {
        /// Path of the file.
        path: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// The file belongs to another user, who can change it.
    #[error("{} belongs to user {uid}", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// User id of its owner.
        uid: u32,
    },
    /// The file is a symbolic link of another user, who can redirect it.
    #[error("{} is a symbolic link of user {uid}, which is not followed", path.display())]
    ForeignLink {
        /// Path of the link.
        path: PathBuf,
        /// User id of its owner.
        uid: u32,
    },
    /// The path is not a regular file on a disk.
    #[error("{} is not a regular file", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Token {
    /// Creates a token, without surrounding white space.
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

    /// Reads a token from a file, which must belong to the current user or root and be readable only by its owner.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        Self::new(&native::read(path)?)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use rustix::fs::{CWD, Mode};
    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn a_token_has_a_minimum_length_and_is_never_printed() {
        let token = Token::new(b"  0123456789abcdef\n").unwrap();
        assert_eq!(token.as_bytes(), b"0123456789abcdef");
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(matches!(Token::new(b" 0123456789abcde "), Err(TokenError::Length { length: 15 })));
        assert!(matches!(Token::new(&[b'x'; 4097]), Err(TokenError::Length { .. })));
    }

    #[test]
    fn a_file_that_others_can_read_is_rejected() {
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

    #[test]
    fn foreign_links_pipes_and_files_in_proc_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let [token, near, far, pipe, round] =
            ["token", "near", "far", "pipe", "round"].map(|name| folder.path().join(name));
        fs::write(&token, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        // Mounted secrets are laid out like this: a link next to the file, and a link to that link.
        symlink("token", &near).unwrap();
        symlink(&near, &far).unwrap();
        assert_eq!(Token::from_file(&far).unwrap(), Token::new(b"0123456789abcdef").unwrap());
        symlink("round", &round).unwrap();
        assert!(matches!(Token::from_file(&round), Err(TokenError::Io { .. })));
        // A pipe without a writer would block forever.
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(Token::from_file(&pipe), Err(TokenError::NoFile { .. })));
        // A private file of sufficient length, but not a regular file on a disk.
        let environment = Path::new("/proc/self/environ");
        assert!(matches!(Token::from_file(environment), Err(TokenError::NoFile { .. })));
        let of_process = folder.path().join("of-process");
        symlink("/proc/self/exe", &of_process).unwrap();
        assert!(matches!(Token::from_file(&of_process), Err(TokenError::NoFile { .. })));
        // Only root can change the owner of a link.
        if geteuid().is_root() {
            lchown(&near, Some(65_534), None).unwrap();
            for path in [&near, &far] {
                assert!(matches!(Token::from_file(path), Err(TokenError::ForeignLink { uid: 65_534, .. })));
            }
        }
    }
}
