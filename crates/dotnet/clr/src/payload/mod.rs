//! Payloads of events as named fields.
//!
//! A payload is bytes; what they mean comes from one of two places, and both become a [`Schema`]:
//!
//! * the definition of the event in the stream ([`runtap_nettrace::Metadata`]), which self-describing providers bring;
//! * a table that is built in (`native.txt`), for the runtime's native providers, which describe nothing, and for the
//!   few others that can't describe themselves in older streams.
//!
//! A second table (`words.txt`) has the names of numbers that stand for something: why a collection was started, say. A
//! third (`levels.txt`) has the level and keywords of the runtime's events.
//!
//! New versions of an event only append fields, so a payload that is longer than its schema is read as far as the schema
//! goes, and one that is shorter may end where an older version ended. Anything else is an error with its field and offset.
//! Fields are read one after the other and borrow from the payload; nothing is allocated. No two fields of an object have the
//! same name: where a definition has a name several times, the later ones are numbered (`n`, `n_2`).

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
