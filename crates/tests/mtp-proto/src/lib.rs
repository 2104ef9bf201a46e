//! The `dotnet test` pipe of Microsoft.Testing.Platform, both sides, without I/O.
//!
//! This crate turns values into bytes and bytes into values, and knows whose turn it is on a connection. It opens no
//! socket, reads no clock and starts no process: the caller moves the bytes. Specification: microsoft/testfx,
//! `docs/mstest-runner-protocol/004-protocol-dotnet-test-pipe.md`; where `dotnet test` itself does something else, the
//! documentation of the item says so.
//!
//! # The protocol in one page
//!
//! Whoever runs tests (`dotnet test`, the *server*) listens on a pipe and starts a test application (the *host*) with the
//! pipe's name. The host connects, and so may its child processes: **one application is one or several connections**, which
//! all carry the same ExecutionId. On each of them the host sends a request and waits for its reply:
//!
//! ```text
//!   host                                          server
//!     │─── Handshake: versions, host type, ids ─────▶│
//!     │◀── Handshake: the chosen version ────────────│   an empty version: rejected, the host exits with 12
//!     │─── TestSessionEvent: start ─────────────────▶│
//!     │◀── VoidResponse ─────────────────────────────│   so is every other request answered, unknown ones too
//!     │─── DiscoveredTests │ TestResults │ Artifacts ▶│   …many
//!     │◀── VoidResponse ─────────────────────────────│
//!     │─── TestSessionEvent: end ───────────────────▶│
//!     │◀── VoidResponse ─────────────────────────────│
//!     │  close                                       │
//! ```
//!
//! A frame is an `i32` length that counts what follows it, an `i32` id of the message, and a body
//! ([`Frame`], [`FrameReader`]). Everything is little-endian. A body is an *envelope*: a `u16` count of fields, then for
//! each its `u16` id, `i32` size, and value. A field that is null is not there; an empty string is there with size 0. So
//! every field of a message is an [`Option`] here. Text is UTF-8; a list is an `i32` count and that many envelopes, or
//! strings with an `i32` length each. The [`Handshake`] has a form of its own.
//!
//! | id | message | who sends it | from version |
//! |---|---|---|---|
//! | 0 | [`Message::Void`] | server | 1.0.0 |
//! | 1 | [`TestHostCompleted`] | test host to controller, on a pipe of their own | |
//! | 2 | [`TestHostProcessId`] | the same | |
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
//! # What is accepted
//!
//! Real decoders (MTP 1.7 to 2.5) have quirks. A frame is never refused for what a newer host might send, and always
//! refused where the rest of it would be guesswork:
//!
//! | input | real decoder | this crate |
//! |---|---|---|
//! | unknown field | skipped | skipped |
//! | unknown field whose size runs past the end | accepted | error: the frame is cut |
//! | known string that is cut | error | error |
//! | negative size | error | error |
//! | field with a larger size than its type has | misreads all that follows | reads the type, skips the rest of the field |
//! | field with a smaller size | reads into the next field | error |
//! | size of a list that does not match its content | not checked | a longer one is skipped over, a shorter one is an error |
//! | field twice | the last one counts | the last one counts; a list: error |
//! | handshake property twice | error | error |
//! | bytes after the last field | ignored | ignored |
//! | invalid UTF-8 | U+FFFD | U+FFFD |
//! | trait without key or value | error | accepted, `None` |
//! | TestHostCompleted of 4 bytes (its old form) | accepted | accepted |
//! | more than 1,000,000 elements in a list | error (2.5.2) | error, for all lists of a frame together |
//! | length word below 4, or above [`Limits::frame`] | waits for ever (10.0.401) | error |

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
    MessageId, ServerControl, SessionEvent, SessionEventType, State, SuccessfulTest, TestException,
    TestHostCompleted, TestHostProcessId, TestInProgress, TestResults, TestResultsWriter, TestTrait,
    TestsInProgress,
};
pub use old_layout::is_old_layout;
pub use rules::{Rule, Violation};
pub use runtap_wire::Severity;
pub use runtap_wire::{DecodeError, DecodeErrorKind};
pub use version::{Version, Versions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
