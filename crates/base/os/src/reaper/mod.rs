//! A process between a program and a command that the program starts: the keeper. It ends all that the command has started
//! when the program is gone, even by SIGKILL, or says so.
//!
//! ```text
//!   program ── socket, the keeper's stdin ──▶ keeper, leader of a process group ──▶ command ──▶ its processes
//! ```
//!
//! Owns: both ends of that socket. The keeper is the program itself, started again with arguments by which it calls [`keep`];
//! [`Keeper`] starts it. Refuses to: know what is run, or when it is to end. Windows needs no keeper: a job object does that.
//!
//! On the socket, the keeper reports numbers of four bytes each, in the byte order of the machine: why the command can't be
//! started (an `errno`; 0: it was), its process id, and later how it ended (as `waitpid` has it). The program sends a byte
//! before it has the command end, and closes the socket to have everything ended.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[cfg(unix)]
mod control;
#[cfg_attr(not(unix), path = "unsupported.rs")]
mod process;

#[cfg(unix)]
pub use control::{Control, Keeper, Kept};
pub use process::keep;
