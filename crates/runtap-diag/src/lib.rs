//! Client and embeddable server of the .NET Diagnostic IPC protocol.

pub mod providers;
