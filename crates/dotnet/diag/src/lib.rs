//! A client of the .NET Diagnostic IPC protocol.
//!
//! [`Client`] sends single commands to a runtime, and [`Session`] is a running recording. Asynchronous on tokio;
//! [`blocking`] has the same methods without async.
//!
//! ```no_run
//! use runtap_diag::{Client, Level, Provider, SessionConfig};
//! use runtap_transport::Endpoint;
//!
//! # async fn record(mut file: impl std::io::Write) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(Endpoint::unix("/tmp/dotnet-diagnostic-42-1234-socket"));
//! println!("{}", client.process_info().await?.command_line);
//!
//! let config = SessionConfig::new(vec![Provider::new("System.Runtime", 0, Level::Informational)]);
//! let mut session = client.start_session(&config).await?;
//! let stopping = session.stop();
//! while let Some(chunk) = session.next_chunk().await? {
//!     file.write_all(&chunk)?;
//! }
//! stopping.await?;
//! # Ok(()) }
//! ```
//!
//! [`runtap_diag_proto`] describes the protocol and its commands; this crate adds:
//!
//! - **One connection per command**, header and payload in one write, because a runtime serves one client at a time
//!   and a half-sent request blocks all others.
//! - **Time-outs** ([`Timeouts`]) and cancellation: dropping a future closes its connection.
//! - **Negotiation**: `process_info` and `start_session` try the newest command first and fall back to older ones if
//!   the runtime does not support it. [`Session::downgrades`] lists the settings that were lost.
//! - **Draining**: a separate thread or task reads a session's stream into a bounded buffer, also during the stop: a
//!   runtime answers the stop only after it has written everything.
//! - **A check of the target** before requests that could harm it ([`preflight`]).
//! - **Errors with advice** ([`Error`], [`Error::hint`]).
//!
//! [`ports`] is for runtimes that connect to the tool; a [`Client`] of such a runtime has all methods. The module
//! `providers` of `runtap-record` parses provider arguments; the module `doctor` of `runtap-target` finds out why a
//! process cannot be reached. The crate `runtap-diag-server` is the server, for programs that embed it. This crate does
//! not parse the stream.

pub mod blocking;
mod buffer;
mod client;
mod commands;
mod connector;
pub mod core_file;
mod direct;
mod drain;
pub mod environment;
mod error;
mod exchange;
#[cfg(unix)]
pub mod perf_map;
pub mod ports;
pub mod preflight;
pub mod profiler;
#[cfg(unix)]
mod reading;
mod session;
mod stopping;
mod unpark;
#[cfg(target_os = "linux")]
pub mod user_events;

pub use buffer::{Backlog, Chunk};
pub use client::{Client, Timeouts};
pub use commands::WrittenDump;
pub use direct::Direct;
pub use error::Error;
pub use runtap_diag_proto::{
    Advertise, AttachProfiler, Buffering, Command, CoreDump, DEFAULT_RUNDOWN_KEYWORD, Downgrade, DumpFlags,
    DumpForm, DumpType, EncodeError, ErrorReply, EventFilter, Format, Hresult, InfoForm, Level, PerfMapType,
    ProcessInfo, Provider, Reply, Request, RundownFallback, SessionConfig, SessionForm, SessionId,
    StartupProfiler, TracepointError, TracepointSet, Tracepoints, UserEventsConfig, UserEventsProvider,
    Variable, diagnostic_ports, merge_providers, tool_port,
};
pub use session::{Chunks, Control, Session, Stopping};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
