//! PE files as .NET uses them: assemblies.
//!
//! ```text
//! file      := "MZ" … u32 at 60: where "PE\0\0" is … header, directories, section table, sections
//! managed   := directory 15 points to the CLI header, which points to the metadata
//! metadata  := "BSJB" … streams: "#~" tables, "#Strings" names, "#Blob" signatures
//! tables    := a mask of the present tables, the row count of each, then the rows without gaps
//! ```
//!
//! Addresses in a PE file are memory addresses; the section table maps them to positions in the file. The layers:
//! `headers` → `metadata` (streams) → `tables` (rows) → [`Assembly`].

mod assembly;
mod headers;
mod metadata;
mod schema;
mod tables;

use std::fmt;

pub use assembly::{Assembly, AssemblyName, Method, Signature, TypeDef};
use runtap_wire::DecodeError;

/// A reason why a file cannot be read as an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeError {
    /// The file is not a PE file.
    NotPe,
    /// The file is a PE file without .NET metadata.
    NotManaged,
    /// The file claims to be an assembly, but is malformed.
    Malformed(DecodeError),
    /// The metadata has an uncompressed layout, which compilers do not write, and this crate does not support.
    Uncompressed,
}

impl fmt::Display for PeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPe => f.write_str("not a PE file"),
            Self::NotManaged => f.write_str("a native library, not a .NET assembly"),
            Self::Malformed(error) => write!(f, "malformed or truncated: {error}"),
            Self::Uncompressed => f.write_str("uncompressed metadata"),
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
