//! A reaper process between a program and a command that the program starts. It kills all processes that the command
//! started when the program requests it or exits, even by SIGKILL.
//!
//! ```text
//!   program ── socket, the reaper's stdin ──▶ reaper, leader of a process group ──▶ command ──▶ its processes
//! ```
//!
//! This module contains both ends of that socket. The reaper is the program itself, started by [`ProcessReaper`] with
//! arguments that make it call [`run_reaper`]. Windows needs no reaper: a job object serves the same purpose.
//!
//! The reaper reports numbers of four bytes in native byte order on the socket: the `errno` of starting the command (0
//! on success), its process id, and finally its wait status as returned by `waitpid`. The program sends a byte before
//! it asks the command to stop, and closes the socket to have all processes killed.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[cfg(unix)]
mod control;
#[cfg_attr(not(unix), path = "unsupported.rs")]
mod process;

#[cfg(unix)]
pub use control::{Control, ProcessReaper, SupervisedCommand};
pub use process::run_reaper;
