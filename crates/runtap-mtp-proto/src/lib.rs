//! The pipe protocol between `dotnet test` and the applications of Microsoft.Testing.Platform, both ways, without I/O.
//!
//! An application (the *host*) connects to the socket that its command line names, introduces itself ([`Handshake`]), and
//! sends one request at a time; each has exactly one reply. [`Frames`] makes frames of bytes, [`Message`] values of frames
//! and back, byte for byte as the platform writes them. [`server`] is the side of `dotnet test`: what it must answer, what
//! it may believe, and which rule was broken where something can't be.
//!
//! Facts: microsoft/testfx `docs/mstest-runner-protocol/004-protocol-dotnet-test-pipe.md`, dotnet/sdk
//! `src/Cli/dotnet/Commands/Test/MTP`, and recordings of both.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]

mod code;
mod field;
mod frame;
mod handshake;
mod message;
mod messages;
pub mod server;
mod version;

pub use code::{ControlKind, Level, SessionKind, State, execution_mode, host_type, id};
pub use frame::{BadLength, DEFAULT_MAX_FRAME, Frame, Frames, encode_frame};
pub use handshake::{Handshake, key};
pub use message::Message;
pub use messages::*;
pub use runtap_wire::DecodeError;
pub use version::Version;
