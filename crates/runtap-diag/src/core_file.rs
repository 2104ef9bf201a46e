//! Looks into a core file that a runtime says it has written: of which process it is, and whether it is whole.
//!
//! Reads the header, the table of segments and the notes, a few kilobytes of any file. Refuses to interpret memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use runtap_objfile::DecodeError;
use runtap_objfile::elf::{self, FileType, Header, Part, SegmentType};
use thiserror::Error;

pub use runtap_objfile::elf::CoreProcess;

/// The most bytes of notes that are read, in all: a thread takes up to four kilobytes, a mapped file a hundred bytes.
const MOST_NOTES: u64 = 64 << 20;
/// The longest table of segments: 1.1 million of them, where Linux allows 65,530 mappings if nothing is said.
const MOST_SEGMENTS: u64 = 64 << 20;

/// A whole core file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreFile {
    /// Whose memory it is.
    pub process: CoreProcess,
    /// Size of the file.
    pub bytes: u64,
    /// Bytes of memory in it.
    pub memory: u64,
}

/// Why a file is not a whole core file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoreFileError {
    /// It ends before its last segment does.
    #[error("it is cut: it has {bytes} of {needed} bytes")]
    Cut {
        /// Size of the file.
        bytes: u64,
        /// The size that its segments need.
        needed: u64,
    },
    /// A part of it is longer than that of any process: a file with holes can claim what it likes.
    #[error("it can't be looked into: {bytes} bytes of {what} are more than {most}")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// How long it claims to be.
        bytes: u64,
        /// What is read at most.
        most: u64,
    },
    /// It can't be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as a core file does.
    #[error("it is no core file: {0}")]
    NoElf(#[source] DecodeError),
    /// It does not follow the format.
    #[error("it is no whole core file: {0}")]
    Malformed(#[from] DecodeError),
    /// An ELF file of another kind.
    #[error("it is no core file: {0}")]
    OtherKind(&'static str),
    /// A core file of a kind that is not known here.
    #[error("it can't be looked into: {0}")]
    Unsupported(&'static str),
}

impl CoreFileError {
    /// Whether it is something else altogether, and not part of a core file.
    pub fn is_no_core(&self) -> bool {
        matches!(self, Self::NoElf(_) | Self::OtherKind(_))
    }
}

impl CoreFile {
    /// Looks into a file.
    ///
    /// # Errors
    /// It is cut, no core file, or can't be read.
    pub fn inspect(file: &File) -> Result<Self, CoreFileError> {
        let bytes = file.metadata()?.len();
        let read = |part: Part, what, most| -> Result<Vec<u8>, CoreFileError> {
            if part.len as u64 > most {
                return Err(CoreFileError::TooLong { what, bytes: part.len as u64, most });
            }
            let end = part.offset.saturating_add(part.len as u64);
            if end > bytes {
                return Err(CoreFileError::Cut { bytes, needed: end });
            }
            let mut buffer = vec![0; part.len];
            file.read_exact_at(&mut buffer, part.offset)?;
            Ok(buffer)
        };
        let mut head = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX).min(Header::LEN)];
        file.read_exact_at(&mut head, 0)?;
        let header = Header::decode(&head).map_err(CoreFileError::NoElf)?;
        if header.file_type != FileType::CORE {
            return Err(CoreFileError::OtherKind("it is a program or a library"));
        }
        let table = header.segments.ok_or(CoreFileError::Unsupported("it is of a 32-bit process"))?;
        let segments = |part| read(part, "segments", MOST_SEGMENTS);
        let count = table.count_part().map(segments).transpose()?;
        let table = segments(table.part(count.as_deref())?)?;

        let needed = elf::segments(&table).map(|segment| segment.file_end()).max().unwrap_or_default();
        if needed > bytes {
            return Err(CoreFileError::Cut { bytes, needed });
        }
        let of_kind = |kind| elf::segments(&table).filter(move |segment| segment.kind == kind);
        let mut process = CoreProcess::default();
        let mut left = MOST_NOTES;
        for notes in of_kind(SegmentType::NOTE) {
            let len = usize::try_from(notes.file_size).unwrap_or(usize::MAX);
            let content = read(Part { offset: notes.offset, len }, "notes", left)?;
            left -= content.len() as u64;
            let said = elf::core_process(elf::notes(&content, notes.offset))?;
            if said.pid.is_some() {
                process = said;
            }
        }
        let sizes = of_kind(SegmentType::LOAD).map(|segment| segment.file_size);
        let memory = sizes.fold(0, u64::saturating_add);
        Ok(Self { process, bytes, memory })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A core file of process 42 with two threads and a page of memory.
    fn core() -> Vec<u8> {
        let u16s = |values: &[u16]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let u64s = |values: &[u64]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let note = |kind: u32, data: &[u8]| {
            let size = u32::try_from(data.len()).unwrap();
            let head = [5, size, kind].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
            [&head, &b"CORE\0\0\0\0"[..], data].concat()
        };
        let thread = |id: u32| [&[0; 32], &id.to_le_bytes()[..], &[0; 300]].concat();
        let process =
            [&[0; 24], &42u32.to_le_bytes()[..], &[0; 12], b"dotnet\0\0\0\0\0\0\0\0\0\0", &[0; 80]].concat();
        let notes = [note(3, &process), note(1, &thread(42)), note(1, &thread(43))].concat();
        let segment = |kind: u32, offset: u64, size: u64| {
            [&kind.to_le_bytes()[..], &[0; 4], &u64s(&[offset, 0, 0, size, size, 1])].concat()
        };
        let notes_at = 64 + 2 * 56;
        let memory_at = notes_at + notes.len() as u64;
        [
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
            u16s(&[4, 62, 1, 0]),
            u64s(&[0, 64, 0]),
            u16s(&[0, 0, 64, 56, 2, 0, 0, 0]),
            segment(4, notes_at, notes.len() as u64),
            segment(1, memory_at, 4096),
            notes,
            vec![7; 4096],
        ]
        .concat()
    }

    fn inspect(bytes: &[u8]) -> Result<CoreFile, CoreFileError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        CoreFile::inspect(&file)
    }

    #[test]
    fn a_whole_one_tells_its_process() {
        let bytes = core();
        let core = inspect(&bytes).unwrap();
        assert_eq!((core.process.pid, &core.process.threads[..]), (Some(42), &[42, 43][..]));
        assert_eq!((core.bytes, core.memory), (bytes.len() as u64, 4096));
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = core();
        for n in 0..bytes.len() {
            match inspect(&bytes[..n]) {
                Err(CoreFileError::NoElf(error)) => {
                    assert!(n < Header::LEN && error.is_incomplete(), "{n}");
                }
                Err(CoreFileError::Cut { bytes: has, needed }) => assert!(has == n as u64 && needed > has),
                other => panic!("{n}: {other:?}"),
            }
        }
    }

    /// With holes, a small file claims gigabytes of notes, in one piece or in many.
    #[test]
    fn what_is_only_claimed_is_not_read() {
        let claims = |count: u16, notes: u64| {
            let u64s = |values: &[u64]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
            let mut bytes = core();
            bytes.truncate(64);
            bytes[56..58].copy_from_slice(&count.to_le_bytes());
            for _ in 0..count {
                bytes.extend(
                    [&4u32.to_le_bytes()[..], &[0; 4], &u64s(&[1 << 30, 0, 0, notes, 0, 1])].concat(),
                );
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            file.set_len(1 << 40).unwrap();
            CoreFile::inspect(&file).unwrap_err()
        };
        for (count, notes) in [(1, 1 << 36), (60_000, 12 << 16)] {
            let error = claims(count, notes);
            assert!(matches!(error, CoreFileError::TooLong { what: "notes", .. }), "{error}");
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        let told = |bytes: &[u8]| inspect(bytes).unwrap_err().to_string();
        assert_eq!(told(b"text"), "it is no core file: magic at offset 0: is not that of an ELF file");
        let mut library = core();
        library[16] = 3;
        assert_eq!(told(&library), "it is no core file: it is a program or a library");
    }
}
