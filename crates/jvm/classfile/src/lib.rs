//! Java class files, and the classes of JAR files.
//!
//! - [`ClassFile`] reads a class: the constants of every version from JDK 1.0.2 to the newest, fields, methods, all
//!   [attributes](attribute) of the specification, and all instructions and frames of [code]. It borrows the bytes,
//!   determines the structure in one pass, and decodes the rest on request. Errors have the offset and the name of
//!   the field.
//! - [`jar::list`] returns the classes of a JAR file and of inner JAR files, with methods, source files and lines.
//! - [`rewrite::rewrite`] inserts calls of probes into methods, and preserves everything else.
//! - [`assemble::ClassBuilder`] assembles new classes.
//!
//! This crate uses no files, sockets, clocks or threads, and never allocates memory for a count that a file merely
//! claims. It is not a verifier: a class that a virtual machine would reject can be read as long as its structure
//! is valid.
//!
//! # Example
//!
//! ```
//! use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
//! use runtap_classfile::code::Opcode;
//! use runtap_classfile::rewrite::{Probe, Probes, rewrite};
//! use runtap_classfile::{AccessFlags, ClassFile, Version};
//!
//! // A class as from a compiler or a JAR file: `public static int one() { return 1; }`.
//! let mut demo = ClassBuilder::new(Version { major: 52, minor: 0 }, AccessFlags::PUBLIC, "Demo", "java/lang/Object");
//! let mut one = CodeBuilder::new(1, 0);
//! one.line(7).op(Opcode::ICONST_1).op(Opcode::IRETURN);
//! demo.method(AccessFlags::PUBLIC | AccessFlags::STATIC, "one", "()I", Some(&one))?;
//! let bytes = demo.finish()?;
//!
//! let class = ClassFile::parse(&bytes)?;
//! assert_eq!(class.name()?, "Demo");
//! let method = &class.methods()[0];
//! assert_eq!(method.name(class.pool())?, "one");
//! let code = method.code(class.pool())?.expect("it is neither abstract nor native");
//! assert_eq!(code.lines(class.pool())?[0].line_number, 7);
//!
//! // Report its entries and exits, with the ID 42, as calls of `Probe.entry(int)` and `Probe.exit(int, int)`.
//! let probes = Probes {
//!     class: "Probe",
//!     entry: Some(Probe { name: "entry", line: false }),
//!     exit: Some(Probe { name: "exit", line: true }),
//!     ..Probes::default()
//! };
//! let traced = rewrite(&class, &probes, |method| (method.name == "one").then_some(42))?;
//! let traced = traced.bytes.expect("one method was changed");
//! let class = ClassFile::parse(&traced)?;
//! let code = class.methods()[0].code(class.pool())?.expect("it still has code");
//! let opcodes: Vec<_> = code.instructions().map(|found| Ok(found?.1.opcode())).collect::<Result<_, runtap_classfile::DecodeError>>()?;
//! assert_eq!(format!("{opcodes:?}"), "[bipush, invokestatic, iconst_1, bipush, bipush, invokestatic, ireturn]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: *The Java Virtual Machine Specification*, chapters 4 and 6 (cited as, for example, `JVMS 4.7.3`).

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

pub mod assemble;
pub mod attribute;
mod bytes;
mod class;
pub mod code;
mod constants;
mod flags;
pub mod jar;
mod pool;
pub mod rewrite;
pub mod text;

pub use bytes::TooMany;
pub use class::{ClassFile, EncodeError, MAGIC, Member, Version};
pub use constants::Constants;
pub use flags::AccessFlags;
pub use pool::{Constant, Index, MemberRef, Pool};
pub use runtap_wire::{DecodeError, DecodeErrorKind};
pub use text::Text;
