//! ELF files: the header, core files, exported names, and the requested interpreter. 64-bit and little-endian, like .NET on Linux.
//!
//! The `object` crate reads the envelope (header, segments, sections, notes) through its [`ReadRef`], so that only the
//! needed parts of a file are read. Sizes that its types do not limit are limited here: a sparse file can claim any length.
//!
//! Of a 32-bit file only class, machine and type are known.

mod core;
mod exports;
mod header;
mod interpreter;

pub use self::core::{CoreFile, CoreFileError, CoreProcess};
pub use self::exports::exports;
pub use self::header::{Class, FileType, Header, Machine};
pub use self::interpreter::interpreter;

use object::elf::FileHeader64;
use object::read::ReadRef;
use object::read::elf::FileHeader as _;
use object::{LittleEndian, read};

use super::{DecodeError, DecodeErrorKind};

/// The header type of `object`.
type Raw = FileHeader64<LittleEndian>;

/// Returns the header of a 64-bit file, for access to its tables.
fn raw<'data, R: ReadRef<'data>>(data: R) -> Result<&'data Raw, DecodeError> {
    part(Raw::parse(data), 0, "ELF header", "is not that of a 64-bit ELF file")
}

/// Adds the position to an error of `object`.
fn part<T>(read: read::Result<T>, at: u64, what: &'static str, why: &'static str) -> Result<T, DecodeError> {
    read.map_err(|_in_its_words| DecodeError::new(at, what, DecodeErrorKind::Invalid(why)))
}

/// Rejects a count above a limit.
fn at_most(count: u64, limit: u64, at: u64, what: &'static str) -> Result<(), DecodeError> {
    if count > limit {
        return Err(DecodeError::new(at, what, DecodeErrorKind::TooLarge { value: count, limit }));
    }
    Ok(())
}
