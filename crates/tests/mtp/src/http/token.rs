//! The secret by which the server knows an application's requests.

#[cfg_attr(unix, path = "token/unix.rs")]
#[cfg_attr(windows, path = "token/windows.rs")]
mod system;

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;

use self::system::private;

/// Random bytes; twice as many characters.
const BYTES: usize = 32;

/// A token, and the response file that hands it to the application: on a command line, every user of the machine could read
/// it.
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
    /// A new one. `file` must not exist; only its owner can read it, and it is removed with the token.
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

    /// Whether this is the value of an `Authorization` header with the token. Takes as long for any value of its length.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let given = header.strip_prefix(b"Bearer ").unwrap_or_default();
        given.ct_eq(self.text.as_bytes()).into()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // Its directory is removed in the end, too.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn only_the_whole_token_is_one() {
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
    fn it_is_handed_on_in_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t");
        let token = Token::new(file.clone()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("--dotnet-test-http-token {}\n", token.text));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert!(Token::new(file.clone()).is_err(), "somebody may have made it");
        drop(token);
        assert!(!file.exists());
    }
}
