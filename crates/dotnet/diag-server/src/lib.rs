//! An embeddable diagnostics server, which makes a program visible to `dotnet-trace`, `runtap` and every other tool
//! that uses the protocol.
//!
//! ```no_run
//! use runtap_diag_server::{DiagnosticServer, EventPipe};
//! use runtap_nettrace::Metadata;
//!
//! let pipe = EventPipe::new();
//! let tick = pipe.define(Metadata::new("My-Program", 1, "Tick")).expect("no NUL in a name");
//! // Tools find the socket at its default path, until the handle is dropped.
//! let server = DiagnosticServer::builder().pipe(pipe).spawn()?;
//! if tick.is_enabled() {
//!     tick.write_here(&[]);
//! }
//! server.shut_down();
//! # Ok::<(), runtap_diag_server::StartError>(())
//! ```
//!
//! Each connection is served independently: a client that sends or reads nothing blocks no other client, and is
//! disconnected after a time limit ([`Limits`]); if there are too many connections, the one that the server has waited
//! for the longest is closed. Malformed requests get the answer of a healthy runtime. No request, including all its
//! strings, is longer than 64 KiB.
//!
//! **Authorization.** The socket has mode 0600, and before a byte is read, the kernel reports the user of each client:
//! the program's own user or root. Tools to which the server connects are checked, too ([`ConnectPort::any_user`]).
//! [`Builder::on_notice`] reports the clients and their requests to the program.
//!
//! | command | answer |
//! |---|---|
//! | ProcessInfo 1–3 | the [`ProcessDescription`] |
//! | ProcessEnvironment | the current variables, including changes by clients |
//! | ResumeRuntime | OK; the server no longer waits for the port over which it was sent |
//! | CollectTracing 1–6 | a session, as nettrace 4 or `NetPerf` 3; the 65th fails with E_FAIL |
//! | StopTracing | OK once the session's stream is finished, also for an unknown id |
//! | SetEnvironmentVariable | OK, unless the program's [`Commands`] reject it; the program reads it with [`ServerThread::variable`] |
//! | dumps, profilers, perf maps, startup hooks | the program's [`Commands`]; by default E_FAIL (dumps) or NOTSUPPORTED, as in a NativeAOT runtime |
//! | sessions into user_events | NOTSUPPORTED |
//! | anything else | UNKNOWN_COMMAND |
//!
//! [`Builder::with_environment`] applies the environment variables that .NET runtimes use. With
//! [`Builder::connect_port`] the server also connects to a tool, and [`ServerThread::wait_until_resumed`] blocks the
//! start of a program until that tool has resumed it.
//!
//! Source: the Diagnostic IPC specification, and measurements on .NET 8, 9 and 10. On Windows the server uses a named
//! pipe.

#![allow(clippy::doc_markdown, reason = "the names of the commands are prose here, not code")]

mod accept;
mod batch;
mod budget;
mod buffer;
mod clock;
mod commands;
mod connect_port;
mod connection;
mod definition;
mod description;
mod encoder;
mod environment;
mod error;
mod event;
mod filter;
mod limits;
mod local;
mod notice;
mod pipe;
mod records;
mod run;
mod rundown;
mod session;
mod startup;
mod state;
mod watch;

pub use commands::Commands;
pub use connect_port::{ConnectPort, connect_forever};
pub use connection::Dispatcher;
pub use definition::EventData;
pub use description::ProcessDescription;
pub use error::StartError;
pub use event::{Event, current_thread_id};
pub use limits::Limits;
pub use notice::Notice;
pub use pipe::{DefineError, EventPipe};
pub use run::{Builder, DiagnosticServer, ServerThread};
pub use rundown::Rundown;
pub use runtap_diag_proto::{
    AttachProfiler, Command, CoreDump, DumpFlags, DumpType, ErrorReply, Hresult, PerfMapType, ProcessInfo,
    SessionId, StartupProfiler, Variable,
};
pub use runtap_nettrace::{Field, FieldType, Metadata};
pub use watch::ProviderRequest;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
