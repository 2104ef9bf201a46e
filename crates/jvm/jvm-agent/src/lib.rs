//! Agent inside a JVM: probes in its classes, a ring of events for each thread, and a sender that reports to HQ.
//!
//! A JVM loads this library with `-agentpath:` or through its attach socket. The entry points are in `entry`, the options in
//! [`options`]. docs/jvm-agent.md is the user documentation; docs/design/jvm-agent.md explains the design.
//!
//! ```text
//!  JVM ──▶ entry ──▶ session: connects, gets commands, changes the JVM ───▶ hook: filter, rewrite ──▶ probes (probe)
//!                      │                                                                               │
//!                     HQ ◀── stream: messages ◀── drain: all rings, in order ◀── ring: one a thread ◀──┘
//! ```

// There is no agent for other systems: the system calls and the symbol binding are Linux's.
#![cfg(target_os = "linux")]

mod clock;
mod control;
mod delegates;
mod drain;
mod entry;
pub mod filter;
mod glibc;
mod hook;
mod jvm;
mod lines;
mod link;
mod losses;
mod names;
mod natives;
pub mod options;
mod probe;
mod region;
mod ring;
mod rings;
mod room;
mod session;
mod silence;
mod stream;
pub mod sys;
mod table;
