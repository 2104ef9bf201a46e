//! Core files: identifies the process and whether the file is complete. Reads the header, the table of segments and the
//! notes, a few kilobytes of a usual file. Does not interpret memory.
//!
//! Sources: `elf(5)`; `core(5)`; `struct elf_prpsinfo` and `struct elf_prstatus` of the kernel for 64-bit
//! processors.
//!
//! ```text
//! CORE 3 (process)  4 chars, 4 bytes, u64 flags, u32 uid, u32 gid, i32 pid, i32 parent, i32 group, i32 session,
//!                   char name[16], char arguments[80]
//! CORE 1 (thread)   12 bytes, u16 signal, 2 bytes, u64 pending, u64 held, i32 thread id, …
//! ```

use object::LittleEndian;
use object::elf::{NT_PRPSINFO, NT_PRSTATUS, PT_LOAD, PT_NOTE};
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, NoteIterator, ProgramHeader as _};
use runtap_wire::{DecodeError, DecodeErrorKind, Reader};
use thiserror::Error;

use super::Class;
use super::{FileType, Header, Raw, at_most, part, raw};

const OWNER: &[u8] = b"CORE";
/// The most bytes of notes to read: a thread needs up to four kilobytes, a mapped file a hundred bytes.
const MAX_NOTES: u64 = 64 << 20;
/// The most segments: 1.1 million. Linux allows 65,530 mappings by default.
const MAX_SEGMENTS: u64 = (64 << 20) / SEGMENT;
/// The size of an entry of the segment table in bytes.
const SEGMENT: u64 = 56;
/// The alignment of notes, whatever their segment states: Linux always writes them so.
const NOTE_ALIGNMENT: u64 = 4;

/// A complete core file or minidump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreFile {
    /// The process whose memory the file contains.
    pub process: CoreProcess,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of bytes of memory in the file.
    pub memory: u64,
}

/// The process of a core file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CoreProcess {
    /// The process id, in its own pid namespace if it wrote the file itself. `None` if no note states it.
    pub pid: Option<u32>,
    /// The kernel's short name of the process.
    pub name: String,
    /// The ids of its threads, in the order of the file.
    pub threads: Vec<u32>,
}

