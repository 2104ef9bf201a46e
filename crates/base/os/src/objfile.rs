//! Inspects object files before a runtime loads them, or after a runtime has written them.
//!
//! - [`elf`]: the type of an ELF file, the names it exports, the loader it requests, and the process of a core file: its id, name
//!   and threads, and whether the file is complete.
//! - [`minidump`]: the process of a Windows minidump, and whether the file is complete.
//! - [`pe`]: whether a PE file is a managed assembly, its processor, its references, and its types and
//!   methods.
//!
//! Nothing here opens a file: data is read through [`ReadRef`], which slices and [`ReadCache`]s of files implement. The
//! `object` crate reads the envelopes of both formats (docs/design/object-files.md). Whether a runtime would accept a file
//! is for the caller to decide. No disassembly, symbols or debug information.
//!
//! Sources: `elf(5)`, `core(5)` and the kernel's `elfcore.h`; the PE format of Microsoft; ECMA-335, partition II,
//! chapters 22 to 25.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

pub mod elf;
pub mod minidump;
pub mod pe;

pub use object::read::{ReadCache, ReadRef};
pub use runtap_wire::{DecodeError, DecodeErrorKind};
