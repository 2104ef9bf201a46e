//! The `dotnet test` pipe protocol of Microsoft.Testing.Platform, both sides, without I/O.
//!
//! This crate encodes and decodes messages, and tracks the state of each connection. It opens no socket, reads no clock
//! and starts no process: the caller moves the bytes. Specification: microsoft/testfx,
//! `docs/mstest-runner-protocol/004-protocol-dotnet-test-pipe.md`. Where `dotnet test` itself behaves differently, the
//! documentation of the item describes the difference.
//!
//! # The protocol in one page
//!
//! The test runner (`dotnet test`, the *server*) listens on a pipe and starts a test application (the *host*) with the
//! pipe's name. The host connects, and so may its child processes: **one application has one or several connections**,
//! which all use the same ExecutionId. On each connection the host sends a request and waits for its reply:
//!
//! ```text
//!   host                                          server
//!     │─── Handshake: versions, host type, ids ─────▶│
//!     │◀── Handshake: the chosen version ────────────│   an empty version: rejected, the host exits with 12
//!     │─── TestSessionEvent: start ─────────────────▶│
//!     │◀── VoidResponse ─────────────────────────────│   the reply to all other requests, even unknown ones
//!     │─── DiscoveredTests │ TestResults │ Artifacts ▶│   …many
//!     │◀── VoidResponse ─────────────────────────────│
//!     │─── TestSessionEvent: end ───────────────────▶│
//!     │◀── VoidResponse ─────────────────────────────│
//!     │  close                                       │
//! ```
//!
//! A frame is an `i32` length of the bytes that follow it, an `i32` id of the message, and a body ([`Frame`],
//! [`FrameReader`]). Everything is little-endian. A body is an *envelope*: a `u16` count of fields, then for each field
//! its `u16` id, `i32` size, and value. A null field is omitted; an empty string is sent with size 0. Therefore every
//! field of a message is an [`Option`] here. Text is UTF-8. A list is an `i32` count followed by the elements, which
//! are envelopes or strings with an `i32` length each. The [`Handshake`] has its own format.
//!
//! | id | message | who sends it | from version |
//! |---|---|---|---|
//! | 0 | [`Message::Void`] | server | 1.0.0 |
//! | 1 | [`TestHostCompleted`] | test host to controller, on a private pipe | |
//! | 2 | [`TestHostProcessId`] | test host to controller, on a private pipe | |
//! | 3 | [`CommandLineOptions`] | host, help mode only | 1.0.0 |
//! | 5 | [`DiscoveredTests`] | host | 1.0.0 |
//! | 6 | [`TestResults`] | host | 1.0.0 |
//! | 7 | [`FileArtifacts`] | host | 1.0.0 |
//! | 8 | [`SessionEvent`] | host | 1.0.0 |
//! | 9 | [`Handshake`] | both | 1.0.0 |
//! | 10 | [`TestsInProgress`] | host; never seen | 1.0.0 |
//! | 11 | [`AzureDevOpsLog`] | host | 1.2.0 |
//! | 12 | [`Display`] | host | 1.3.0 |
//! | 13 | [`Message::WaitForServerControl`] | host, control pipe | 1.4.0 |
//! | 14 | [`ServerControl`] | server, control pipe | 1.4.0 |
//!
//! # Accepted input
//!
//! Real decoders (MTP 1.7 to 2.5) have quirks. This crate accepts everything that a newer host might send, and rejects
//! frames whose remaining bytes would be ambiguous:
//!
//! | input | real decoder | this crate |
//! |---|---|---|
//! | unknown field | skipped | skipped |
//! | unknown field whose size runs past the end | accepted | error: the frame is truncated |
//! | truncated known string | error | error |
//! | negative size | error | error |
//! | field with a larger size than its type | misreads all that follows | reads the type, skips the rest of the field |
//! | field with a smaller size | reads into the next field | error |
//! | size of a list that does not match its content | not checked | larger: the excess is skipped; smaller: error |
//! | field twice | the last one counts | the last one counts; a list: error |
//! | handshake property twice | error | error |
//! | bytes after the last field | ignored | ignored |
//! | invalid UTF-8 | U+FFFD | U+FFFD |
//! | trait without key or value | error | accepted, `None` |
//! | TestHostCompleted of 4 bytes (its old form) | accepted | accepted |
//! | more than 1,000,000 elements in a list | error (2.5.2) | error, for all lists of a frame together |
//! | length word below 4, or above [`Limits::frame`] | waits forever (10.0.401) | error |

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]
#![expect(clippy::doc_markdown, reason = "the names of messages and fields are words here, not code")]

mod envelope;
mod error;
mod frame;
mod handshake;
pub mod host;
mod message;
mod old_layout;
pub mod render;
mod rules;
mod schema;
pub mod server;
mod version;

pub use error::EncodeError;
pub use frame::{Frame, FrameReader, Limits};
pub use handshake::{ExecutionMode, Handshake, HandshakeKey, HostType};
pub use message::{
    AzureDevOpsLog, CommandLineOption, CommandLineOptions, ControlKind, DiscoveredTest, DiscoveredTests,
    DiscoveredTestsWriter, Display, DisplayLevel, FailedTest, FileArtifact, FileArtifacts, Message,
    MessageId, ServerControl, SessionEvent, SessionEventType, SuccessfulTest, TestException,
    TestHostCompleted, TestHostProcessId, TestInProgress, TestResults, TestResultsWriter, TestState,
    TestTrait, TestsInProgress,
};
pub use old_layout::is_old_layout;
pub use rules::{Rule, Violation};
pub use runtap_wire::Severity;
pub use runtap_wire::{DecodeError, DecodeErrorKind};
pub use version::{Version, Versions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
