//! What the other crates ask of an operating system, beside sockets (`runtap-transport`) and other processes
//! (`runtap-discover`).
//!
//! - [`output`]: files that are there only when they are whole, and copies of files that others have made.
//! - [`reaper`]: ends all processes that a command has started.
//! - [`loopback`]: the user at the other end of a TCP connection within the machine.
//! - [`shell`]: quotes arguments of commands that are suggested to people.
//! - [`compressed`]: files that are decompressed as they are read (feature `compressed`).
//! - [`in_a_thread`] is for calls that may take long, so that signals are handled meanwhile (feature `async`, as [`reaper`]).
//! - `windows`: calls of Windows that have no safe form elsewhere; the only place for `unsafe` here.
//!
//! Knows no protocol.

#[cfg(feature = "compressed")]
pub mod compressed;
pub mod loopback;
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

pub use random::{random, random_u64};
#[cfg(feature = "async")]
pub use thread::{allow_many_files, in_a_thread, in_thread_called};
#[cfg(windows)]
pub use user::uid_of;
pub use user::{is_root, my_uid};
