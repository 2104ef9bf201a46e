//! ELF files: the header, core files, exported names. 64 bits, little-endian, as .NET on Linux is.
//!
//! The envelope (header, segments, sections, notes) is read by the `object` crate, through its [`ReadRef`]: of a file
//! only the parts that are needed. What its types do not limit is limited here: a file with holes can claim any length.
//!
//! Of a 32-bit file only class, machine and type can be told.

mod core;
mod exports;
mod header;

pub use self::core::{CoreFile, CoreFileError, CoreProcess};
pub use self::exports::exports;
pub use self::header::{Class, FileType, Header, Machine};

use object::elf::FileHeader64;
use object::read::ReadRef;
use object::read::elf::FileHeader as _;
use object::{LittleEndian, read};

use crate::{DecodeError, DecodeErrorKind};

/// The header as `object` has it.
type Raw = FileHeader64<LittleEndian>;

/// The header of a 64-bit file, with which tables are asked for.
fn raw<'data, R: ReadRef<'data>>(data: R) -> Result<&'data Raw, DecodeError> {
    part(Raw::parse(data), 0, "ELF header", "is not that of a 64-bit ELF file")
}

/// An error of `object` says what is wrong, not where.
fn part<T>(read: read::Result<T>, at: u64, what: &'static str, why: &'static str) -> Result<T, DecodeError> {
    read.map_err(|_in_its_words| DecodeError::new(at, what, DecodeErrorKind::Invalid(why)))
}

/// No more of a table than this.
fn at_most(count: u64, limit: u64, at: u64, what: &'static str) -> Result<(), DecodeError> {
    if count > limit {
        return Err(DecodeError::new(at, what, DecodeErrorKind::TooLarge { value: count, limit }));
    }
    Ok(())
}
