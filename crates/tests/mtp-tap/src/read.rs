//! Recordings on disk: opened, compressed ones too.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use runtap_convert::source::{Input as Unpacked, MaxSize};
use runtap_transcript::{Limits, Reader};
use thiserror::Error;

/// The digits of the largest frame, and its fields.
const LINE: usize = 160 << 20;

/// The bytes of a recording.
pub type Input = BufReader<Unpacked>;

/// A recording that can't be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system can't.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins like something compressed, and is not.
    #[error("it is no {compression} file: {error}")]
    Compressed {
        /// What it begins like.
        compression: &'static str,
        /// Why it can't be read.
        error: io::Error,
    },
    /// It does not begin with an object.
    #[error("it is no transcript (JSON Lines)")]
    NoTranscript,
}

/// Opens a recording; one that is compressed (gzip, Zstandard) is decompressed as it is read.
///
/// # Errors
/// There is none.
pub fn open(path: &Path, max_size: MaxSize) -> Result<Reader<Input>, OpenError> {
    let limits = Limits { line: LINE, ..Limits::default() };
    let input = Unpacked::new(File::open(path)?, max_size)?;
    let compression = input.compression();
    let mut input = BufReader::with_capacity(1 << 16, input);
    let start = input.fill_buf().map_err(|error| match compression {
        Some(compression) => OpenError::Compressed { compression: compression.name(), error },
        None => OpenError::Io(error),
    });
    let first = start?.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(OpenError::NoTranscript);
    }
    Ok(Reader::with_limits(input, limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let error = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            open(&path, MaxSize::BY_RATIO).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(error(b""), Ok(()));
        assert_eq!(error(b" \n{"), Ok(()));
        assert_eq!(error(b"Nettrace"), Err("it is no transcript (JSON Lines)".to_owned()));
        assert!(error(&[&[0x28, 0xb5, 0x2f, 0xfd][..], &[0xff; 20]].concat()).is_err());
        assert!(error(&[0x28, 0xb5, 0x2f, 0xfd]).is_err());
    }
}
