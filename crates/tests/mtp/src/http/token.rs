//! The secret that authorizes an application's requests.

#[cfg_attr(unix, path = "token/unix.rs")]
#[cfg_attr(windows, path = "token/windows.rs")]
mod system;

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;

use self::system::private;

/// The number of random bytes; the text has twice as many characters.
const BYTES: usize = 32;

/// A token, and the response file that passes it to the application: all local users can read a command line.
pub(crate) struct Token {
    text: String,
    file: PathBuf,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Token {
    /// Creates a new token. `file` must not exist. Only its owner can read it, and it is removed with the token.
    pub(crate) fn new(file: PathBuf) -> io::Result<Self> {
        let mut random = [0; BYTES];
        runtap_os::random(&mut random)?;
        let text = random.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let mut written = private(&file)?;
        let token = Self { text, file };
        writeln!(written, "--dotnet-test-http-token {}", token.text)?;
        Ok(token)
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns whether this is the value of an `Authorization` header with the token. Takes constant time for values of
    /// equal length.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let token = header.strip_prefix(b"Bearer ").unwrap_or_default();
        token.ct_eq(self.text.as_bytes()).into()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // The directory is removed at the end in any case.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn only_the_complete_token_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::new(folder.path().join("t")).unwrap();
        assert_eq!(token.text.len(), 64);
        let header = format!("Bearer {}", token.text);
        assert!(token.is_in(header.as_bytes()));
        assert!(!token.is_in(token.text.as_bytes()));
        assert!(!token.is_in(b"") && !token.is_in(b"Bearer "));
        assert!(!token.is_in(&header.as_bytes()[..header.len() - 1]));
        assert!(!token.is_in(format!("{header}0").as_bytes()));
        assert!(!token.is_in(format!("bearer {}", token.text).as_bytes()));
        let other = Token::new(folder.path().join("o")).unwrap();
        assert!(!other.is_in(header.as_bytes()));
        assert!(!format!("{token:?}").contains(&token.text));
    }

    #[test]
    fn the_token_is_passed_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t");
        let token = Token::new(file.clone()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("--dotnet-test-http-token {}\n", token.text));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert!(Token::new(file.clone()).is_err(), "another process may have created the file");
        drop(token);
        assert!(!file.exists());
    }
}
