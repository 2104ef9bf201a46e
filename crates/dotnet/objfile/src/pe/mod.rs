//! PE files as .NET uses them: assemblies.
//!
//! ```text
//! file      := "MZ" … u32 at 60: where "PE\0\0" is … header, directories, section table, sections
//! managed   := directory 15 names the CLI header, that names the metadata
//! metadata  := "BSJB" … streams: "#~" tables, "#Strings" names, "#Blob" signatures
//! tables    := which there are, how many rows each has, then the rows without gaps
//! ```
//!
//! Addresses in a PE file are those in memory; the section table says where their bytes are in the file. The storeys:
//! `headers` → `metadata` (streams) → `tables` (rows) → [`Assembly`].

mod assembly;
mod headers;
mod metadata;
mod schema;
mod tables;

use std::fmt;

pub use assembly::{Assembly, AssemblyName, Method, Signature, TypeDef};
use runtap_wire::DecodeError;

/// Why a file can't be read as an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeError {
    /// Not a PE file at all.
    NotPe,
    /// A PE file without .NET in it.
    NotManaged,
    /// It says that it is an assembly, and does not follow the format.
    Malformed(DecodeError),
    /// The metadata is of a kind that compilers do not write, and this crate does not read.
    Uncompressed,
}

impl fmt::Display for PeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPe => f.write_str("it is no PE file"),
            Self::NotManaged => f.write_str("it is a native library, not a .NET assembly"),
            Self::Malformed(error) => write!(f, "it is no whole assembly: {error}"),
            Self::Uncompressed => f.write_str("its metadata is uncompressed"),
        }
    }
}

impl std::error::Error for PeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DecodeError> for PeError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}
