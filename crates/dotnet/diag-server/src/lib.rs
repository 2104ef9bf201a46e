//! An embeddable diagnostics server: what makes a program visible to `dotnet-trace`, `runtap` and every other tool
//! that speaks the protocol.
//!
//! ```no_run
//! use runtap_diag_server::{DiagnosticServer, EventPipe};
//! use runtap_nettrace::Metadata;
//!
//! let pipe = EventPipe::new();
//! let tick = pipe.define(Metadata::new("My-Program", 1, "Tick")).expect("no NUL in a name");
//! // The socket is where tools look for it, until the handle is dropped.
//! let server = DiagnosticServer::builder().pipe(pipe).spawn()?;
//! if tick.is_enabled() {
//!     tick.write_here(&[]);
//! }
//! server.shut_down();
//! # Ok::<(), runtap_diag_server::StartError>(())
//! ```
//!
//! Every connection is served on its own: a client that sends nothing, or reads nothing, holds up nobody, and is
//! hung up on after a while ([`Limits`]); where there is no room, the one that has kept the server waiting for the longest time goes. Malformed
//! requests get the answer of a healthy runtime. No request is longer than 64 KiB, with all its strings.
//!
//! **Whose clients they are.** The socket has mode 0600, and the kernel is asked for the user of each client before a
//! byte is read: it is ours, or root. The same goes for the tools that are dialled ([`ConnectPort::any_user`]).
//! [`Builder::on_notice`] tells the program who asks for what.
//!
//! | command | answer |
//! |---|---|
//! | ProcessInfo 1–3 | the [`ProcessDescription`] |
//! | ProcessEnvironment | the variables as they are now, with what clients have changed |
//! | ResumeRuntime | OK; the port over which it came is waited for no longer |
//! | CollectTracing 1–6 | a session, as nettrace 4 or `NetPerf` 3; the 65th is E_FAIL |
//! | StopTracing | OK once the session's stream is finished, also for an unknown id |
//! | SetEnvironmentVariable | OK, unless the program's [`Commands`] refuse it; the program asks by [`ServerThread::variable`] |
//! | dumps, profilers, perf maps, startup hooks | what the program's [`Commands`] say; without them E_FAIL for a dump and NOTSUPPORTED for the others, as from a NativeAOT runtime |
//! | sessions into user_events | NOTSUPPORTED |
//! | anything else | UNKNOWN_COMMAND |
//!
//! [`Builder::with_environment`] has it do what users of .NET expect of the variables that they know. With
//! [`Builder::connect_port`] it dials a tool as well, and [`ServerThread::wait_until_resumed`] is for a program that
//! is to wait at its start until that tool has let it go on.
//!
//! Source: the Diagnostic IPC specification, and what .NET 8, 9 and 10 were measured to answer. On Windows it is a
//! named pipe that clients dial.

#![allow(clippy::doc_markdown, reason = "the names of the commands are words here, not code")]

mod accept;
mod batch;
mod buffer;
mod clock;
mod commands;
mod connection;
mod definition;
mod description;
mod dial_out;
mod encoder;
mod environment;
mod error;
mod event;
mod limits;
mod local;
mod notice;
mod pipe;
mod records;
mod room;
mod run;
mod rundown;
mod session;
mod startup;
mod state;
mod wanted;
mod watch;

pub use commands::Commands;
pub use connection::Dispatcher;
pub use definition::EventData;
pub use description::ProcessDescription;
pub use dial_out::{ConnectPort, dial_out};
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
