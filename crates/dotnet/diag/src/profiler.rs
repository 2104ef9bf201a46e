//! What people type of a profiler: its class id, and the data that it is given.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A request tells its own size in 16 bits.
const MOST_DATA: u64 = 65_535;

/// Why something typed is no data for a profiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file can't be taken.
    #[error("can't read {}: {error}", path.display())]
    File {
        /// As it was given.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is something else than pairs of hexadecimal digits.
    #[error("'{0}' is no row of bytes: two hexadecimal digits each")]
    NoBytes(String),
}

/// Why something typed names no profiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It is no class id.
    #[error("'{0}' is no class id; write it as 12345678-9abc-def0-1234-56789abcdef0")]
    NoClassId(String),
    /// The path can't be said.
    #[error("{} is no UTF-8, which the protocol can't carry", .0.display())]
    NoText(PathBuf),
    /// The path is not that of one file.
    #[error("'{0}' is relative: the target would look in its own working directory")]
    Relative(String),
}

/// A profiler's class id, and the absolute path of its library.
///
/// # Errors
/// One of them is none.
pub fn library(id: &str, path: &Path) -> Result<(Uuid, String), LibraryError> {
    let class_id = class_id(id).ok_or_else(|| LibraryError::NoClassId(id.to_owned()))?;
    let text = path.to_str().ok_or_else(|| LibraryError::NoText(path.to_owned()))?.to_owned();
    if path.is_absolute() { Ok((class_id, text)) } else { Err(LibraryError::Relative(text)) }
}

/// A class id, with or without braces: `12345678-9abc-def0-1234-56789abcdef0`.
pub fn class_id(text: &str) -> Option<Uuid> {
    let bare = text.trim().trim_start_matches('{').trim_end_matches('}');
    let dashed = bare.len() == 36;
    bare.parse().ok().filter(|_| dashed)
}

/// Data for a profiler: text, `@FILE`, or `hex:0123`.
///
/// # Errors
/// The file can't be taken, or the digits are none.
pub fn data(text: &str) -> Result<Vec<u8>, DataError> {
    if let Some(file) = text.strip_prefix('@') {
        let path = Path::new(file);
        return whole(path).map_err(|error| DataError::File { path: path.to_owned(), error });
    }
    let Some(digits) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_owned()) };
    let digits: Vec<u32> = digits.chars().map_while(|c| c.to_digit(16)).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() || digits.len() + 4 != text.len() {
        return Err(DataError::NoBytes(text.to_owned()));
    }
    Ok(pairs.iter().filter_map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect())
}

/// What is in a file, which has to fit into a request. A pipe is not waited for, and what has no end not read.
fn whole(file: &Path) -> io::Result<Vec<u8>> {
    let file = open(file)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if meta.len() > MOST_DATA {
        return Err(io::Error::other(format!("it is larger than a request can be, {MOST_DATA} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(MOST_DATA).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(file)
}

/// Opening a pipe does not wait here.
#[cfg(not(unix))]
fn open(file: &Path) -> io::Result<File> {
    File::open(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_ids() {
        let expected = Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0);
        for text in ["{D0D0CAFE-0001-4002-8003-A0B0C0D0E0F0}", "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0"] {
            assert_eq!(class_id(text), Some(expected));
        }
        for text in ["", "{}", "d0d0cafe00014002 8003a0b0c0d0e0f0", "d0d0cafe-0001-4002-8003-a0b0c0d0e0fg"] {
            assert_eq!(class_id(text), None, "{text}");
        }
    }

    #[test]
    fn data_is_text_bytes_or_a_file() {
        assert_eq!(data("mode=fast").unwrap(), b"mode=fast");
        assert_eq!(data("").unwrap(), b"");
        assert_eq!(data("hex:00fF10").unwrap(), [0, 255, 16]);
        assert!(data("hex:").unwrap().is_empty());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0, 1, 2]).unwrap();
        assert_eq!(data(&format!("@{}", file.path().display())).unwrap(), [0, 1, 2]);
        for text in ["hex:0", "hex:0g", "hex:00 11", "@/none/file", "@/dev/zero", "@/"] {
            assert!(data(text).is_err(), "{text}");
        }
    }
}
