//! The .NET Diagnostic IPC protocol, both sides, without I/O.
//!
//! This crate converts messages to bytes and back, and tracks which side of a connection sends next. It opens
//! no socket, reads no clock and starts no thread: the caller moves the bytes (`runtap-diag` does so on tokio).
//! Specification: dotnet/diagnostics, `documentation/design-docs/ipc-protocol.md`.
//!
//! # The protocol in one page
//!
//! A .NET process listens on a local socket (a named pipe on Windows). **One connection serves one command**: one
//! request, one reply, and for some commands a *continuation*, which is raw bytes instead of messages.
//!
//! ```text
//!   client                                        runtime
//!     │  connect                                     │
//!     │─── header │ payload ────────────────────────▶│   one write: a half-sent message blocks all clients
//!     │                                              │
//!     │◀── header 0xFF00 (OK) │ payload ─────────────│   or 0xFFFF (Error) │ i32 HRESULT
//!     │◀── continuation: ────────────────────────────│   ProcessEnvironment: the variables
//!     │    raw bytes until close                     │   CollectTracing: the nettrace stream
//!     │                                              │
//!     │  second connection                           │
//!     │─── StopTracing │ session id ────────────────▶│   answered only after the rundown was written:
//!     │◀── …the first connection's stream… ──────────│   keep reading it meanwhile
//!     │◀── OK │ session id ──────────────────────────│
//! ```
//!
//! A message is a 20-byte [`Header`] (14 bytes magic, `u16` size of the whole message, command set, command id,
//! `u16` reserved), then the payload. Everything is little-endian. A string is a `u32` count of UTF-16 units
//! including the final NUL, then the units; count 0 is the null string. No message is longer than
//! [`MAX_MESSAGE`].
//!
//! | command | request | reply |
//! |---|---|---|
//! | ProcessInfo 0x0400, 0x0404, 0x0408 | [`Request::ProcessInfo`] | [`Reply::ProcessInfo`] |
//! | ProcessEnvironment 0x0402 | [`Request::ProcessEnvironment`] | [`Reply::Environment`], in the continuation |
//! | ResumeRuntime 0x0401 | [`Request::ResumeRuntime`] | [`Reply::Resumed`] |
//! | CollectTracing 1–6 0x0202–0x0207 | [`Request::CollectTracing`] | [`Reply::SessionStarted`], then the stream |
//! | … with session type 1, user_events | [`Request::CollectUserEvents`] | [`Reply::SessionStarted`] |
//! | StopTracing 0x0201 | [`Request::StopTracing`] | [`Reply::SessionStopped`] |
//! | GenerateCoreDump 1–3 0x0101–0x0103 | [`Request::GenerateCoreDump`] | [`Reply::Done`] |
//! | AttachProfiler 0x0301 | [`Request::AttachProfiler`] | [`Reply::Done`] |
//! | StartupProfiler 0x0302 | [`Request::StartupProfiler`] | [`Reply::Done`] |
//! | SetEnvironmentVariable 0x0403 | [`Request::SetEnvironmentVariable`] | [`Reply::Done`] |
//! | EnablePerfMap 0x0405 | [`Request::EnablePerfMap`] | [`Reply::Done`] |
//! | DisablePerfMap 0x0406 | [`Request::DisablePerfMap`] | [`Reply::Done`] |
//! | ApplyStartupHook 0x0407 | [`Request::ApplyStartupHook`] | [`Reply::Done`] |
//!
//! A runtime may also connect to a tool's *port*. It then identifies itself ([`Advertise`]), and the connection serves
//! one command like any other; after that command the runtime connects again. [`diagnostic_ports`] parses the ports that
//! a runtime is configured with, and [`tool_port`] the port that a tool is given.
//!
//! # What cannot be sent
//!
//! A dozen kinds of malformed requests crash a production process: a provider count of 0, a buffer of 0 MB,
//! an unknown format, a truncated payload, an event id in two tracepoints. [`Request::to_bytes`] rejects all
//! of them and names the invalid field ([`EncodeError`]); there is no way to send a custom payload. (A [`tap::Tap`]
//! forwards messages of other clients unchanged: [`Verbatim`].)
//! In the other direction [`Request::decode`], which servers use, checks every length and rejects the requests that
//! crash real runtimes.
//!
//! Two requests are well-formed and can still crash a process: a startup hook that cannot be loaded, and a perf map
//! while the runtime is suspended at startup. No state machine can detect either; the client of `runtap-diag` checks
//! for both before it sends.
//!
//! # Driving a state machine
//!
//! [`client::Client`] and [`server::Server`] each have four groups of methods:
//!
//! * getters, which take `&self`;
//! * `handle_*`: input from the network ([`handle_bytes`](client::Client::handle_bytes),
//!   [`handle_eof`](client::Client::handle_eof));
//! * application calls ([`Server::reply`](server::Server::reply));
//! * `poll_*`: output. After each call of a method above, call `poll_transmit` until it returns `None` and write what
//!   it returned, then call `poll_event` until it returns `None`.
//!
//! [`tap::Tap`] sits between a client and a runtime and has no application calls: it forwards its input.
//!
//! The predecessors of this protocol are in `legacy`, with the feature of that name.
//!
//! Time-outs are up to the caller: the protocol has none, and a server that is busy with another client does not
//! answer.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]
#![allow(clippy::doc_markdown, reason = "the names of the commands are prose here, not code")]

pub mod client;
pub mod diagnostic_ports;
mod error;
#[cfg(feature = "legacy")]
pub mod legacy;
mod message;
pub mod server;
pub mod tap;
pub mod tool_port;

pub use error::{EncodeError, RequestError};
pub use message::{
    Advertise, AttachProfiler, Buffering, Command, CommandSet, CoreDump, DEFAULT_RUNDOWN_KEYWORD, Downgrade,
    DumpFlags, DumpForm, DumpType, EnvironmentDecoder, ErrorReply, EventFilter, Format, HEADER_LEN, Header,
    Hresult, InfoForm, Level, MAGIC, MAX_ENVIRONMENT, MAX_FILTER_IDS, MAX_MESSAGE, MAX_PROVIDERS,
    PerfMapType, ProcessInfo, Provider, Reply, Request, RundownFallback, SessionConfig, SessionForm,
    SessionId, StartupProfiler, TracepointError, TracepointSet, Tracepoints, UserEventsConfig,
    UserEventsProvider, Variable, Verbatim, merge_providers,
};
pub use runtap_wire::{DecodeError, DecodeErrorKind, Uuid};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
