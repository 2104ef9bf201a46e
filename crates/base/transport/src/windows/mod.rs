//! Windows named pipes: connecting within a deadline, and listening.
//!
//! Source: the Diagnostic IPC specification, "Naming and Location Conventions"; `CreateNamedPipeW` and
//! `GetNamedPipeServerProcessId` on learn.microsoft.com.

mod connect;
mod listener;

pub(crate) use self::connect::connect;
pub use self::listener::Listener;

/// Prefix of pipe names on the local machine.
pub(crate) const PIPES: &str = r"\\.\pipe\";
