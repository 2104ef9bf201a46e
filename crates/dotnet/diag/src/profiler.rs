//! Parses the command line arguments for a profiler: its class id, library and data.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The most bytes of data: the size of a request is a 16-bit number.
const MAX_DATA: u64 = 65_535;

/// A reason why an argument is not valid data for a profiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The path as specified.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The text is not pairs of hexadecimal digits.
    #[error("'{0}' is not a sequence of hexadecimal bytes (two digits each)")]
    NoBytes(String),
}

/// A reason why arguments do not specify a profiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The class id is malformed.
    #[error("'{0}' is not a class id (expected a GUID such as 12345678-9abc-def0-1234-56789abcdef0)")]
    NoClassId(String),
    /// The path is not UTF-8.
    #[error("the path {} is not UTF-8, which the protocol requires", .0.display())]
    NoText(PathBuf),
    /// The path is relative.
    #[error("the path '{0}' is relative; the target would resolve it in its own working directory")]
    Relative(String),
}

/// Parses a profiler's class id and checks the absolute path of its library.
///
/// # Errors
/// If one of them is invalid.
pub fn library(id: &str, path: &Path) -> Result<(Uuid, String), LibraryError> {
    let class_id = class_id(id).ok_or_else(|| LibraryError::NoClassId(id.to_owned()))?;
    let text = path.to_str().ok_or_else(|| LibraryError::NoText(path.to_owned()))?.to_owned();
    if path.is_absolute() { Ok((class_id, text)) } else { Err(LibraryError::Relative(text)) }
}

/// Parses a class id, with or without braces: `12345678-9abc-def0-1234-56789abcdef0`.
pub fn class_id(text: &str) -> Option<Uuid> {
    let bare = text.trim().trim_start_matches('{').trim_end_matches('}');
    let dashed = bare.len() == 36;
    bare.parse().ok().filter(|_| dashed)
}

/// Parses data for a profiler: text, `@FILE`, or `hex:0123`.
///
/// # Errors
/// If the file cannot be read, or the digits are invalid.
pub fn data(text: &str) -> Result<Vec<u8>, DataError> {
    if let Some(file) = text.strip_prefix('@') {
        let path = Path::new(file);
        return read_file(path).map_err(|error| DataError::File { path: path.to_owned(), error });
    }
    let Some(digits) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_owned()) };
    let digits: Vec<u32> = digits.chars().map_while(|c| c.to_digit(16)).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() || digits.len() + 4 != text.len() {
        return Err(DataError::NoBytes(text.to_owned()));
    }
    Ok(pairs.iter().filter_map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect())
}

/// Returns the contents of a regular file that fits into a request. Other files could block or be endless.
fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    let file = open(file)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if meta.len() > MAX_DATA {
        return Err(io::Error::other(format!(
            "the file exceeds the maximum size of a request, {MAX_DATA} bytes"
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_DATA).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(file)
}

/// Opens a file without waiting for the other end of a pipe.
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
