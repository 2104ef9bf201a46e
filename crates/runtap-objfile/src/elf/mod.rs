//! ELF files: the header, the segments, and the notes of a core file. 64 bits, little-endian, as .NET on Linux is.
//!
//! ```text
//! file    := header … segment table … the segments' bytes          the header says where the table is
//! notes   := note*                                                 a segment of type 4
//! note    := u32 owner size  u32 data size  u32 type  owner, 0 to 3 bytes  data, 0 to 3 bytes
//! ```
//!
//! Of a 32-bit file only class, machine and type can be told.

mod core;
mod header;
mod note;
mod segment;

pub use self::core::{CoreProcess, core_process};
pub use header::{Class, FileType, Header, Machine};
pub use note::{Note, Notes, notes};
pub use segment::{Part, Segment, SegmentType, Table, segments};

/// The largest offset that a file can have, as far as the kernel is concerned.
const MOST_OFFSET: u64 = (1 << 63) - 1;
