//! The root of the metadata and its streams. Source: ECMA-335 II.24.2.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::PeError;

/// The most streams of a root; compilers write five.
const MAX_STREAMS: u16 = 16;
/// The maximum length of a stream name with its NUL, in bytes.
const MAX_NAME: usize = 32;

/// The streams that this crate needs.
#[derive(Debug)]
pub(super) struct Streams<'a> {
    pub(super) tables: Reader<'a>,
    pub(super) strings: Heap<'a>,
    pub(super) blobs: Heap<'a>,
}

/// Bytes that rows refer to.
#[derive(Debug, Clone)]
pub(super) struct Heap<'a> {
    reader: Reader<'a>,
}

impl<'a> Heap<'a> {
    fn at(&self, index: u32, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let mut r = self.reader.clone();
        r.bytes(usize::try_from(index).unwrap_or(usize::MAX), what)?;
        Ok(r)
    }

    /// Returns a NUL-terminated string, which must be UTF-8.
    pub(super) fn string(&self, index: u32, what: &'static str) -> Result<&'a str, DecodeError> {
        let r = self.at(index, what)?;
        let text = r.rest().split(|byte| *byte == 0).next().unwrap_or_default();
        if text.len() == r.remaining() {
            return Err(r.error(what, DecodeErrorKind::Unterminated));
        }
        std::str::from_utf8(text).map_err(|_invalid| r.error(what, DecodeErrorKind::Invalid("is not UTF-8")))
    }

    /// Returns the bytes after their compressed length.
    pub(super) fn blob(&self, index: u32, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let mut r = self.at(index, what)?;
        let len = compressed(&mut r, what)?;
        r.sub(usize::try_from(len).unwrap_or(usize::MAX), what)
    }
}

/// Reads an unsigned number of one, two or four bytes, as used in signatures (II.23.2).
pub(super) fn compressed(r: &mut Reader<'_>, what: &'static str) -> Result<u32, DecodeError> {
    let first = r.u8(what)?;
    Ok(match first {
        0..=0x7f => u32::from(first),
        0x80..=0xbf => u32::from(u16::from_be_bytes([first & 0x3f, r.u8(what)?])),
        0xc0..=0xdf => {
            let [b, c, d] = r.array(what)?;
            u32::from_be_bytes([first & 0x1f, b, c, d])
        }
        _ => return Err(r.error(what, DecodeErrorKind::Invalid("is not a compressed number"))),
    })
}

impl<'a> Streams<'a> {
    pub(super) fn read(root: &Reader<'a>) -> Result<Self, PeError> {
        let mut r = root.clone();
        if r.array("metadata magic")? != *b"BSJB" {
            let kind = DecodeErrorKind::Invalid("is not BSJB");
            return Err(DecodeError::new(root.offset(), "metadata magic", kind).into());
        }
        r.bytes(8, "metadata root")?;
        let version = r.u32("version length")?;
        r.bytes(usize::try_from(version).unwrap_or(usize::MAX), "version")?;
        r.u16("metadata flags")?;
        let at = r.offset();
        let count = r.u16("stream count")?;
        if count > MAX_STREAMS {
            let kind = DecodeErrorKind::TooLarge { value: u64::from(count), limit: u64::from(MAX_STREAMS) };
            return Err(DecodeError::new(at, "stream count", kind).into());
        }
        let empty = || Heap { reader: Reader::new(&[]) };
        let (mut tables, mut strings, mut blobs) = (None, empty(), empty());
        for _ in 0..count {
            let offset = r.u32("stream offset")?;
            let size = r.u32("stream size")?;
            let name = name(&mut r)?;
            let mut content = root.clone();
            content.bytes(usize::try_from(offset).unwrap_or(usize::MAX), "stream")?;
            let content = content.sub(usize::try_from(size).unwrap_or(usize::MAX), "stream")?;
            match name {
                b"#~" => tables = Some(content),
                b"#-" => return Err(PeError::Uncompressed),
                b"#Strings" => strings = Heap { reader: content },
                b"#Blob" => blobs = Heap { reader: content },
                _ => {}
            }
        }
        let tables = tables.ok_or_else(|| {
            DecodeError::new(root.offset(), "metadata", DecodeErrorKind::Invalid("has no tables"))
        })?;
        Ok(Self { tables, strings, blobs })
    }
}

/// Reads a name that is padded with NULs to a multiple of four.
fn name<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = r.rest().iter().take(MAX_NAME).position(|byte| *byte == 0);
    let len = len.ok_or_else(|| r.error("stream name", DecodeErrorKind::Unterminated))?;
    let name = r.bytes((len + 4) / 4 * 4, "stream name")?;
    Ok(name.split(|byte| *byte == 0).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_numbers() {
        let cases: [(&[u8], u32); 6] = [
            (&[3], 3),
            (&[0x7f], 0x7f),
            (&[0x80, 0x80], 0x80),
            (&[0xae, 0x57], 0x2e57),
            (&[0xc0, 0, 0x40, 0], 0x4000),
            (&[0xdf, 0xff, 0xff, 0xff], 0x1fff_ffff),
        ];
        for (bytes, value) in cases {
            assert_eq!(compressed(&mut Reader::new(bytes), "n"), Ok(value));
        }
        assert!(compressed(&mut Reader::new(&[0xff]), "n").is_err());
        assert!(compressed(&mut Reader::new(&[0xc0, 1]), "n").unwrap_err().is_incomplete());
    }
}
