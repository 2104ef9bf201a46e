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
//! - [`Inspector`] makes rows of a recording, [`Linter`] checks one against the rules of the protocol and of recordings, [`Replay`] plays the
//!   application's part of one to any server. [`open`] reads recordings, compressed ones too.
//! - [`write_module`] leaves a script behind that a server takes for a test application.
//!
//! **What comes out is what came in**, but for one property: the name of the control pipe, which is replaced by that of a
//! socket of ours so that what is said there is recorded too. A frame is passed on in one write once it is whole: MTP 1.8
//! dies of a length that comes in parts. A line is written before its bytes are passed on, so a recorder that is killed has
//! written all that was heard; if it can't be written, everything goes on passing.
//!
//! Refuses to print, and to know words for people.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")
)]
#![expect(clippy::doc_markdown, reason = "the names of messages and fields are words here, not code")]

mod artifacts;
mod direction;
mod fault;
mod inspect;
mod journal;
mod lint;
mod pieces;
mod read;
mod relay;
mod replay;
mod run;
mod script;
mod serve;
mod tally;
mod tap;
mod telling;

pub use direction::Direction;
pub use fault::{Fault, Flaw};
pub use inspect::{Inspector, Row};
pub use journal::{Journal, Totals};
pub use lint::{Finding, Linter, Summary};
pub use read::{Input, OpenError, open};
pub use replay::{Played, Replay, ReplayError};
pub use run::{Application, Error, Outcome, Signals, run};
pub use runtap_convert::source::MaxSize;
pub use runtap_mtp_proto::server::Mode;
pub use runtap_mtp_proto::{Rule, Severity};
pub use runtap_transcript::{Cut, Error as TranscriptError, Header, Located, Reader, create};
pub use script::{ScriptError, write_module};
pub use tally::Tally;
pub use tap::{Server, Tap, socket_path};
