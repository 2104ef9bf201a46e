//! Operating system interfaces other than sockets (`runtap-transport`) and process discovery (`runtap-discover`).
//!
//! - [`output`]: files that appear only when complete, and sparse copies of files.
//! - [`reaper`]: kills all processes started by a command.
//! - [`loopback`]: the user at the other end of a local TCP connection.
//! - [`shell`]: quotes the arguments of suggested commands.
//! - [`compressed`]: files that are decompressed as they are read (feature `compressed`).
//! - [`exit_code`]: the exit code of a command, including the signal that terminated it.
//! - [`in_a_thread`]: runs slow calls on a thread so that signals are still handled (feature `async`, like [`reaper`]).
//! - [`objfile`]: facts about ELF files, cores, minidumps and assemblies (feature `objfile`).
//! - `windows`: safe wrappers of Windows calls; the only module with `unsafe` code.
//!
//! This crate is independent of all protocols.

#[cfg(feature = "compressed")]
pub mod compressed;
mod exit_code;
pub mod loopback;
#[cfg(feature = "objfile")]
pub mod objfile;
pub mod output;
mod random;
#[cfg(feature = "async")]
pub mod reaper;
pub mod shell;
#[cfg(feature = "async")]
mod thread;
#[cfg_attr(unix, path = "user/unix.rs")]
#[cfg_attr(windows, path = "user/windows.rs")]
mod user;
#[cfg(windows)]
pub mod windows;

pub use exit_code::exit_code;
pub use random::{random, random_u64};
#[cfg(feature = "async")]
pub use thread::{allow_many_files, in_a_thread, in_named_thread};
#[cfg(windows)]
pub use user::uid_of;
pub use user::{is_root, my_uid};
