//! What both sides know: a secret from a file that nobody else can read, or from elsewhere.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[cfg_attr(unix, path = "token/unix.rs")]
#[cfg_attr(windows, path = "token/windows.rs")]
mod native;

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
    /// It is a link of somebody else, who chooses where it leads.
    #[error("{}: it is a link of user {uid}, and is not followed", path.display())]
    ForeignLink {
        /// The link.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// It is not a file on a disk.
    #[error("{}: it is not a regular file", path.display())]
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

    #[test]
    fn links_of_others_pipes_and_what_proc_tells_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let [token, near, far, pipe, round] =
            ["token", "near", "far", "pipe", "round"].map(|name| folder.path().join(name));
        fs::write(&token, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        // As mounted secrets have them: a link beside the file, and a link to that from elsewhere.
        symlink("token", &near).unwrap();
        symlink(&near, &far).unwrap();
        assert_eq!(Token::from_file(&far).unwrap(), Token::new(b"0123456789abcdef").unwrap());
        symlink("round", &round).unwrap();
        assert!(matches!(Token::from_file(&round), Err(TokenError::Io { .. })));
        // Nobody writes into it: whoever waits for that waits for ever.
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(Token::from_file(&pipe), Err(TokenError::NoFile { .. })));
        // Ours, for us alone, and long enough.
        let environment = Path::new("/proc/self/environ");
        assert!(matches!(Token::from_file(environment), Err(TokenError::NoFile { .. })));
        let of_process = folder.path().join("of-process");
        symlink("/proc/self/exe", &of_process).unwrap();
        assert!(matches!(Token::from_file(&of_process), Err(TokenError::NoFile { .. })));
        // Only root can give a link to another user.
        if geteuid().is_root() {
            lchown(&near, Some(65_534), None).unwrap();
            for path in [&near, &far] {
                assert!(matches!(Token::from_file(path), Err(TokenError::ForeignLink { uid: 65_534, .. })));
            }
        }
    }
}
