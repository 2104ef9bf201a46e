//! Notes: small records with an owner and a type. Source: `elf(5)`, "Notes (Nhdr)".

use runtap_wire::{DecodeError, Reader};

use super::MOST_OFFSET;

/// One note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    /// Who defines its type (`CORE`, `GNU`), without the final NUL.
    pub owner: &'a [u8],
    /// What the owner means by it.
    pub kind: u32,
    /// Its content.
    pub data: &'a [u8],
    /// Where the content begins in the file.
    pub offset: u64,
}

/// The notes of a segment, one after the other. Ends after the first error.
#[derive(Debug, Clone)]
pub struct Notes<'a> {
    reader: Option<Reader<'a>>,
}

/// The notes in a segment that begins at `offset` of the file.
pub fn notes(bytes: &[u8], offset: u64) -> Notes<'_> {
    Notes { reader: Some(Reader::at(bytes, offset.min(MOST_OFFSET))) }
}

impl<'a> Iterator for Notes<'a> {
    type Item = Result<Note<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut().filter(|reader| !reader.is_empty())?;
        let note = note(reader);
        if note.is_err() {
            self.reader = None;
        }
        Some(note)
    }
}

fn note<'a>(r: &mut Reader<'a>) -> Result<Note<'a>, DecodeError> {
    let owner_size = r.u32("note owner size")?;
    let size = r.u32("note size")?;
    let kind = r.u32("note type")?;
    let owner = padded(r, owner_size, "note owner")?;
    let offset = r.offset();
    let data = padded(r, size, "note")?;
    Ok(Note { owner: owner.split(|byte| *byte == 0).next().unwrap_or_default(), kind, data, offset })
}

/// Bytes that are filled up to a multiple of four; at the very end the filling may be missing.
fn padded<'a>(r: &mut Reader<'a>, size: u32, what: &'static str) -> Result<&'a [u8], DecodeError> {
    let bytes = r.bytes(usize::try_from(size).unwrap_or(usize::MAX), what)?;
    let padding = size.wrapping_neg() % 4;
    r.bytes(r.remaining().min(usize::try_from(padding).unwrap_or_default()), what)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_contents_are_filled_up() {
        let bytes = b"\x05\0\0\0\x03\0\0\0\x07\0\0\0CORE\0\0\0\0abc\0\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0xy";
        let all: Result<Vec<Note<'_>>, DecodeError> = notes(bytes, 100).collect();
        let first = Note { owner: b"CORE", kind: 7, data: b"abc", offset: 120 };
        assert_eq!(all.unwrap(), [first, Note { owner: b"GNU", kind: 1, data: b"xy", offset: 140 }]);
    }

    #[test]
    fn an_offset_beyond_all_files_is_no_trouble() {
        assert!(notes(b"\x04\0\0\0", u64::MAX).next().unwrap().is_err());
    }

    #[test]
    fn a_note_beyond_the_end_is_the_last() {
        let bytes = b"\x04\0\0\0\xff\xff\xff\xff\x07\0\0\0GNU\0more";
        let mut notes = notes(bytes, 0);
        let error = notes.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "note at offset 16: needs 4294967295 bytes, 4 are left");
        assert_eq!(notes.next(), None);
    }
}
