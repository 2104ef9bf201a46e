//! The first bytes of every ELF file. Source: `elf(5)`, "ELF header (Ehdr)".

use std::fmt;

use object::LittleEndian;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;
use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::part;

/// The width of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// The type of an ELF file.
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

/// The processor of an ELF file.
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

    /// Returns the name that .NET uses. `None` if .NET does not support the processor.
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
    /// The width of addresses.
    pub class: Class,
    /// The type of the file.
    pub file_type: FileType,
    /// The processor.
    pub machine: Machine,
}

impl Header {
    /// The number of bytes to read for [`decode`](Self::decode). The header of a 32-bit file is 12 bytes shorter.
    pub const LEN: usize = 64;

    /// Decodes the first bytes of a file.
    ///
    /// # Errors
    /// If the file is not an ELF file, is big-endian, or is truncated.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        if r.array("magic")? != object::elf::ELFMAG {
            return Err(DecodeError::new(0, "magic", DecodeErrorKind::Invalid("is not that of an ELF file")));
        }
        match r.u8("class")? {
            1 => Self::of(Class::Bits32, FileHeader32::<LittleEndian>::parse(bytes), bytes),
            2 => Self::of(Class::Bits64, FileHeader64::<LittleEndian>::parse(bytes), bytes),
            value => {
                let kind = DecodeErrorKind::Unexpected { value: value.into(), expected: "1 or 2" };
                Err(DecodeError::new(4, "class", kind))
            }
        }
    }

    fn of<H: FileHeader<Endian = LittleEndian>>(
        class: Class,
        read: object::read::Result<&H>,
        bytes: &[u8],
    ) -> Result<Self, DecodeError> {
        let (available, needed) = (bytes.len() as u64, size_of::<H>() as u64);
        if available < needed {
            let kind = DecodeErrorKind::UnexpectedEnd { needed, available };
            return Err(DecodeError::new(0, "ELF header", kind));
        }
        let header = part(read, 0, "ELF header", "has an unknown version")?;
        let order = part(header.endian(), 5, "byte order", "is not little-endian")?;
        let (file_type, machine) = (header.e_type(order).0, header.e_machine(order).0);
        Ok(Self { class, file_type: FileType(file_type), machine: Machine(machine) })
    }
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
    fn file_types_are_decoded() {
        let library = Header::decode(&header(2, 3)).unwrap();
        assert_eq!((library.file_type, library.machine.to_string()), (FileType::SHARED, "x64".into()));
        let small = Header::decode(&header(1, 3)[..52]).unwrap();
        assert_eq!(small.class, Class::Bits32);
        assert_eq!(Machine(8).to_string(), "machine 8");
    }

    #[test]
    fn other_files_are_rejected() {
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
        assert_eq!(error.to_string(), "byte order at offset 5: is not little-endian");
        for n in 0..Header::LEN {
            assert!(Header::decode(&header(2, 3)[..n]).unwrap_err().is_incomplete(), "{n}");
        }
    }
}
