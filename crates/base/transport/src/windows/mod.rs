//! Named pipes of Windows: dialling with a deadline, and listening.
//!
//! Source: the Diagnostic IPC specification, "Naming and Location Conventions"; `CreateNamedPipeW` and
//! `GetNamedPipeServerProcessId` on learn.microsoft.com.

mod connect;
mod listener;

pub(crate) use self::connect::connect;
pub use self::listener::Listener;

/// What stands before the names of pipes of this machine.
pub(crate) const PIPES: &str = r"\\.\pipe\";
