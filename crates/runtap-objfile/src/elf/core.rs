//! What the notes of a core file say about the process. Sources: `core(5)`; `struct elf_prpsinfo` and
//! `struct elf_prstatus` of the kernel as they are on 64-bit processors.
//!
//! ```text
//! CORE 3 (process)  4 chars, 4 bytes, u64 flags, u32 uid, u32 gid, i32 pid, i32 parent, i32 group, i32 session,
//!                   char name[16], char arguments[80]
//! CORE 1 (thread)   12 bytes, u16 signal, 2 bytes, u64 pending, u64 held, i32 thread id, …
//! ```

use runtap_wire::{DecodeError, Reader};

use super::{Note, Notes};

const OWNER: &[u8] = b"CORE";
const PROCESS: u32 = 3;
const THREAD: u32 = 1;

/// The process that a core file is of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CoreProcess {
    /// Its id, in its own pid namespace if it wrote the file itself; `None` if no note says so.
    pub pid: Option<u32>,
    /// The kernel's short name of it.
    pub name: String,
    /// The ids of its threads, in the order of the file.
    pub threads: Vec<u32>,
}

/// Gathers what the notes say.
///
/// # Errors
/// A note that is cut.
pub fn core_process(notes: Notes<'_>) -> Result<CoreProcess, DecodeError> {
    let mut process = CoreProcess::default();
    for note in notes {
        let note = note?;
        match (note.owner, note.kind) {
            (OWNER, PROCESS) => read_process(&note, &mut process)?,
            (OWNER, THREAD) => process.threads.extend(read_thread(&note)?),
            _ => {}
        }
    }
    Ok(process)
}

fn read_process(note: &Note<'_>, process: &mut CoreProcess) -> Result<(), DecodeError> {
    let mut r = Reader::at(note.data, note.offset);
    r.bytes(24, "process state")?;
    process.pid = u32::try_from(r.i32("process id")?).ok();
    r.bytes(12, "process family")?;
    let name: [u8; 16] = r.array("process name")?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    process.name = String::from_utf8_lossy(name).into_owned();
    Ok(())
}

fn read_thread(note: &Note<'_>) -> Result<Option<u32>, DecodeError> {
    let mut r = Reader::at(note.data, note.offset);
    r.bytes(32, "thread state")?;
    Ok(u32::try_from(r.i32("thread id")?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::notes;

    fn note(kind: u8, data: &[u8]) -> Vec<u8> {
        let size = u8::try_from(data.len()).unwrap();
        [&[5, 0, 0, 0, size, 0, 0, 0, kind, 0, 0, 0], &b"CORE\0\0\0\0"[..], data].concat()
    }

    fn process(pid: i32) -> Vec<u8> {
        [&[0; 24], &pid.to_le_bytes()[..], &[9; 12], b"dotnet\0\0\0\0\0\0\0\0\0\0", &[0; 80]].concat()
    }

    fn thread(id: i32) -> Vec<u8> {
        [&[0; 32], &id.to_le_bytes()[..], &[7; 100]].concat()
    }

    #[test]
    fn a_process_with_two_threads() {
        let bytes =
            [note(3, &process(42)), note(6, b"auxv"), note(1, &thread(42)), note(1, &thread(43))].concat();
        let process = core_process(notes(&bytes, 0)).unwrap();
        assert_eq!(
            (process.pid, process.name.as_str(), &process.threads[..]),
            (Some(42), "dotnet", &[42, 43][..])
        );
    }

    #[test]
    fn notes_that_are_cut_or_odd() {
        assert_eq!(core_process(notes(&[], 0)).unwrap(), CoreProcess::default());
        let error = core_process(notes(&note(1, &[0; 35]), 1000)).unwrap_err();
        assert_eq!(error.to_string(), "thread id at offset 1052: needs 4 bytes, 3 are left");
        assert_eq!(core_process(notes(&note(3, &process(-1)), 0)).unwrap().pid, None);
    }
}
