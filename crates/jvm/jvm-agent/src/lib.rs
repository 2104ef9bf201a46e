//! The agent inside a JVM: probes in its classes, a ring of events for each thread, and a sender that tells HQ.
//!
//! A JVM loads this library with `-agentpath:` or through its attach socket. The way in is `entry`, the options are
//! [`options`]; docs/jvm-agent.md is for users, docs/design/jvm-agent.md says why it is built like this.
//!
//! ```text
//!  JVM ──▶ entry ──▶ session: connects, is told what to do, tells the JVM ──▶ hook: filter, rewrite ──▶ probes (probe)
//!                      │                                                                               │
//!                     HQ ◀── stream: messages ◀── drain: all rings, in order ◀── ring: one a thread ◀──┘
//! ```

// Elsewhere there is no agent: the system calls and the binding of names are those of Linux.
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
