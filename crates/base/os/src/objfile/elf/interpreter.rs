//! The interpreter that a program requests, which is the loader of its C library. Source: `elf(5)`, "Program header
//! (Phdr)".

use object::LittleEndian;
use object::elf::PT_INTERP;
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use runtap_wire::DecodeError;

use super::{at_most, part, raw};

/// The maximum length of a path, in bytes.
const MAX_PATH_LEN: u64 = 4096;

/// Returns the path of the interpreter that a program requests; `None` if the program is statically linked.
///
/// # Errors
/// If the file is not a 64-bit little-endian ELF file, or is truncated.
pub fn interpreter<'data, R: ReadRef<'data>>(data: R) -> Result<Option<&'data [u8]>, DecodeError> {
    let (header, order) = (raw(data)?, LittleEndian);
    part(header.endian(), 5, "byte order", "is not little-endian")?;
    let at = header.e_phoff(order);
    let segments = part(header.program_headers(order, data), at, "segments", "are truncated")?;
    let Some(segment) = segments.iter().find(|segment| segment.p_type(order) == PT_INTERP) else {
        return Ok(None);
    };
    let at = segment.p_offset(order);
    at_most(segment.p_filesz(order), MAX_PATH_LEN, at, "size of the interpreter")?;
    part(segment.interpreter(order, data), at, "interpreter", "is truncated")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, one segment and its text.
    fn elf(kind: u8, size: u64) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64 + 56, 0);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(32, &64u64.to_le_bytes()); // where the segments are
        put(54, &[56, 0, 1, 0]); // size of one, how many
        put(64, &[kind]);
        put(64 + 8, &120u64.to_le_bytes());
        put(64 + 32, &size.to_le_bytes());
        bytes.extend(b"/lib/ld-musl-x86_64.so.1\0");
        bytes
    }

    #[test]
    fn the_requested_interpreter_is_found() {
        assert_eq!(interpreter(&elf(3, 25)[..]), Ok(Some(&b"/lib/ld-musl-x86_64.so.1"[..])));
        assert_eq!(interpreter(&elf(2, 25)[..]), Ok(None));
    }

    #[test]
    fn other_and_truncated_files_are_rejected() {
        let whole = elf(3, 25);
        for end in 0..whole.len() {
            assert!(interpreter(&whole[..end]).is_err(), "{end}");
        }
        assert!(interpreter(&b"#!/bin/sh\n"[..]).is_err());
        let claims = interpreter(&elf(3, 1 << 40)[..]).unwrap_err();
        assert!(claims.to_string().starts_with("size of the interpreter at offset 120: is "), "{claims}");
    }
}
