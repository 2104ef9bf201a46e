//! Between tools and runtimes: routing, recording and replaying Diagnostic IPC.

#![cfg(unix)]

pub mod record;
pub mod replay;
pub mod router;
