//! Safe wrappers of Windows calls that neither the standard library nor tokio provides.
//!
//! - `pipe`: private named pipes, and the processes at their ends.
//! - `job`: groups of processes that are terminated together.
//! - `local`: named pipes for threads.
//! - `console`: the size of a console window.
//! - `random`: unpredictable random numbers.
//! - `file`: the identity of open files, and opening them again.
//! - `socket`: the keep-alive option of TCP sockets.
//! - `process`: the list of processes, and their names, start times and users.
//!
//! `unsafe` code of this kind is only permitted here. Source: the pages of the functions on learn.microsoft.com.

pub mod console;
pub mod file;
mod handle;
pub mod job;
pub mod local;
pub mod pipe;
pub mod process;
pub mod random;
pub mod socket;
mod text;
mod user;
