//! Response files: `@FILE` is replaced by the arguments in the file.
//!
//! The platform's grammar: a line that starts with `#` is a comment; arguments are separated by white space; quotation
//! marks keep white space together and are removed. Response files are not nested.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::LaunchError;

/// The maximum size of a response file in bytes. It holds about 100,000 ids of tests.
const MAX_FILE_SIZE: u64 = 64 << 20;

/// Replaces response files by their arguments. An unreadable file becomes an error in its place, because it matters
/// only if a server started the process.
pub(super) fn expand(words: Vec<OsString>) -> Vec<Result<OsString, LaunchError>> {
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        match response_file(&word) {
            Some(path) if !path.as_os_str().is_empty() => match read(&path) {
                Ok(text) => all.extend(text.lines().flat_map(split).map(|word| Ok(word.into()))),
                Err(error) => {
                    let path = path.display().to_string();
                    all.push(Err(LaunchError::ResponseFile { path, error }));
                }
            },
            _ => all.push(Ok(word)),
        }
    }
    all
}

/// Returns the path after `@`.
#[cfg(unix)]
fn response_file(word: &OsStr) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;

    word.as_bytes().strip_prefix(b"@").map(|path| OsStr::from_bytes(path).into())
}

/// Returns the path after `@`. Servers never pass arguments that are not valid Unicode.
#[cfg(not(unix))]
fn response_file(word: &OsStr) -> Option<PathBuf> {
    word.to_str()?.strip_prefix('@').map(PathBuf::from)
}

fn read(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_FILE_SIZE {
        return Err(format!("the file has {size} bytes, more than the maximum of {MAX_FILE_SIZE}"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn split(line: &str) -> Vec<String> {
    let line = line.trim();
    let mut words = Vec::new();
    if line.starts_with('#') {
        return words;
    }
    let (mut word, mut is_word, mut is_quoted) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            c if c.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_unquoted() {
        assert_eq!(split(r#"  --a "b c"d  "" 'e f' "#), ["--a", "b cd", "", "'e", "f'"]);
        assert_eq!(split("# --a"), Vec::<String>::new());
        assert_eq!(split("\"not closed  "), ["not closed"]);
    }
}
