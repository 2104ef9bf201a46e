//! The table of segments: which part of the file is which part of the memory. Source: `elf(5)`, "Program header
//! (Phdr)", and for more than 65,534 of them "Section header (Shdr)".

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

/// Bytes of one entry.
pub(super) const SEGMENT_LEN: usize = 56;

/// The count that says: the real one is in the first section header.
const ELSEWHERE: u16 = 0xffff;

/// More than the kernel lets a process have mappings, by far.
const MOST: u64 = 1 << 24;

/// Where the table of segments is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub(super) offset: u64,
    pub(super) count: u16,
    pub(super) sections: u64,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: usize,
}

impl Table {
    /// What has to be read to know how many segments there are; `None` if that is known.
    pub fn count_part(&self) -> Option<Part> {
        (self.count == ELSEWHERE && self.sections != 0).then_some(Part { offset: self.sections, len: 64 })
    }

    /// What has to be read for [`segments`]. `count` has the bytes of [`count_part`](Self::count_part), if that was
    /// asked for.
    ///
    /// # Errors
    /// These bytes are cut, or the number is out of any reason.
    pub fn part(&self, count: Option<&[u8]>) -> Result<Part, DecodeError> {
        let count = match count {
            None => u64::from(self.count),
            Some(bytes) => {
                let mut r = Reader::at(bytes, self.sections);
                r.bytes(44, "first section")?;
                u64::from(r.u32("segment count")?)
            }
        };
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(SEGMENT_LEN));
        match len.filter(|_| count <= MOST) {
            Some(len) => Ok(Part { offset: self.offset, len }),
            None => Err(DecodeError::new(
                self.sections,
                "segment count",
                DecodeErrorKind::TooLarge { value: count, limit: MOST },
            )),
        }
    }
}

/// What a segment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentType(pub u32);

impl SegmentType {
    /// 1: memory.
    pub const LOAD: Self = Self(1);
    /// 4: notes.
    pub const NOTE: Self = Self(4);
}

/// A part of the file, and of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// What it is for.
    pub kind: SegmentType,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub file_size: u64,
    /// Its address.
    pub address: u64,
    /// Its bytes in memory; those that the file does not have are zero, or were left out.
    pub memory_size: u64,
}

impl Segment {
    /// Where it ends in the file.
    pub fn file_end(&self) -> u64 {
        self.offset.saturating_add(self.file_size)
    }
}

/// The segments in the bytes of a [`Table`]; what is left behind the last whole entry is passed over.
pub fn segments(table: &[u8]) -> impl Iterator<Item = Segment> {
    let (entries, _rest) = table.as_chunks::<SEGMENT_LEN>();
    entries.iter().filter_map(|entry| segment(entry).ok())
}

fn segment(entry: &[u8; SEGMENT_LEN]) -> Result<Segment, DecodeError> {
    let mut r = Reader::new(entry);
    let kind = SegmentType(r.u32("type")?);
    r.u32("flags")?;
    let offset = r.u64("offset")?;
    let address = r.u64("address")?;
    r.u64("physical address")?;
    Ok(Segment { kind, offset, address, file_size: r.u64("file size")?, memory_size: r.u64("memory size")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_segments_are_counted_elsewhere() {
        let few = Table { offset: 64, count: 3, sections: 0 };
        assert_eq!((few.count_part(), few.part(None)), (None, Ok(Part { offset: 64, len: 168 })));
        let many = Table { offset: 64, count: 0xffff, sections: 1000 };
        assert_eq!(many.count_part(), Some(Part { offset: 1000, len: 64 }));
        let mut section = vec![0; 64];
        section[44..48].copy_from_slice(&70_000u32.to_le_bytes());
        assert_eq!(many.part(Some(&section)), Ok(Part { offset: 64, len: 70_000 * 56 }));
        section[44..48].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = many.part(Some(&section)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "segment count at offset 1000: is 4294967295, more than the allowed 16777216"
        );
        assert!(many.part(Some(&section[..47])).unwrap_err().is_incomplete());
    }

    #[test]
    fn a_segment_that_reaches_too_far_ends_at_the_end_of_numbers() {
        let mut entry = [0; SEGMENT_LEN];
        entry[0] = 1;
        entry[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        entry[32] = 9;
        let all: Vec<Segment> = segments(&[&entry[..], &entry[..20]].concat()).collect();
        assert_eq!((all.len(), all[0].kind, all[0].file_end()), (1, SegmentType::LOAD, u64::MAX));
    }
}
