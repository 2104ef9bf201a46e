//! The first bytes of every ELF file. Source: `elf(5)`, "ELF header (Ehdr)".

use std::fmt;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::MOST_OFFSET;
use super::segment::{SEGMENT_LEN, Table};

/// Width of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileType(pub u16);

impl FileType {
    /// 2: a program at fixed addresses.
    pub const EXECUTABLE: Self = Self(2);
    /// 3: a shared library, or a program at any address.
    pub const SHARED: Self = Self(3);
    /// 4: the memory of a process.
    pub const CORE: Self = Self(4);
}

/// The processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Machine(pub u16);

impl Machine {
    const NAMES: [(u16, &'static str); 8] = [
        (3, "x86"),
        (21, "ppc64le"),
        (22, "s390x"),
        (40, "arm"),
        (62, "x64"),
        (183, "arm64"),
        (243, "riscv64"),
        (258, "loongarch64"),
    ];

    /// Its name as .NET has it; `None` where .NET does not run.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "machine {}", self.0),
        }
    }
}

/// The header of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Width of addresses.
    pub class: Class,
    /// What it is for.
    pub file_type: FileType,
    /// For which processor.
    pub machine: Machine,
    /// Where the segments are listed; `None` for a 32-bit file.
    pub segments: Option<Table>,
}

impl Header {
    /// Bytes to read for [`decode`](Self::decode). A 32-bit file has 12 fewer in its header.
    pub const LEN: usize = 64;

    /// Reads the first bytes of a file.
    ///
    /// # Errors
    /// It is no ELF file, or a big-endian one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        if r.array("magic")? != *b"\x7fELF" {
            return Err(DecodeError::new(0, "magic", DecodeErrorKind::Invalid("is not that of an ELF file")));
        }
        let class = expect(&mut r, "class", &[(1, Class::Bits32), (2, Class::Bits64)], "1 or 2")?;
        expect(&mut r, "byte order", &[(1, ())], "1 (little-endian)")?;
        r.bytes(10, "identification")?;
        let file_type = FileType(r.u16("file type")?);
        let machine = Machine(r.u16("machine")?);
        let segments = match class {
            Class::Bits32 => None,
            Class::Bits64 => Some(table(&mut r)?),
        };
        Ok(Self { class, file_type, machine, segments })
    }
}

/// What follows the machine in a 64-bit header.
fn table(r: &mut Reader<'_>) -> Result<Table, DecodeError> {
    r.u32("version")?;
    r.u64("entry point")?;
    let offset = file_offset(r, "segment table offset")?;
    let sections = file_offset(r, "section table offset")?;
    r.u32("flags")?;
    r.u16("header size")?;
    let at = r.offset();
    let entry = r.u16("segment entry size")?;
    let count = r.u16("segment count")?;
    if count > 0 && usize::from(entry) != SEGMENT_LEN {
        let kind = DecodeErrorKind::Unexpected { value: u64::from(entry), expected: "56" };
        return Err(DecodeError::new(at, "segment entry size", kind));
    }
    Ok(Table { offset, count, sections })
}

/// An offset that a file can have.
fn file_offset(r: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
    let at = r.offset();
    let (value, limit) = (r.u64(what)?, MOST_OFFSET);
    if value > limit {
        return Err(DecodeError::new(at, what, DecodeErrorKind::TooLarge { value, limit }));
    }
    Ok(value)
}

fn expect<T: Copy>(
    r: &mut Reader<'_>,
    what: &'static str,
    known: &[(u8, T)],
    expected: &'static str,
) -> Result<T, DecodeError> {
    let at = r.offset();
    let value = r.u8(what)?;
    let found = known.iter().find(|(number, _)| *number == value).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        DecodeError::new(at, what, DecodeErrorKind::Unexpected { value: u64::from(value), expected })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of an empty file of this class and type.
    fn header(class: u8, file_type: u8) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, file_type, 0, 62, 0]);
        bytes.resize(Header::LEN, 0);
        bytes
    }

    #[test]
    fn the_kinds_of_files() {
        let library = Header::decode(&header(2, 3)).unwrap();
        assert_eq!((library.file_type, library.machine.to_string()), (FileType::SHARED, "x64".into()));
        assert_eq!(library.segments.unwrap().count, 0);
        let small = Header::decode(&header(1, 3)[..52]).unwrap();
        assert_eq!((small.class, small.segments), (Class::Bits32, None));
        assert_eq!(Machine(8).to_string(), "machine 8");
    }

    #[test]
    fn what_is_not_elf_is_refused() {
        for (bytes, message) in [
            (b"MZ\x90\0\x03\0\0\0".to_vec(), "magic at offset 0: is not that of an ELF file"),
            (b"\x7fE".to_vec(), "magic at offset 0: needs 4 bytes, 2 are left"),
            (header(3, 3), "class at offset 4: is 0x3, expected 1 or 2"),
        ] {
            assert_eq!(Header::decode(&bytes).unwrap_err().to_string(), message);
        }
        let mut big = header(2, 3);
        big[5] = 2;
        let error = Header::decode(&big).unwrap_err();
        assert_eq!(error.to_string(), "byte order at offset 5: is 0x2, expected 1 (little-endian)");
        let mut far = header(2, 4);
        far[32..40].fill(0xff);
        let error = Header::decode(&far).unwrap_err();
        assert!(error.to_string().starts_with("segment table offset at offset 32: is "), "{error}");
        let mut odd = header(2, 4);
        odd[54] = 57;
        odd[56] = 1;
        let error = Header::decode(&odd).unwrap_err();
        assert_eq!(error.to_string(), "segment entry size at offset 54: is 0x39, expected 56");
        for n in 0..58 {
            assert!(Header::decode(&header(2, 3)[..n]).unwrap_err().is_incomplete(), "{n}");
        }
    }
}
