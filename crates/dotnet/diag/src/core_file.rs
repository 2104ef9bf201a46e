//! Verifies the dump that a runtime has written: which process it is of, and whether it is complete. A core file
//! ([`runtap_os::objfile::elf`]), on Windows a minidump ([`runtap_os::objfile::minidump`]).

use std::fs::File;

pub use runtap_os::objfile::elf::{CoreFile, CoreFileError, CoreProcess};
use runtap_os::objfile::{ReadCache, minidump};

/// Inspects a core file, reading a few kilobytes.
///
/// # Errors
/// If the file is truncated, is not a core file, or cannot be read.
pub fn inspect(file: &File) -> Result<CoreFile, CoreFileError> {
    CoreFile::inspect(&ReadCache::new(file))
}

/// Inspects a minidump, reading a few kilobytes.
///
/// # Errors
/// If the file is truncated, is not a minidump, or cannot be read.
pub fn inspect_minidump(file: &File) -> Result<CoreFile, CoreFileError> {
    minidump::inspect(&ReadCache::new(file))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A small sparse file can claim gigabytes of notes, in one piece or in many.
    #[test]
    fn claimed_sizes_are_not_read() {
        let claims = |count: u16, notes: u64| {
            let u64s = |values: &[u64]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
            let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec();
            bytes.extend(u64s(&[0, 64, 0]));
            for field in [0, 0, 64, 56, count, 64, 0, 0] {
                bytes.extend(field.to_le_bytes());
            }
            for _ in 0..count {
                bytes.extend(
                    [&4u32.to_le_bytes()[..], &[0; 4], &u64s(&[1 << 30, 0, 0, notes, 0, 1])].concat(),
                );
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            file.set_len(1 << 40).unwrap();
            inspect(&file).unwrap_err().to_string()
        };
        for (count, notes) in [(1, 1 << 36), (60_000, 12 << 16)] {
            let error = claims(count, notes);
            assert!(error.contains("size of the notes at offset 1073741824: is "), "{error}");
        }
    }
}
