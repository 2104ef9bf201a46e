//! What an executable exports: the only thing that gives a runtime away that is linked into the program itself.
//! Reads a few kilobytes of the file, 64-bit little-endian only. Source: `elf(5)`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Names of exports take a few kilobytes; a file that claims more is not one of ours.
const LONGEST: usize = 4 << 20;
const SECTION: usize = 64;
const SHT_STRTAB: u32 = 3;
const SHF_ALLOC: u64 = 2;

/// Which of `names` are exported by the executable.
///
/// # Errors
/// When it can't be read, or is no such file.
pub(super) fn exports<const N: usize>(file: &File, names: [&str; N]) -> io::Result<[bool; N]> {
    let strings = dynamic_strings(file)?;
    let has = |name: &str| strings.split(|b| *b == 0).any(|string| string == name.as_bytes());
    Ok(names.map(has))
}

/// The string table of the dynamic symbols: the only one that is loaded.
fn dynamic_strings(file: &File) -> io::Result<Vec<u8>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    // Magic, 64 bits, little-endian; and the size of a section's header.
    if !head.starts_with(b"\x7fELF\x02\x01") || number(&head, 58, 2)? != SECTION as u64 {
        return Err(invalid());
    }
    let count = usize::try_from(number(&head, 60, 2)?).map_err(|_too_many| invalid())?;
    let mut sections = vec![0; count * SECTION];
    file.read_exact_at(&mut sections, number(&head, 40, 8)?)?;
    for section in sections.chunks_exact(SECTION) {
        let (kind, flags) = (number(section, 4, 4)?, number(section, 8, 8)?);
        if kind == u64::from(SHT_STRTAB) && flags & SHF_ALLOC != 0 {
            let size = usize::try_from(number(section, 32, 8)?).ok().filter(|size| *size <= LONGEST);
            let mut strings = vec![0; size.ok_or_else(invalid)?];
            file.read_exact_at(&mut strings, number(section, 24, 8)?)?;
            return Ok(strings);
        }
    }
    Ok(Vec::new())
}

fn number(bytes: &[u8], at: usize, length: usize) -> io::Result<u64> {
    let field = bytes.get(at..at + length).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// A header, two sections of strings and their content.
    fn elf(size: u64) -> Vec<u8> {
        let strings = b"\0DotNetRuntimeInfo\0xDotNetRuntimeDebugHeader\0";
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[40] = 64; // where the sections are
        bytes[58] = 64; // size of one
        bytes[60] = 2; // how many
        for (flags, offset, size) in [(0, 7, 9), (SHF_ALLOC, 64 + 128, size)] {
            let mut section = vec![0; SECTION];
            section[4] = 3;
            section[8..16].copy_from_slice(&flags.to_le_bytes());
            section[24..32].copy_from_slice(&u64::to_le_bytes(offset));
            section[32..40].copy_from_slice(&u64::to_le_bytes(size));
            bytes.extend(section);
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn whole_names_of_the_loaded_table_count() {
        let length = u64::try_from(elf(0).len() - 64 - 128).unwrap();
        let names = ["DotNetRuntimeInfo", "DotNetRuntimeDebugHeader", "DotNet"];
        assert_eq!(exports(&file(&elf(length)), names).unwrap(), [true, false, false]);
        assert_eq!(exports(&file(&elf(0)), names).unwrap(), [false; 3]);
    }

    #[test]
    fn other_files_are_refused() {
        let whole = elf(40);
        for end in 0..whole.len() {
            // A cut file is an error, or says less.
            let _ = exports(&file(&whole[..end]), ["DotNetRuntimeInfo"]);
        }
        assert!(exports(&file(b"#!/bin/sh\n"), ["x"]).is_err());
        assert!(exports(&file(&elf(1 << 40)), ["x"]).is_err(), "no memory is taken for what is not there");
    }

    #[test]
    fn this_program_is_no_runtime() {
        let me = File::open("/proc/self/exe").unwrap();
        assert_eq!(exports(&me, ["DotNetRuntimeInfo"]).unwrap(), [false]);
    }
}
