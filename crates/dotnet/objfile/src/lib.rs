//! What has to be known of a file before a runtime is asked to load it, or after a runtime has written it.
//!
//! - [`elf`]: what an ELF file is for, which names it exports, and what a core file says about its process: id, name,
//!   threads, and whether it is whole.
//! - [`minidump`]: the same of what Windows writes of a process.
//! - [`pe`]: whether a PE file is a managed assembly, for which processor, what it refers to, and which types and
//!   methods it has.
//!
//! Nothing here touches a file: parts are asked for by [`ReadRef`], which slices and [`ReadCache`]s of files have. The
//! envelopes of both formats are read by the `object` crate (docs/design/object-files.md). It changes nothing, loads nothing, and judges nothing: whether a runtime would take the file is for the
//! caller to say. Not for disassembly, symbols or debug information.
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
