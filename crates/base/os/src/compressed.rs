//! Compressed input, which is detected by its first bytes and decompressed while being read. The decompressed size is
//! limited in relation to the compressed size, because a few kilobytes can expand to gigabytes.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// RFC 1952, section 2.3.1, followed by the only compression method.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// RFC 8878, section 3.1.1.
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Maximum ratio of decompressed to compressed size.
const MAX_RATIO: u64 = 1000;
/// The number of bytes at the beginning of a file that [`Input`] returns in one piece, if the file has them.
pub const START_BYTES: usize = 4096;
/// Decompressed size in bytes that is permitted for any file.
const MIN_SIZE_LIMIT: u64 = 64 << 20;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Gzip (`.gz`).
    Gzip,
    /// Zstandard (`.zst`).
    Zstandard,
}

impl Compression {
    /// Detects the format from the first bytes of a file. `None` if it is not compressed.
    pub fn of(start: &[u8]) -> Option<Self> {
        [(GZIP, Self::Gzip), (ZSTANDARD, Self::Zstandard)]
            .into_iter()
            .find_map(|(magic, compression)| start.starts_with(magic).then_some(compression))
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        }
    }
}

/// The maximum decompressed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxSize(Option<u64>);

impl MaxSize {
    /// 1,000 times the compressed size, and at least 64 MiB.
    pub const BY_RATIO: Self = Self(None);

    /// Creates a fixed limit of `bytes` bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self(Some(bytes))
    }
}

/// An error that occurs if the decompressed data exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit in bytes.
    pub most: u64,
    /// Whether the limit results from the compressed size.
    pub by_ratio: bool,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, by_ratio } = self;
        let why = if *by_ratio { ", more than 1,000 times the compressed data" } else { "" };
        write!(f, "decompressed data exceeds {most} bytes{why}")
    }
}

impl std::error::Error for TooLarge {}

/// A file or pipe that is decompressed if it is compressed.
pub struct Input {
    inner: Box<dyn Read + Send>,
    compression: Option<Compression>,
    /// Number of compressed bytes read.
    packed: Arc<AtomicU64>,
    /// Number of decompressed bytes returned.
    unpacked: u64,
    max_size: MaxSize,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Input {
    /// Detects the compression of a file, whose position must be at the start.
    ///
    /// # Errors
    /// If the file cannot be read, or starts like a compressed one but is invalid.
    pub fn new(file: File, max_size: MaxSize) -> io::Result<Self> {
        let mut file = file;
        let mut start = Vec::new();
        Read::by_ref(&mut file).take(START_BYTES as u64).read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let whole = Cursor::new(start).chain(file);
        let packed = Arc::new(AtomicU64::new(0));
        let inner: Box<dyn Read + Send> = match compression {
            None => Box::new(whole),
            Some(compression) => {
                let counted = Counted { inner: whole, count: Arc::clone(&packed) };
                let counted = BufReader::with_capacity(1 << 16, counted);
                match compression {
                    Compression::Gzip => Box::new(MultiGzDecoder::new(counted)),
                    Compression::Zstandard => Box::new(Frames::start(counted)?),
                }
            }
        };
        Ok(Self { inner, compression, packed, unpacked: 0, max_size })
    }

    /// Returns the compression format. `None` if the file is not compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Fails if the limit is exceeded.
    fn check(&self) -> io::Result<()> {
        let (most, by_ratio) = match self.max_size {
            MaxSize(Some(most)) => (most, false),
            MaxSize(None) if self.compression.is_none() => return Ok(()),
            MaxSize(None) => {
                let of_ratio = self.packed.load(Ordering::Relaxed).saturating_mul(MAX_RATIO);
                (of_ratio.max(MIN_SIZE_LIMIT), true)
            }
        };
        if self.unpacked > most { Err(io::Error::other(TooLarge { most, by_ratio })) } else { Ok(()) }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.unpacked = self.unpacked.saturating_add(count as u64);
        self.check()?;
        Ok(count)
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Decodes consecutive Zstandard frames.
struct Frames<R: Read> {
    decoder: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Frames<R> {
    fn start(input: R) -> io::Result<Self> {
        Ok(Self { decoder: Some(StreamingDecoder::new(input).map_err(io::Error::other)?) })
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut input) = self.decoder.take().map(StreamingDecoder::into_inner) else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            *self = Self::start(input)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn input(bytes: &[u8], max_size: MaxSize) -> io::Result<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut all = Vec::new();
        Input::new(file.reopen().unwrap(), max_size)?.read_to_end(&mut all)?;
        Ok(all)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A frame with blocks that repeat a byte (RFC 8878, section 3.1.1): 128 KiB each, from four bytes.
    fn zstandard(blocks: u32) -> Vec<u8> {
        let mut frame = [ZSTANDARD, &[0, 0x58]].concat();
        for block in 1..=blocks {
            let head = (1 << 17 << 3) | (1 << 1) | u32::from(block == blocks);
            frame.extend_from_slice(&head.to_le_bytes()[..3]);
            frame.push(b'x');
        }
        frame
    }

    #[test]
    fn compressed_files_are_decompressed() {
        for text in [&b""[..], b"x", b"a text"] {
            assert_eq!(input(text, MaxSize::BY_RATIO).unwrap(), text);
            let two = [gzip(text), gzip(text)].concat();
            assert_eq!(input(&two, MaxSize::BY_RATIO).unwrap(), [text, text].concat());
        }
        let two = [zstandard(1), zstandard(2)].concat();
        assert_eq!(input(&two, MaxSize::BY_RATIO).unwrap(), vec![b'x'; 3 << 17]);
    }

    #[test]
    fn decompression_stops_at_the_limit() {
        let kind = |error: io::Error| *error.get_ref().unwrap().downcast_ref::<TooLarge>().unwrap();
        for bomb in [zstandard(520), gzip(&vec![0; 520 << 17])] {
            let error = kind(input(&bomb, MaxSize::BY_RATIO).unwrap_err());
            assert!(error.by_ratio && error.most >= MIN_SIZE_LIMIT && error.most < 128 << 20, "{error:?}");
            let error = kind(input(&bomb, MaxSize::bytes(1000)).unwrap_err());
            assert_eq!(error, TooLarge { most: 1000, by_ratio: false });
            assert_eq!(input(&bomb, MaxSize::bytes(1 << 30)).unwrap().len(), 520 << 17);
        }
    }

    #[test]
    fn damaged_compressed_data_is_an_error() {
        for damaged in [&[ZSTANDARD, &[0xff; 20]].concat(), ZSTANDARD, GZIP, &gzip(b"a text")[..15]] {
            assert!(input(damaged, MaxSize::BY_RATIO).is_err(), "{damaged:?}");
        }
    }
}
