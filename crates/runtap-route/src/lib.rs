//! Between tools and runtimes: routing, recording and replaying Diagnostic IPC.

pub mod record;
pub mod replay;
