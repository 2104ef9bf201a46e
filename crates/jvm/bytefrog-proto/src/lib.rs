//! Bytefrog, the tracing protocol of Code Pulse for Java programs: messages and state machines of both sides,
//! without I/O.
//!
//! This crate encodes and decodes messages, and enforces which message may be sent when. It opens no socket and
//! reads no clock: the caller moves the bytes and passes the current time. The specification is "Message Protocol"
//! of codedx/bytefrog, which describes version 1. Where the original programs differ from it (bytefrog 884936f,
//! Code Pulse d12eede), the documentation of the item says so.
//!
//! # The protocol in one page
//!
//! The *agent* is a tracer inside a JVM, and *HQ* collects what it reports. The agent opens one control connection
//! and then, to the same address, as many data connections as its configuration requests:
//!
//! ```text
//!   agent                                         HQ
//!     │═ control ═══════════════════════════════════│
//!     │─── hello: version ─────────────────────────▶│
//!     │◀── configuration: run, filters, senders ────│   or error, close
//!     │─── heartbeat: mode I, … each interval ─────▶│
//!     │◀── suspend (optional), start ───────────────│   the program starts
//!     │─── class transformed, ignored, failed ─────▶│
//!     │◀── pause, unpause, suspend, unsuspend, stop │   see [`mode`]
//!     │─── data break: next sequence id ───────────▶│   when suspended
//!     │─── heartbeat: mode X, then close ────────▶│
//!     │═ data, N times ═════════════════════════════│
//!     │─── data hello: run ────────────────────────▶│
//!     │◀── data hello reply ────────────────────────│   or error, close
//!     │─── names, entries, exits, exceptions ──────▶│   …many
//! ```
//!
//! A message is a byte for its ID, followed by fields of fixed size, texts (a 16-bit length and [modified
//! UTF-8](JavaStr)), and tables. Numbers are big-endian. There are no delimiters: nothing can be decoded after an
//! unknown message. Each version is a [`Dialect`]:
//!
//! | hello | sent by | configuration | method exit | more |
//! |---|---|---|---|---|
//! | 1 | bytefrog, Code Pulse 1 | 32-bit length, Java object | 17 bytes with a line; 16 for Code Pulse | |
//! | 2 | Code Pulse 2.0 | 16-bit length, JSON | 16 bytes with a flag | |
//! | 3 | Code Pulse 2.5 | JSON | 16 bytes | source locations |
//! | 4 | Code Pulse 2.7 | JSON | 16 bytes | hello with a project |
//! | 0xF1 | runtap | 32-bit length, JSON | 8 bytes, in a batch | nanoseconds, 32-bit threads, counts, coverage, drops |
//!
//! In versions 1 to 4, entries, exits, exceptions, bubbles, visits and markers have sequence IDs. The IDs are
//! contiguous from 0 over all data connections and wrap after 2^32, but are in no order, not even on one
//! connection. Names may arrive after the events that use them. In F1 each thread has its own sequence and stays on
//! one connection.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

pub mod agent;
mod configuration;
mod decode;
mod decoder;
mod dialect;
mod encode;
mod error;
pub mod f1;
pub mod hq;
mod message;
pub mod mode;
pub mod patterns;
pub mod render;
mod rules;
mod text;

pub use configuration::{Configuration, ConfigurationError, Extension, JavaClass, RecordMode, WhenSlow};
pub use decode::{Limits, decode};
pub use decoder::Decoder;
pub use dialect::{Channel, Dialect, Framing, HELLO_F1, Side, Stream};
pub use encode::{encode, to_bytes};
pub use error::EncodeError;
pub use message::{ClassOutcome, Exit, Location, Message, MessageId, Stamp};
pub use mode::{AgentState, Command, Mode, ModeByte};
pub use rules::{Rule, Violation};
pub use runtap_wire::Severity;
pub use runtap_wire::{DecodeError, DecodeErrorKind};
pub use text::{JavaStr, JavaString};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
