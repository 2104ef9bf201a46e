//! The calls of Windows that have no safe form in the standard library or in tokio, each behind a safe function.
//!
//! - `pipe`: named pipes that only their owner can open, who is at the other end of one, whether one is there.
//! - `job`: processes that end together.
//! - `local`: named pipes for threads.
//! - `console`: how wide it is. `random`: numbers that nobody can foresee.
//! - `file`: which file an open one is, and the same one opened again.
//! - `socket`: an option of TCP.
//! - `process`: which processes there are, what they are called, since when they run, and whose they are.
//!
//! The only place for `unsafe` of this kind. Refuses to know a protocol, a name of a pipe, or what a process is for.
//! Source: the pages of the functions on learn.microsoft.com.

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
