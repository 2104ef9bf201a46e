//! Recording, inspection, checking and replay of the `dotnet test` pipe. docs/mtp-transcripts.md describes the format.
//!
//! ```text
//!  as a proxy        test application ── connects to ──▶ recorder's socket ══▶ socket of `dotnet test` or `runtap test`
//!  as the server     test application ── connects to ──▶ recorder's socket, which replies
//!  as a replay       replay in place of a test application ── connects to ──▶ socket of a server
//! ```
//!
//! - [`Tap`] listens for an application and records all messages between its processes and their server; [`run`] starts the
//!   application with a tap.
//! - [`TestPipe`] decodes a recording for [`runtap_transcript::Inspector`], [`Linter`] checks a recording against the rules of
//!   the protocol and of recordings, and [`Replay`] plays the application's side of a recording to any server.
//! - [`write_module`] writes a script that servers accept as a test application.
//!
//! **Bytes are forwarded unchanged**, except for the name of the control pipe, which is replaced by the name of a recorded
//! socket. A complete frame is forwarded in a single write, because MTP 1.8 fails on a length that arrives in parts. A line is
//! written before its bytes are forwarded, so that a killed recorder has recorded everything it received; if a line can't be
//! written, forwarding continues.
//!
//! Does not print, and contains no texts for users.

mod application;
mod artifacts;
mod fault;
mod fields;
mod frame_splitter;
mod lint;
mod log;
mod protocol;
mod relay;
mod replay;
mod run;
mod script;
mod serve;
mod summary;
mod tally;
mod tap;

pub use application::{ApplicationError, is_managed, is_started_by, resolve_application, with_process_id};
pub use fault::{Fault, Flaw};
pub use lint::{Finding, Linter, Summary};
pub use protocol::TestPipe;
pub use replay::{Played, Replay, ReplayError};
pub use run::{Application, ApplicationOutcome, Error, Signals, recorder_header, run};
pub use runtap_mtp_proto::server::Mode;
pub use runtap_mtp_proto::{Rule, Severity};
pub use script::{ScriptError, write_module};
pub use tally::Tally;
pub use tap::{Server, Tap, socket_path};

/// Returns the limits for reading a transcript: a line has all digits of the largest frame, and its fields.
pub fn limits() -> runtap_transcript::Limits {
    runtap_transcript::Limits { line: 160 << 20, ..runtap_transcript::Limits::default() }
}
