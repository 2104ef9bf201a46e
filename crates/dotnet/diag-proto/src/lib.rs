//! The .NET Diagnostic IPC protocol, both sides, without I/O.
//!
//! This crate turns values into bytes and bytes into values, and knows whose turn it is on a connection. It opens
//! no socket, reads no clock and starts no thread: the caller moves the bytes (`runtap-diag` does so on tokio).
//! Specification: dotnet/diagnostics, `documentation/design-docs/ipc-protocol.md`.
//!
//! # The protocol in one page
//!
//! A .NET process listens on a local socket (a named pipe on Windows). **One connection serves one command**: one
//! request, one reply, and for some commands a *continuation*, bytes that are not messages any more.
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
//!     │─── StopTracing │ session id ────────────────▶│   answered only after rundown was written:
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
//! A runtime may also dial a tool's *port* itself. Then it says who it is ([`Advertise`]), and the connection waits for
//! one command as any other; after that command the runtime dials in again. [`diagnostic_ports`] is how it is told to, and
//! [`tool_port`] how the tool is.
//!
//! # What cannot be sent
//!
//! A dozen malformed requests end a production process with one message: a provider count of 0, a buffer of 0 MB,
//! an unknown format, a payload that is cut short, an event id in two tracepoints. [`Request::to_bytes`] refuses to
//! build any of them and says which field is wrong ([`EncodeError`]); there is no way to send a payload of one's own. (What
//! somebody else has sent, a [`tap::Tap`] passes on as it is: [`Verbatim`].)
//! In the other direction [`Request::decode`], which a server of ours uses, checks every length and refuses what real
//! runtimes die of.
//!
//! Two requests are well-formed and end a process all the same, because of what it finds on its side: a startup hook
//! that cannot be loaded, and a perf map while the runtime waits at startup. No state machine can see that; the client
//! of `runtap-diag` looks before it sends.
//!
//! # Driving a state machine
//!
//! [`client::Client`] and [`server::Server`] have the same four groups of methods:
//!
//! * getters, which take `&self`;
//! * `handle_*`: what came from the network goes in ([`handle_bytes`](client::Client::handle_bytes),
//!   [`handle_eof`](client::Client::handle_eof));
//! * application calls ([`Server::reply`](server::Server::reply));
//! * `poll_*`: what is to be done comes out. After each of the calls above, call `poll_transmit` until it gives
//!   nothing and write what it gave, then `poll_event` until it gives nothing.
//!
//! [`tap::Tap`] stands between two others and has no application calls: what comes in goes out.
//!
//! The protocols that came before are in `legacy`, with the feature of that name.
//!
//! Time-outs are the caller's: the protocol has none, and a server that is busy with another client simply does
//! not answer.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]
#![allow(clippy::doc_markdown, reason = "the names of the commands are words here, not code")]

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
