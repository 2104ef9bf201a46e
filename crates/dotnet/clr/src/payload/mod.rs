//! Payloads of events as named fields.
//!
//! The layout of a payload comes from one of two sources, both of which become a [`Schema`]:
//!
//! * the definition of the event in the stream ([`runtap_nettrace::Metadata`]), for self-describing providers;
//! * a built-in table (`native.txt`), for the runtime's native providers, which do not describe their events, and for a few others
//!   that can't in older streams.
//!
//! A second table (`words.txt`) has the names of numbers, such as the reason for a collection. A third one (`levels.txt`) has the
//! level and keywords of the runtime's events.
//!
//! New versions of an event only append fields, so a longer payload is read as far as the schema goes, and a shorter one may end
//! where an older version ended. Everything else is an error with its field and offset. Fields are read in order and borrow from the
//! payload; nothing is allocated. The names of an object's fields are distinct: if a definition repeats a name, the later ones are
//! numbered (`n`, `n_2`).

mod decoder;
mod error;
mod known;
mod names;
mod native;
mod read;
mod schema;
mod value;
mod weight;
mod words;

pub use decoder::{Decoder, Payload};
pub use error::PayloadError;
pub use known::{EventSwitch, KnownEvent, known_events};
pub use read::{Elements, Fields, Object};
pub use schema::Schema;
pub use value::{Decimal, FileTime, Value};
