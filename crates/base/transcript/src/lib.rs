//! Recorded messages of both directions of a protocol, with times, as JSON Lines.
//!
//! ```text
//! {"kind":"header","t":0,"role":"recorder","protocol":"diagnostic-ipc"}
//! {"kind":"open","t":0.5,"conn":"c1"}
//! {"kind":"frame","t":0.500031,"conn":"c1","dir":"c2r","id":1024,"name":"ProcessInfo","hex":"444f…"}
//! {"kind":"close","t":0.51,"conn":"c1","side":"runtime"}
//! {"kind":"exit","t":9.2,"code":0}
//! ```
//!
//! - [`Entry`] is one line. Its known keys are typed; all other keys are kept in `more` and written again, as are lines of
//!   unknown kinds ([`Entry::Other`]).
//! - [`Writer`] passes each line to the file in a single write before it returns, so that written lines survive if the program
//!   is killed. [`create`] creates such a file, readable only by its owner.
//! - [`Decoder`] decodes bytes in pieces of any size, [`Reader`] reads them from a file. Every error has the line and the
//!   field; an incomplete last line is not an error, but a [`Cut`]; lines and files that are too long are rejected
//!   ([`Limits`]).
//!
//! - [`Protocol`] is implemented by a recorded protocol: the names of its directions, and how its bytes are decoded. A
//!   [`Journal`] is a transcript that several connections write, and an [`Inspector`] shows a transcript.
//!
//! The meaning of each kind and key is in docs/transcripts.md.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]

mod decoder;
mod entry;
mod error;
mod hex;
mod inspect;
mod journal;
mod keys;
mod protocol;
mod writer;

pub use self::decoder::{Cut, Decoder, Limits, Located, Reader};
pub use self::entry::{Close, Entry, Exit, Field, Frame, Header, More, Open, duration, seconds};
pub use self::error::{Error, Problem};
pub use self::hex::encode as to_hex;
pub use self::inspect::{Inspector, Row};
pub use self::journal::{Journal, JournalTotals};
pub use self::protocol::{Decoded, Direction, Fields, Protocol};
pub use self::writer::{Writer, create};
