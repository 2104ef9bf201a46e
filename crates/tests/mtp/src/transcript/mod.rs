//! Recordings of the `dotnet test` pipe: made, shown, checked, played back. docs/mtp-transcripts.md has the format.
//!
//! ```text
//!  from the middle   test application ── dials ──▶ our socket ══▶ the socket of `dotnet test`, or of `runtap test`
//!  as the server     test application ── dials ──▶ our socket: we answer
//!  played back       we, in the place of a test application ── dial ──▶ the socket of a server
//! ```
//!
//! - [`Tap`] listens for an application and writes down everything that its processes and their server say; [`run`] starts
//!   the application with it.
//! - [`TestPipe`] decodes a recording for [`runtap_transcript::Inspector`], [`Linter`] checks one against the rules of the protocol and of
//!   recordings, [`Replay`] plays the application's part of one to any server.
//! - [`write_module`] leaves a script behind that a server takes for a test application.
//!
//! **What comes out is what came in**, but for one property: the name of the control pipe, which is replaced by that of a
//! socket of ours so that what is said there is recorded too. A frame is passed on in one write once it is whole: MTP 1.8
//! dies of a length that comes in parts. A line is written before its bytes are passed on, so a recorder that is killed has
//! written all that was heard; if it can't be written, everything goes on passing.
//!
//! Refuses to print, and to know words for people.

mod artifacts;
mod fault;
mod fields;
mod lint;
mod log;
mod pieces;
mod protocol;
mod relay;
mod replay;
mod run;
mod script;
mod serve;
mod summary;
mod tally;
mod tap;

pub use fault::{Fault, Flaw};
pub use lint::{Finding, Linter, Summary};
pub use protocol::TestPipe;
pub use replay::{Played, Replay, ReplayError};
pub use run::{Application, Error, Outcome, Signals, run};
pub use runtap_mtp_proto::server::Mode;
pub use runtap_mtp_proto::{Rule, Severity};
pub use script::{ScriptError, write_module};
pub use tally::Tally;
pub use tap::{Server, Tap, socket_path};

/// The limits with which a transcript is read: a line has all digits of the largest frame, and its fields.
pub fn limits() -> runtap_transcript::Limits {
    runtap_transcript::Limits { line: 160 << 20, ..runtap_transcript::Limits::default() }
}
