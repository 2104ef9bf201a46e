//! An embeddable diagnostics server: what makes a program visible to `dotnet-trace`, `runtap` and every other tool
//! that speaks the protocol.
//!
//! ```no_run
//! use runtap_diag::server::{Builder, EventPipe, ProcessDescription, current_thread_id};
//! use runtap_nettrace::Metadata;
//!
//! let pipe = EventPipe::new();
//! let tick = pipe.define(Metadata::new("My-Program", 1, "Tick")).expect("no NUL in a name");
//! // The socket is where tools look for it, until the handle is dropped.
//! let server = Builder::new(ProcessDescription::of_this_process()).pipe(pipe).spawn()?;
//! if tick.is_enabled() {
//!     tick.write_here(&[]);
//! }
//! server.shut_down();
//! # Ok::<(), runtap_diag::server::StartError>(())
//! ```
//!
//! Every connection is served on its own: a client that sends nothing, or reads nothing, holds up nobody, and is
//! hung up on after a while ([`Limits`]); where there is no room, the oldest that has sent nothing makes some. Malformed
//! requests get the answer of a healthy runtime. No request is longer than 64 KiB, with all its strings.
//!
//! **Whose clients they are.** The socket has mode 0600, and the kernel is asked for the user of each client before a
//! byte is read: it is ours, or root. The same goes for the tools that are dialled ([`ConnectPort::any_user`]).
//! [`Builder::on_notice`] tells the program who asks for what.
//!
//! | command | answer |
//! |---|---|
//! | ProcessInfo 1–3 | the [`ProcessDescription`] |
//! | ProcessEnvironment | the variables as they are now |
//! | ResumeRuntime | OK; the port over which it came is waited for no longer |
//! | CollectTracing 1–5 | a session in format 1 (nettrace); format 0 is BAD_ENCODING, the 65th session E_FAIL |
//! | StopTracing | OK once the session's stream is finished, also for an unknown id |
//! | dumps, profilers, perf maps, startup hooks, SetEnvironmentVariable | what the program's [`Commands`] say; without them E_FAIL for a dump and NOTSUPPORTED for the others, as from a NativeAOT runtime |
//! | sessions into user_events | NOTSUPPORTED |
//! | anything else | UNKNOWN_COMMAND |
//!
//! With [`Builder::connect_port`] it dials a tool as well, and [`ServerThread::wait_until_resumed`] is for a program that
//! is to wait at its start until that tool has let it go on.
//!
//! Source: the Diagnostic IPC specification, and what .NET 8, 9 and 10 were measured to answer.

#![allow(clippy::doc_markdown, reason = "the names of the commands are words here, not code")]

mod commands;
mod connection;
mod description;
mod dial_out;
mod encoder;
mod event;
mod notice;
mod pipe;
mod run;
mod session;

use std::io;
use std::time::Duration;

use thiserror::Error;

pub use commands::Commands;
pub use connection::Dispatcher;
pub use description::ProcessDescription;
pub use dial_out::{ConnectPort, dial_out};
pub use encoder::Rundown;
pub use event::{Event, EventData, current_thread_id};
pub use notice::Notice;
pub use pipe::{DefineError, EventPipe};
pub use run::{Builder, Server, ServerThread};

/// What a server allows its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a client may take to send its whole request.
    pub request: Duration,
    /// How long a client may take nothing of what is sent to it before it is hung up on.
    pub stalled_reader: Duration,
    /// Connections that are served at the same time, sessions not counted. Further ones wait in the queue, for as long as
    /// it takes: but for 100 ms at most if there is one that has sent nothing, which is hung up on then.
    pub connections: usize,
    /// Most bytes of events that one session keeps for its reader, whatever buffer the client asks for.
    pub session_buffer: usize,
    /// How long [`ServerThread::shut_down`] waits for the readers of sessions and for commands that are being carried
    /// out.
    pub shut_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(10),
            stalled_reader: Duration::from_mins(1),
            connections: 256,
            session_buffer: 64 << 20,
            shut_down: Duration::from_secs(5),
        }
    }
}

/// A server that could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket could not be made.
    #[error(transparent)]
    Bind(#[from] runtap_transport::BindError),
    /// The thread or its event loop could not be made.
    #[error("start the diagnostics server: {0}")]
    Io(#[from] io::Error),
    /// There is no start time of this process to name the socket after.
    #[error("start the diagnostics server: the start time of this process is unknown")]
    NoStartTime,
}
