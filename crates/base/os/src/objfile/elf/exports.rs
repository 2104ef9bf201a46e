//! The exports of an executable, which are the only evidence of a runtime that is linked into the program itself.
//! Source: `elf(5)`, "Section header (Shdr)".

use object::LittleEndian;
use object::elf::{SHF_ALLOC, SHT_STRTAB};
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use runtap_wire::DecodeError;

use super::{at_most, part, raw};

/// The most sections; linkers write fewer.
const MAX_SECTIONS: u64 = 0xffff;
/// The maximum size of the names of exports: usually a few kilobytes; files that claim more are rejected.
const MAX_NAMES_BYTES: u64 = 4 << 20;

/// Returns which of `names` an executable exports. Only uses the names that are loaded with it, so that stripped
/// executables work, too.
///
/// # Errors
/// If the file is not a 64-bit ELF file, or is truncated.
pub fn exports<'data, R: ReadRef<'data>, const N: usize>(
    data: R,
    names: [&str; N],
) -> Result<[bool; N], DecodeError> {
    let strings = dynamic_strings(data)?;
    let has = |name: &str| strings.split(|b| *b == 0).any(|string| string == name.as_bytes());
    Ok(names.map(has))
}

/// Returns the string table of the dynamic symbols, which is the only one that is loaded.
fn dynamic_strings<'data, R: ReadRef<'data>>(data: R) -> Result<&'data [u8], DecodeError> {
    let (header, order) = (raw(data)?, LittleEndian);
    part(header.endian(), 5, "byte order", "is not little-endian")?;
    let at = header.e_shoff(order);
    let cut = "are truncated";
    at_most(part(header.shnum(order, data), at, "sections", cut)?.into(), MAX_SECTIONS, at, "section count")?;
    let sections = part(header.section_headers(order, data), at, "sections", cut)?;
    let is_loaded = |flags: object::elf::SectionFlags| flags.contains(SHF_ALLOC);
    let Some(strings) = sections
        .iter()
        .find(|section| section.sh_type(order) == SHT_STRTAB && is_loaded(section.sh_flags(order)))
    else {
        return Ok(&[]);
    };
    let at = strings.sh_offset(order);
    at_most(strings.sh_size(order), MAX_NAMES_BYTES, at, "size of the names")?;
    part(strings.data(order, data), at, "names", cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, two sections of strings and their content.
    fn elf(size: u64) -> Vec<u8> {
        let strings = b"\0DotNetRuntimeInfo\0xDotNetRuntimeDebugHeader\0";
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[40] = 64; // where the sections are
        bytes[58] = 64; // size of one
        bytes[60] = 2; // how many
        for (flags, offset, size) in [(0, 7, 9), (2, 64 + 128, size)] {
            let mut section = vec![0; 64];
            section[4] = 3;
            section[8..16].copy_from_slice(&u64::to_le_bytes(flags));
            section[24..32].copy_from_slice(&u64::to_le_bytes(offset));
            section[32..40].copy_from_slice(&u64::to_le_bytes(size));
            bytes.extend(section);
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn complete_names_of_the_loaded_table_are_found() {
        let length = u64::try_from(elf(0).len() - 64 - 128).unwrap();
        let names = ["DotNetRuntimeInfo", "DotNetRuntimeDebugHeader", "DotNet"];
        assert_eq!(exports(&elf(length)[..], names).unwrap(), [true, false, false]);
        assert_eq!(exports(&elf(0)[..], names).unwrap(), [false; 3]);
    }

    #[test]
    fn other_files_are_rejected() {
        let whole = elf(40);
        for end in 0..whole.len() {
            // A truncated file is an error, or has fewer exports.
            let _ = exports(&whole[..end], ["DotNetRuntimeInfo"]);
        }
        assert!(exports(&b"#!/bin/sh\n"[..], ["x"]).is_err());
        let claims = exports(&elf(1 << 40)[..], ["x"]).unwrap_err();
        assert!(claims.to_string().starts_with("size of the names at offset 192: is "), "{claims}");
    }
}
