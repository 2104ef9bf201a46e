//! Identifies the process of a core dump.
//!
//! Owns: the process id in the notes of a 64-bit little-endian ELF core (System V ABI, chapter 5; `elf.h` of Linux).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use runtap_wire::Reader;

const ET_CORE: u16 = 4;
const PT_NOTE: u32 = 4;
const NT_PRPSINFO: u32 = 3;
/// Offset of `pr_pid` in `struct elf_prpsinfo`: after four bytes, the flags and two ids.
const PID: usize = 24;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// Maximum size of notes, which contain registers and file names, not memory.
const LONGEST_NOTES: u64 = 64 << 20;

/// Returns the id of the process whose core is at `path`; `None` if the file is not a core or contains no process id.
pub(crate) fn process_id(path: &Path) -> io::Result<Option<u32>> {
    let mut file = File::open(path)?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let Some((offset, count)) = program_headers(&header) else { return Ok(None) };
    file.seek(SeekFrom::Start(offset))?;
    let mut table = vec![0; PROGRAM_HEADER * usize::from(count)];
    file.read_exact(&mut table)?;
    for entry in table.chunks(PROGRAM_HEADER) {
        let Some((offset, size)) = notes(entry) else { continue };
        let mut notes = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.by_ref().take(size.min(LONGEST_NOTES)).read_to_end(&mut notes)?;
        if let Some(pid) = pid_in(&notes) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

/// Returns the offset of the program headers, and their number.
fn program_headers(header: &[u8]) -> Option<(u64, u16)> {
    let mut r = Reader::new(header);
    let is_core =
        r.bytes(16, "ident").ok()?.starts_with(b"\x7fELF\x02\x01") && r.u16("type").ok()? == ET_CORE;
    r.bytes(14, "machine, version, entry").ok()?;
    let offset = r.u64("program headers").ok()?;
    r.bytes(16, "sections, flags, sizes").ok()?;
    is_core.then_some((offset, r.u16("count").ok()?))
}

/// Returns the offset of the notes of a program header, and their size.
fn notes(entry: &[u8]) -> Option<(u64, u64)> {
    let mut r = Reader::new(entry);
    let kind = r.u32("type").ok()?;
    r.u32("flags").ok()?;
    let offset = r.u64("offset").ok()?;
    r.bytes(16, "addresses").ok()?;
    (kind == PT_NOTE).then_some((offset, r.u64("size").ok()?))
}

fn pid_in(notes: &[u8]) -> Option<u32> {
    let mut r = Reader::new(notes);
    loop {
        let name = padded(r.u32("name size").ok()?)?;
        let content = padded(r.u32("content size").ok()?)?;
        let kind = r.u32("type").ok()?;
        r.bytes(name, "name").ok()?;
        let content = r.bytes(content, "content").ok()?;
        if kind == NT_PRPSINFO {
            return Some(u32::from_le_bytes(*content.get(PID..)?.first_chunk()?));
        }
    }
}

fn padded(size: u32) -> Option<usize> {
    usize::try_from(size).ok()?.checked_next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(pid: u32) -> Vec<u8> {
        let mut file = vec![0; HEADER + PROGRAM_HEADER];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[16] = 4;
        file[32] = 64;
        file[56] = 1;
        file[64] = 4;
        file[72] = 120;
        let mut notes = Vec::new();
        for (kind, content) in
            [(1, vec![7; 9]), (NT_PRPSINFO, [vec![0; PID], pid.to_le_bytes().to_vec()].concat())]
        {
            notes.extend([5, u32::try_from(content.len()).unwrap(), kind].map(u32::to_le_bytes).concat());
            notes.extend(b"CORE\0\0\0\0");
            notes.extend(&content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        file[96] = u8::try_from(notes.len()).unwrap();
        file.extend(notes);
        file
    }

    #[test]
    fn finds_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("core");
        std::fs::write(&path, core(4242)).unwrap();
        assert_eq!(process_id(&path).unwrap(), Some(4242));
        let mut program = core(4242);
        program[16] = 2;
        std::fs::write(&path, program).unwrap();
        assert_eq!(process_id(&path).unwrap(), None);
        std::fs::write(&path, &core(1)[..100]).unwrap();
        assert!(process_id(&path).is_err());
    }
}
