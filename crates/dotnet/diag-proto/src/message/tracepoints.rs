//! The destinations of a provider's events in a session into user_events: tracepoints of the kernel. Section
//! "Tracepoint_config" of the specification.
//!
//! ```text
//! str default name  u32 n  n × { str name  u32 m  m × u32 event id }
//! ```
//!
//! **A duplicate event id crashes .NET 10**, though the specification promises an error. Encoder and decoder reject it.

use std::collections::HashSet;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};
use thiserror::Error;

use super::{
    bounded_count, not_null,
    providers::{MAX_FILTER_IDS, decode_ids, encode_ids},
    string, wire_count,
};

/// The longest name of a tracepoint in bytes: far below the kernel's limit for a name together with its fields.
const MAX_NAME: usize = 255;

/// The tracepoints of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Tracepoints {
    /// The tracepoint of all events that are in no set. `None` discards them.
    pub default: Option<String>,
    /// The tracepoints of specific events.
    pub sets: Vec<TracepointSet>,
}

/// A set of events with their tracepoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TracepointSet {
    /// The name of the tracepoint.
    pub name: String,
    /// The event ids; each is in at most one set, and once.
    pub ids: Vec<u32>,
}

/// A reason why tracepoints are not sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TracepointError {
    /// A set without events.
    #[error("the set of tracepoint {name:?} has no events")]
    EmptySet {
        /// The tracepoint.
        name: String,
    },
    /// An event that occurs twice, in one set or in two: crashes .NET 10.
    #[error("event {id} is specified twice")]
    EventTwice {
        /// The event.
        id: u32,
    },
    /// A name that the kernel does not accept.
    #[error("{name:?} is not a tracepoint name (1 to {MAX_NAME} ASCII letters, digits, '.', '_' or '-')")]
    Name {
        /// The invalid name.
        name: String,
    },
    /// Neither a default tracepoint nor a set.
    #[error("neither a default nor a set is specified")]
    None,
    /// A tracepoint that occurs twice, in two sets or in a set and as the default.
    #[error("tracepoint {name:?} is specified twice; merge the sets")]
    SetTwice {
        /// The tracepoint.
        name: String,
    },
    /// A set with more events than runtimes are known to accept in a list.
    #[error("the set of tracepoint {name:?} has {ids} event ids, at most {MAX_FILTER_IDS} are allowed")]
    SetTooLong {
        /// The tracepoint.
        name: String,
        /// The number of ids in its set.
        ids: usize,
    },
}

impl Tracepoints {
    /// Sends all events to one tracepoint.
    pub fn all_to(name: impl Into<String>) -> Self {
        Self { default: Some(name.into()), sets: Vec::new() }
    }

    /// Sends the events with these ids to another tracepoint.
    #[must_use]
    pub fn with_set(mut self, name: impl Into<String>, ids: impl Into<Vec<u32>>) -> Self {
        self.sets.push(TracepointSet { name: name.into(), ids: ids.into() });
        self
    }

    /// Returns the names of all tracepoints that the runtime will register.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.default.as_deref().into_iter().chain(self.sets.iter().map(|set| set.name.as_str()))
    }

    /// Rejects tracepoints that must not be sent.
    ///
    /// # Errors
    /// The first problem that was found.
    pub fn validate(&self) -> Result<(), TracepointError> {
        let mut names = HashSet::new();
        for name in self.names() {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
                return Err(TracepointError::Name { name: name.to_owned() });
            }
            if !names.insert(name) {
                return Err(TracepointError::SetTwice { name: name.to_owned() });
            }
        }
        if names.is_empty() {
            return Err(TracepointError::None);
        }
        let mut ids = HashSet::new();
        for set in &self.sets {
            if set.ids.is_empty() {
                return Err(TracepointError::EmptySet { name: set.name.clone() });
            }
            if set.ids.len() > MAX_FILTER_IDS {
                return Err(TracepointError::SetTooLong { name: set.name.clone(), ids: set.ids.len() });
            }
            if let Some(id) = set.ids.iter().find(|id| !ids.insert(**id)) {
                return Err(TracepointError::EventTwice { id: *id });
            }
        }
        Ok(())
    }
}

/// Appends tracepoints, which must be valid.
pub(super) fn encode(w: &mut Writer, tracepoints: &Tracepoints) {
    w.utf16_counted(tracepoints.default.as_deref()).u32(wire_count(tracepoints.sets.len()));
    for set in &tracepoints.sets {
        w.utf16_counted(Some(&set.name));
        encode_ids(w, &set.ids);
    }
}

/// Accepts what healthy runtimes accept: any name, sets without events, one tracepoint in two sets.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Tracepoints, DecodeError> {
    let start = r.offset();
    let default = string(r, "default tracepoint")?.filter(|name| !name.is_empty());
    let count = r.u32("tracepoint set count")?;
    if default.is_none() && count == 0 {
        let kind = DecodeErrorKind::Invalid("are missing: neither a default nor a set is present");
        return Err(DecodeError::new(start, "tracepoints", kind));
    }
    let mut seen = HashSet::new();
    let mut sets = Vec::new();
    for _ in 0..count {
        let offset = r.offset();
        let name = not_null(r, "tracepoint name")?;
        if name.is_empty() {
            return Err(DecodeError::new(offset, "tracepoint name", DecodeErrorKind::Invalid("is empty")));
        }
        let count = bounded_count(r, "tracepoint id count", MAX_FILTER_IDS)?;
        let first = r.offset();
        let ids = decode_ids(r, count, "tracepoint id")?;
        if let Some(twice) = ids.iter().position(|id| !seen.insert(*id)) {
            let kind = DecodeErrorKind::Invalid("is a duplicate");
            return Err(DecodeError::new(first + 4 * twice as u64, "tracepoint id", kind));
        }
        sets.push(TracepointSet { name, ids });
    }
    Ok(Tracepoints { default, sets })
}
