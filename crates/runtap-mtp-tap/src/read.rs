//! Recordings on disk: opened, compressed ones too, and where a line of one begins.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;

use runtap_transcript::{Limits, Reader};
use thiserror::Error;

/// What a Zstandard frame begins with (RFC 8878, section 3.1.1).
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The digits of the largest frame, and its fields.
const LINE: usize = 160 << 20;

/// The bytes of a recording.
pub type Input = BufReader<Box<dyn Read + Send>>;

/// A recording that can't be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system can't.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins like something compressed, and is not.
    #[error("it is no Zstandard file: {0}")]
    Zstandard(String),
    /// It does not begin with an object.
    #[error("it is no transcript (JSON Lines)")]
    NoTranscript,
}

/// Opens a recording; one that begins as Zstandard files do is decompressed as it is read.
///
/// # Errors
/// There is none.
pub fn open(path: &Path) -> Result<Reader<Input>, OpenError> {
    let limits = Limits { line: LINE, ..Limits::default() };
    Ok(Reader::with_limits(bytes(path)?, limits))
}

fn bytes(path: &Path) -> Result<Input, OpenError> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(ZSTANDARD.len() as u64).read_to_end(&mut start)?;
    let compressed = start == ZSTANDARD;
    let whole: Chain<Cursor<Vec<u8>>, File> = Cursor::new(start).chain(file);
    let inner: Box<dyn Read + Send> = if compressed {
        let decoder = ruzstd::decoding::StreamingDecoder::new(whole);
        Box::new(decoder.map_err(|error| OpenError::Zstandard(error.to_string()))?)
    } else {
        Box::new(whole)
    };
    let mut input = BufReader::with_capacity(1 << 16, inner);
    let unpacked = input.fill_buf().map_err(|error| {
        if compressed { OpenError::Zstandard(error.to_string()) } else { OpenError::Io(error) }
    });
    let first = unpacked?.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(OpenError::NoTranscript);
    }
    Ok(input)
}

/// Where a line begins, in bytes from the start of the decompressed recording. `line` counts from 1 on.
///
/// # Errors
/// It can't be read again.
pub fn offset_of_line(path: &Path, line: u64) -> Result<u64, OpenError> {
    let mut input = bytes(path)?;
    let (mut offset, mut left) = (0, line.saturating_sub(1));
    while left > 0 {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let used = end.unwrap_or(buffer.len());
        left -= u64::from(end.is_some());
        offset += used as u64;
        input.consume(used);
    }
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        std::fs::write(&path, "{}\n\n{\"a\":1}\nx").unwrap();
        let offsets: Vec<_> = (0..6).map(|line| offset_of_line(&path, line).unwrap()).collect();
        assert_eq!(offsets, [0, 0, 3, 4, 12, 13]);
    }

    #[test]
    fn what_is_no_recording_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let error = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            open(&path).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(error(b""), Ok(()));
        assert_eq!(error(b" \n{"), Ok(()));
        assert_eq!(error(b"Nettrace"), Err("it is no transcript (JSON Lines)".to_owned()));
        assert!(error(&[&ZSTANDARD[..], &[0xff; 20]].concat()).is_err());
        assert!(error(&ZSTANDARD).is_err());
    }
}