/// A reason why a file is not a complete core file or minidump.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoreFileError {
    /// The file ends before its last segment does.
    #[error("truncated: it has {bytes} of {needed} bytes")]
    Cut {
        /// The size of the file in bytes.
        bytes: u64,
        /// The size that its segments need, in bytes.
        needed: u64,
    },
    /// The file does not start like an ELF file.
    #[error("not a core file: {0}")]
    NotElf(#[source] DecodeError),
    /// An ELF file of another type: a program or a library.
    #[error("not a core file, but a program or a library")]
    OtherKind(FileType),
    /// The file does not start like a minidump.
    #[error("not a minidump: {0}")]
    NotMinidump(#[source] DecodeError),
    /// A core file of a 32-bit process.
    #[error("core files of 32-bit processes are not supported")]
    Bits32,
    /// The file is malformed, or claims more than any process has.
    #[error("malformed or truncated: {0}")]
    Malformed(#[from] DecodeError),
}

impl CoreFileError {
    /// Returns whether the file is something else, and not a part of a core file or minidump.
    pub fn is_no_core(&self) -> bool {
        matches!(self, Self::NotElf(_) | Self::OtherKind(_) | Self::NotMinidump(_))
    }
}

impl CoreFile {
    /// Inspects a core file. Reads at most 128 MiB, whatever sizes it claims.
    ///
    /// # Errors
    /// If the file is truncated, is not a core file, or cannot be read.
    pub fn inspect<'data, R: ReadRef<'data>>(data: R) -> Result<Self, CoreFileError> {
        let bytes = data.len().map_err(|()| unreadable(0, "file"))?;
        let head = data.read_bytes_at(0, bytes.min(Header::LEN as u64));
        let header = Header::decode(head.map_err(|()| unreadable(0, "ELF header"))?);
        let header = header.map_err(CoreFileError::NotElf)?;
        if header.file_type != FileType::CORE {
            return Err(CoreFileError::OtherKind(header.file_type));
        }
        if header.class == Class::Bits32 {
            return Err(CoreFileError::Bits32);
        }
        let segments = segments(data, bytes)?;
        let ends = segments.iter().map(Segment::end);
        whole(bytes, ends.max().unwrap_or_default())?;
        let of_kind = |kind| segments.iter().filter(move |segment| segment.0.p_type(LittleEndian) == kind);
        let mut process = CoreProcess::default();
        let mut left = MAX_NOTES;
        for notes in of_kind(PT_NOTE) {
            at_most(notes.size(), left, notes.offset(), "size of the notes")?;
            left = left.saturating_sub(notes.size());
            let content = data.read_bytes_at(notes.offset(), notes.size());
            let content = content.map_err(|()| unreadable(notes.offset(), "notes"))?;
            let said = CoreProcess::read(content, notes.offset())?;
            if said.pid.is_some() {
                process = said;
            }
        }
        let memory = of_kind(PT_LOAD).map(Segment::size).fold(0, u64::saturating_add);
        Ok(Self { process, bytes, memory })
    }
}

fn unreadable(at: u64, what: &'static str) -> DecodeError {
    DecodeError::new(at, what, DecodeErrorKind::Invalid("cannot be read"))
}

/// Checks that a file of `bytes` bytes has all that its segments need.
fn whole(bytes: u64, needed: u64) -> Result<(), CoreFileError> {
    if needed > bytes { Err(CoreFileError::Cut { bytes, needed }) } else { Ok(()) }
}

/// A segment: a part of the memory in the file.
#[derive(Debug, Clone, Copy)]
struct Segment(object::elf::ProgramHeader64<LittleEndian>);

impl Segment {
    fn offset(&self) -> u64 {
        self.0.p_offset(LittleEndian)
    }

    /// The size in the file.
    fn size(&self) -> u64 {
        self.0.p_filesz(LittleEndian)
    }

    fn end(&self) -> u64 {
        self.offset().saturating_add(self.size())
    }
}

fn segments<'data, R: ReadRef<'data>>(data: R, bytes: u64) -> Result<Vec<Segment>, CoreFileError> {
    let header = raw(data)?;
    let sections = header.e_shoff(LittleEndian);
    // If there are very many segments, the first section states their number.
    if header.e_phnum(LittleEndian) == object::elf::PN_XNUM && sections != 0 {
        whole(bytes, sections.saturating_add(64))?;
    }
    let count = part(header.phnum(LittleEndian, data), sections, "segment count", "is missing")?;
    let (at, count) = (header.e_phoff(LittleEndian), u64::from(count));
    at_most(count, MAX_SEGMENTS, sections, "segment count")?;
    whole(bytes, at.saturating_add(count.saturating_mul(SEGMENT)))?;
    let table = header.program_headers(LittleEndian, data);
    let table = part(table, at, "segment table", "has entries of an unknown size, or is truncated")?;
    Ok(table.iter().copied().map(Segment).collect())
}

impl CoreProcess {
    /// Gathers the information in the notes that begin at `offset` of the file.
    fn read(notes: &[u8], offset: u64) -> Result<Self, DecodeError> {
        let mut process = Self::default();
        let all = NoteIterator::<Raw>::new(LittleEndian, NOTE_ALIGNMENT, notes);
        for note in part(all, offset, "notes", "are not read")? {
            let note = part(note, offset, "notes", "contain a truncated one")?;
            // Its position in the notes.
            let within = note.desc().as_ptr().addr().saturating_sub(notes.as_ptr().addr());
            let r = Reader::at(note.desc(), offset.saturating_add(within as u64));
            match (note.name(), note.n_type(LittleEndian)) {
                (OWNER, NT_PRPSINFO) => process.read_process(r)?,
                (OWNER, NT_PRSTATUS) => process.threads.extend(read_thread(r)?),
                _ => {}
            }
        }
        Ok(process)
    }

    fn read_process(&mut self, mut r: Reader<'_>) -> Result<(), DecodeError> {
        r.bytes(24, "process state")?;
        self.pid = u32::try_from(r.i32("process id")?).ok();
        r.bytes(12, "process family")?;
        let name: [u8; 16] = r.array("process name")?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        self.name = String::from_utf8_lossy(name).into_owned();
        Ok(())
    }
}

fn read_thread(mut r: Reader<'_>) -> Result<Option<u32>, DecodeError> {
    r.bytes(32, "thread state")?;
    Ok(u32::try_from(r.i32("thread id")?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u16s(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    fn u64s(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    fn note(kind: u32, data: &[u8]) -> Vec<u8> {
        let size = u32::try_from(data.len()).unwrap();
        let head = [5, size, kind].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let padding = vec![0; data.len().wrapping_neg() % 4];
        [&head, &b"CORE\0\0\0\0"[..], data, &padding].concat()
    }

    fn thread(id: i32) -> Vec<u8> {
        [&[0; 32], &id.to_le_bytes()[..], &[0; 300]].concat()
    }

    fn process(pid: i32) -> Vec<u8> {
        [&[0; 24], &pid.to_le_bytes()[..], &[0; 12], b"dotnet\0\0\0\0\0\0\0\0\0\0", &[0; 80]].concat()
    }

    fn segment(kind: u32, offset: u64, size: u64) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0; 4], &u64s(&[offset, 0, 0, size, size, 1])].concat()
    }

    /// A core file of process 42 with two threads and a page of memory.
    fn core() -> Vec<u8> {
        let notes = [note(3, &process(42)), note(6, b"auxv!"), note(1, &thread(42)), note(1, &thread(43))];
        let notes = notes.concat();
        let notes_at = 64 + 2 * 56;
        let memory_at = notes_at + notes.len() as u64;
        [
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
            u16s(&[4, 62, 1, 0]),
            u64s(&[0, 64, 0]),
            u16s(&[0, 0, 64, 56, 2, 64, 0, 0]),
            segment(4, notes_at, notes.len() as u64),
            segment(1, memory_at, 4096),
            notes,
            vec![7; 4096],
        ]
        .concat()
    }

    #[test]
    fn a_complete_core_file_identifies_its_process() {
        let bytes = core();
        let core = CoreFile::inspect(&bytes[..]).unwrap();
        let CoreProcess { pid, name, threads } = &core.process;
        assert_eq!((*pid, name.as_str(), &threads[..]), (Some(42), "dotnet", &[42, 43][..]));
        assert_eq!((core.bytes, core.memory), (bytes.len() as u64, 4096));
    }

    #[test]
    fn every_truncation_is_detected() {
        let bytes = core();
        for n in 0..bytes.len() {
            match CoreFile::inspect(&bytes[..n]) {
                Err(CoreFileError::NotElf(error)) => {
                    assert!(n < Header::LEN && error.is_incomplete(), "{n}");
                }
                Err(CoreFileError::Cut { bytes: has, needed }) => assert!(has == n as u64 && needed > has),
                other => panic!("{n}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_first_section_counts_many_segments() {
        let mut bytes = core();
        bytes[56..58].fill(0xff);
        // Without sections the number is unknown.
        assert!(matches!(CoreFile::inspect(&bytes[..]), Err(CoreFileError::Malformed(_))));
        let sections = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&sections.to_le_bytes());
        let needed = sections + 64;
        let cut = CoreFileError::Cut { bytes: sections, needed };
        assert_eq!(CoreFile::inspect(&bytes[..]).unwrap_err(), cut);
        let count = |count: u32| [&bytes[..], &[0; 44], &count.to_le_bytes(), &[0; 16]].concat();
        assert_eq!(CoreFile::inspect(&count(2)[..]).unwrap().memory, 4096);
        let error = CoreFile::inspect(&count(u32::MAX)[..]).unwrap_err().to_string();
        assert!(error.contains("segment count at offset") && error.contains("4294967295"), "{error}");
    }

    #[test]
    fn truncated_and_odd_notes_are_reported() {
        assert_eq!(CoreProcess::read(&[], 0).unwrap(), CoreProcess::default());
        let error = CoreProcess::read(&note(1, &[0; 35]), 1000).unwrap_err();
        assert_eq!(error.to_string(), "thread id at offset 1052: needs 4 bytes, 3 are left");
        assert_eq!(CoreProcess::read(&note(3, &process(-1)), 0).unwrap().pid, None);
        let error = CoreProcess::read(b"\x04\0\0\0\xff\xff\xff\xff\x07\0\0\0GNU\0more", 7).unwrap_err();
        assert_eq!(error.to_string(), "notes at offset 7: contain a truncated one");
        assert!(CoreProcess::read(b"\x04\0\0\0", u64::MAX).is_err());
    }

    #[test]
    fn other_files_are_distinguished() {
        let told = |bytes: &[u8]| CoreFile::inspect(bytes).unwrap_err().to_string();
        assert_eq!(told(b"text"), "not a core file: magic at offset 0: is not that of an ELF file");
        let mut library = core();
        library[16] = 3;
        assert_eq!(told(&library), "not a core file, but a program or a library");
        let mut segments = core();
        segments[54] = 57;
        assert!(told(&segments).contains("segment table at offset 64: has entries of an unknown size"));
    }
}
