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
//! - [`Entry`] is one line. Its known keys are typed; all others are kept in `more` and written again, and so is a line of a
//!   kind that is not known ([`Entry::Other`]).
//! - [`Writer`] hands each line to the file in one write before it returns: what was written is there when the program is
//!   killed. [`create`] makes such a file, readable for its owner alone.
//! - [`Decoder`] takes bytes as they come, [`Reader`] reads them from a file. Every error has the line and the field; a
//!   last line that was cut off is no error, but [`Cut`]; lines and files that are too long are refused ([`Limits`]).
//!
//! - [`Protocol`] is what a recorded protocol implements: the names of its directions, and how bytes become messages. A
//!   [`Journal`] is a transcript of it that many connections write, an [`Inspector`] shows one.
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
pub use self::journal::{Journal, Totals};
pub use self::protocol::{Decoded, Direction, Fields, Protocol};
pub use self::writer::{Writer, create};
