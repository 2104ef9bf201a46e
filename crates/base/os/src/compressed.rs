//! Compressed input: recognized by its first bytes, decompressed as it is read, and bounded. A few kilobytes can stand for
//! gigabytes, so what comes out is limited by what went in.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// RFC 1952, section 2.3.1, with the only method there is.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// RFC 8878, section 3.1.1.
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// How many times as large as the compressed data the decompressed data may be.
const MAX_RATIO: u64 = 1000;
/// The number of bytes at the beginning of a file that the first [`Input::read`] returns in one piece, if the file has them.
pub const LOOKED_AT: usize = 4096;
/// So much may come out of any file.
const ALWAYS: u64 = 64 << 20;

/// A format of compressed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Gzip (`.gz`).
    Gzip,
    /// Zstandard (`.zst`).
    Zstandard,
}

impl Compression {
    /// The format of a file that begins like this; `None` if it is not compressed.
    pub fn of(start: &[u8]) -> Option<Self> {
        [(GZIP, Self::Gzip), (ZSTANDARD, Self::Zstandard)]
            .into_iter()
            .find_map(|(magic, compression)| start.starts_with(magic).then_some(compression))
    }

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        }
    }
}

/// The most decompressed data that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxSize(Option<u64>);

impl MaxSize {
    /// 1,000 times the compressed size, and 64 MiB of any file.
    pub const BY_RATIO: Self = Self(None);

    /// So many bytes, whatever the compressed size.
    pub fn bytes(bytes: u64) -> Self {
        Self(Some(bytes))
    }
}

/// An error that says that there is more decompressed data than is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The number of bytes that were read.
    pub most: u64,
    /// Whether that is the limit by ratio.
    pub by_ratio: bool,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, by_ratio } = self;
        let why = if *by_ratio { ", more than 1,000 times the compressed data" } else { "" };
        write!(f, "there are more than {most} bytes of decompressed data{why}")
    }
}

impl std::error::Error for TooLarge {}

/// A file or pipe, decompressed if it begins like a compressed one.
pub struct Input {
    inner: Box<dyn Read + Send>,
    compression: Option<Compression>,
    /// Compressed bytes that were read.
    packed: Arc<AtomicU64>,
    /// Decompressed bytes that were handed out.
    unpacked: u64,
    max_size: MaxSize,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Input {
    /// Looks at the beginning of a file, which is at its beginning.
    ///
    /// # Errors
    /// The file can't be read, or begins like a compressed one and is none.
    pub fn new(file: File, max_size: MaxSize) -> io::Result<Self> {
        let mut file = file;
        let mut start = Vec::new();
        Read::by_ref(&mut file).take(LOOKED_AT as u64).read_to_end(&mut start)?;
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

    /// How the file is compressed; `None` if it is not.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Whether there may be more data; an error at the limit.
    fn check(&self) -> io::Result<()> {
        let (most, by_ratio) = match self.max_size {
            MaxSize(Some(most)) => (most, false),
            MaxSize(None) if self.compression.is_none() => return Ok(()),
            MaxSize(None) => {
                let of_ratio = self.packed.load(Ordering::Relaxed).saturating_mul(MAX_RATIO);
                (of_ratio.max(ALWAYS), true)
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

/// Counts what is read.
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

/// All frames of Zstandard data, one after the other.
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
    fn compressed_files_are_read_as_what_is_in_them() {
        for text in [&b""[..], b"x", b"a text"] {
            assert_eq!(input(text, MaxSize::BY_RATIO).unwrap(), text);
            let two = [gzip(text), gzip(text)].concat();
            assert_eq!(input(&two, MaxSize::BY_RATIO).unwrap(), [text, text].concat());
        }
        let two = [zstandard(1), zstandard(2)].concat();
        assert_eq!(input(&two, MaxSize::BY_RATIO).unwrap(), vec![b'x'; 3 << 17]);
    }

    #[test]
    fn a_bomb_is_not_read_to_its_end() {
        let kind = |error: io::Error| *error.get_ref().unwrap().downcast_ref::<TooLarge>().unwrap();
        for bomb in [zstandard(520), gzip(&vec![0; 520 << 17])] {
            let error = kind(input(&bomb, MaxSize::BY_RATIO).unwrap_err());
            assert!(error.by_ratio && error.most >= ALWAYS && error.most < 128 << 20, "{error:?}");
            let error = kind(input(&bomb, MaxSize::bytes(1000)).unwrap_err());
            assert_eq!(error, TooLarge { most: 1000, by_ratio: false });
            assert_eq!(input(&bomb, MaxSize::bytes(1 << 30)).unwrap().len(), 520 << 17);
        }
    }

    #[test]
    fn what_is_compressed_and_damaged_is_an_error() {
        for damaged in [&[ZSTANDARD, &[0xff; 20]].concat(), ZSTANDARD, GZIP, &gzip(b"a text")[..15]] {
            assert!(input(damaged, MaxSize::BY_RATIO).is_err(), "{damaged:?}");
        }
    }
}
