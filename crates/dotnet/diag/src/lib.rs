//! Client of the .NET Diagnostic IPC protocol.
//!
//! [`Client`] asks a runtime one thing at a time, [`Session`] is a recording that runs. Asynchronous on tokio;
//! [`blocking`] has the same methods without it.
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
//! What the protocol is and what can be asked stands in [`runtap_diag_proto`]; what this crate adds:
//!
//! - **One connection a command**, header and payload in one write, because a runtime serves one client at a time
//!   and a half-sent request blocks all others.
//! - **Time-outs** ([`Timeouts`]) and cancellation: dropping a future closes its connection.
//! - **Negotiation**: `process_info` and `start_session` try the newest command first and go back, one by one, when
//!   the runtime does not know it. [`Session::downgrades`] says what was lost on the way.
//! - **Draining**: a task of its own reads a session's stream into a bounded buffer, also while the stop is under
//!   way: a runtime answers the stop only after it has written everything.
//! - **A look at the target** before something is asked of it that would harm it ([`preflight`]).
//! - **Errors that tell what to do** ([`Error`], [`Error::hint`]).
//!
//! [`ports`] is for runtimes that dial in; a [`Client`] of such a one is as any other. What people type becomes a session's
//! providers in the module `providers` of `runtap-record`; the module `doctor` of `runtap-target` says why a process can't be reached.
//! The server, for programs that embed it,
//! is the crate `runtap-diag-server`. Nothing here interprets the stream.

pub mod blocking;
mod buffer;
mod client;
mod commands;
pub mod core_file;
mod dial;
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
