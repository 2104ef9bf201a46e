//! Messages and state machines of the .NET Diagnostic IPC protocol, both sides, without I/O.
