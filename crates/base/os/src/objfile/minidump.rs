//! Minidumps, which Windows writes of a process: identifies the process and whether the file is complete. Reads the header,
//! the directory and a few streams; does not interpret memory.
//!
//! Source: the structures `MINIDUMP_…` of `minidumpapiset.h`, on learn.microsoft.com.
//!
//! ```text
//! header     "MDMP", u32 version, u32 streams, u32 directory, u32 checksum, u32 time, u64 flags
//! directory  u32 kind, u32 size, u32 offset
//! 3 threads  u32 count, then u32 thread id and 44 bytes of each
//! 4 modules  u32 count, then u64 address, u32 size, u32 checksum, u32 time, u32 name and 84 bytes of each; the program first
//! 9 memory   u64 count, u64 offset, then u64 address, u64 size of each; the contents follow each other from the offset on
//! 15 misc    u32 size, u32 flags, u32 process id (if bit 0 of flags is set)
//! name       u32 bytes, UTF-16
//! ```

use object::read::ReadRef;
use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::elf::{CoreFile, CoreFileError, CoreProcess};

const MAGIC: &[u8] = b"MDMP";
const HEADER: u64 = 32;
const ENTRY: u64 = 12;
const THREAD: usize = 48;
const MODULE: u64 = 112;
const RANGE: usize = 16;
/// The most streams that are accepted; writers have fewer kinds.
const MAX_STREAMS: u64 = 4096;
/// The most bytes to read of one stream: four million memory ranges.
const MAX_STREAM_BYTES: u64 = 64 << 20;
/// The maximum length of a name in bytes, more than a Windows path has.
const MAX_NAME_BYTES: u64 = 64 << 10;

const THREADS: u32 = 3;
const MODULES: u32 = 4;
const MEMORY: u32 = 9;
const MISC_INFO: u32 = 15;
const HAS_PROCESS_ID: u32 = 1;

/// Inspects a minidump.
///
/// # Errors
/// If the file is truncated, is not a minidump, or cannot be read.
pub fn inspect<'data, R: ReadRef<'data>>(data: R) -> Result<CoreFile, CoreFileError> {
    let bytes = data.len().map_err(|()| error(0, "file", "cannot be read"))?;
    let magic = read(data, 0, bytes.min(MAGIC.len() as u64), "signature")?;
    if magic != MAGIC {
        return Err(CoreFileError::NotMinidump(error(0, "signature", "is not MDMP")));
    }
    let file = File { data, bytes };
    let mut header = file.part(0, HEADER, "header")?;
    header.bytes(8, "signature")?;
    let (count, at) = (u64::from(header.u32("stream count")?), u64::from(header.u32("directory")?));
    at_most(count, MAX_STREAMS, 8, "stream count")?;
    let mut directory = file.part(at, count.saturating_mul(ENTRY), "directory")?;
    let mut process = CoreProcess::default();
    let mut memory = 0;
    while !directory.is_empty() {
        let kind = directory.u32("stream kind")?;
        let (size, at) = (u64::from(directory.u32("stream size")?), u64::from(directory.u32("stream")?));
        file.whole(at, size)?;
        match kind {
            THREADS => process.threads = threads(file.part(at, size, "threads")?)?,
            MODULES => process.name = file.program(at)?,
            MEMORY => memory = file.memory(file.part(at, size, "memory")?)?,
            MISC_INFO => process.pid = process_id(file.part(at, size, "process")?)?,
            _ => {}
        }
    }
    Ok(CoreFile { process, bytes, memory })
}

#[derive(Clone, Copy)]
struct File<R> {
    data: R,
    bytes: u64,
}

impl<'data, R: ReadRef<'data>> File<R> {
    fn whole(&self, at: u64, size: u64) -> Result<(), CoreFileError> {
        let needed = at.saturating_add(size);
        if needed > self.bytes { Err(CoreFileError::Cut { bytes: self.bytes, needed }) } else { Ok(()) }
    }

