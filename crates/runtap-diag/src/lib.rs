//! Client and embeddable server of the .NET Diagnostic IPC protocol.