    fn part(&self, at: u64, size: u64, what: &'static str) -> Result<Reader<'data>, CoreFileError> {
        self.whole(at, size)?;
        at_most(size, MAX_STREAM_BYTES, at, what)?;
        Ok(Reader::at(read(self.data, at, size, what)?, at))
    }

    /// Returns the name of the first module without its directory; empty if the dump lists no modules.
    fn program(&self, at: u64) -> Result<String, CoreFileError> {
        if self.part(at, 4, "modules")?.u32("module count")? == 0 {
            return Ok(String::new());
        }
        let mut module = self.part(at.saturating_add(4), MODULE - 4, "module")?;
        module.bytes(20, "module")?;
        let at = u64::from(module.u32("module name")?);
        let size = u64::from(self.part(at, 4, "module name")?.u32("module name")?);
        at_most(size, MAX_NAME_BYTES, at, "module name")?;
        let mut name = self.part(at.saturating_add(4), size, "module name")?;
        let mut units = Vec::new();
        while name.remaining() > 1 {
            units.push(name.u16("module name")?);
        }
        let path = String::from_utf16_lossy(&units);
        Ok(path.rsplit(['\\', '/']).next().unwrap_or_default().to_owned())
    }

    /// Returns the number of bytes of memory, and checks that all of it is in the file.
    fn memory(&self, mut ranges: Reader<'_>) -> Result<u64, CoreFileError> {
        let (count, at) = (ranges.u64("range count")?, ranges.u64("memory")?);
        at_most(count, (ranges.remaining() / RANGE) as u64, ranges.offset(), "range count")?;
        let mut size = 0_u64;
        for _ in 0..count {
            ranges.bytes(8, "range")?;
            size = size.saturating_add(ranges.u64("size of the range")?);
        }
        self.whole(at, size)?;
        Ok(size)
    }
}

fn threads(mut all: Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let count = u64::from(all.u32("thread count")?);
    at_most(count, (all.remaining() / THREAD) as u64, all.offset(), "thread count")?;
    let mut threads = Vec::new();
    for _ in 0..count {
        let mut thread = all.sub(THREAD, "thread")?;
        threads.push(thread.u32("thread id")?);
    }
    Ok(threads)
}

fn process_id(mut others: Reader<'_>) -> Result<Option<u32>, DecodeError> {
    others.bytes(4, "process size")?;
    let flags = others.u32("process flags")?;
    let pid = others.u32("process id")?;
    Ok((flags & HAS_PROCESS_ID != 0).then_some(pid))
}

fn read<'data>(
    data: impl ReadRef<'data>,
    at: u64,
    size: u64,
    what: &'static str,
) -> Result<&'data [u8], DecodeError> {
    data.read_bytes_at(at, size).map_err(|()| error(at, what, "cannot be read"))
}

fn error(at: u64, what: &'static str, why: &'static str) -> DecodeError {
    DecodeError::new(at, what, DecodeErrorKind::Invalid(why))
}

/// Rejects a count above a limit.
fn at_most(count: u64, limit: u64, at: u64, what: &'static str) -> Result<(), DecodeError> {
    if count > limit {
        return Err(DecodeError::new(at, what, DecodeErrorKind::TooLarge { value: count, limit }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u32s(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    /// A minidump of process 42, `Größe.exe`, with two threads and a page of memory.
    fn minidump() -> Vec<u8> {
        let name: Vec<u8> = r"C:\x\Größe.exe".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let threads = [u32s(&[2, 7]), vec![0; 44], u32s(&[8]), vec![0; 44]].concat();
        let others = u32s(&[12, 1, 42]);
        let streams_at = 32 + 4 * 12;
        let others_at = streams_at + threads.len();
        let modules_at = others_at + others.len();
        let name_at = modules_at + 112;
        let memory_at = name_at + 4 + name.len();
        let page_at = memory_at + 32;
        let at = |n: usize| u32::try_from(n).unwrap();
        let entry = |kind, size: usize, offset| u32s(&[kind, at(size), at(offset)]);
        [
            b"MDMP".to_vec(),
            u32s(&[0xa793, 4, 32, 0, 0, 0, 0]),
            entry(3, threads.len(), streams_at),
            entry(15, others.len(), others_at),
            entry(4, 112, modules_at),
            entry(9, 32, memory_at),
            threads,
            others,
            u32s(&[1, 0, 0, 0, 0, 0, at(name_at)]),
            vec![0; 84],
            u32s(&[at(name.len())]),
            name,
            u32s(&[1, 0, at(page_at), 0, 0, 0, 4096, 0]),
            vec![7; 4096],
        ]
        .concat()
    }

    #[test]
    fn a_complete_minidump_identifies_its_process() {
        let bytes = minidump();
        let core = inspect(&bytes[..]).unwrap();
        assert_eq!((core.bytes, core.memory), (bytes.len() as u64, 4096));
        assert_eq!((core.process.pid, &*core.process.name), (Some(42), "Größe.exe"));
        assert_eq!(core.process.threads, [7, 8]);
    }

    #[test]
    fn a_truncated_minidump_is_incomplete() {
        let bytes = minidump();
        for n in 0..bytes.len() {
            let error = inspect(&bytes[..n]).unwrap_err();
            assert_eq!(error.is_no_core(), n < 4, "{n}: {error}");
            assert!(
                n < 4 || matches!(error, CoreFileError::Cut { bytes, .. } if bytes == n as u64),
                "{error}"
            );
        }
    }

    #[test]
    fn claimed_sizes_are_not_read() {
        let mut bytes = minidump();
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(inspect(&bytes[..]), Err(CoreFileError::Malformed(_))));
        let mut bytes = minidump();
        bytes[80..84].copy_from_slice(&3_u32.to_le_bytes());
        assert!(inspect(&bytes[..]).unwrap_err().to_string().contains("thread count"));
    }

    #[test]
    fn another_file_is_rejected() {
        let error = inspect(&b"MZ is a program"[..]).unwrap_err();
        assert!(error.is_no_core());
        assert_eq!(error.to_string(), "not a minidump: signature at offset 0: is not MDMP");
    }
}
