//! Where the events of a provider go in a session into user_events: tracepoints of the kernel. Section
//! "Tracepoint_config" of the specification.
//!
//! ```text
//! str default name  u32 n  n × { str name  u32 m  m × u32 event id }
//! ```
//!
//! **An event id that is there twice kills .NET 10**, though the specification promises an error. It is refused on both
//! sides.

use std::collections::HashSet;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};
use thiserror::Error;

use super::{
    bounded_count, not_null,
    providers::{MAX_FILTER_IDS, decode_ids, encode_ids},
    string, wire_count,
};

/// The longest name of a tracepoint: far below the kernel's limit for a name together with its fields.
const MAX_NAME: usize = 255;

/// The tracepoints of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Tracepoints {
    /// Where all events go that no set names. `None`: nowhere.
    pub default: Option<String>,
    /// Where some events go instead.
    pub sets: Vec<TracepointSet>,
}

/// Some events and their tracepoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TracepointSet {
    /// The tracepoint.
    pub name: String,
    /// The events; each is in one set at most, and once.
    pub ids: Vec<u32>,
}

/// Why tracepoints are not sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TracepointError {
    /// A set without events.
    #[error("the set of tracepoint {name:?} has no events")]
    EmptySet {
        /// The tracepoint.
        name: String,
    },
    /// An event with two destinations, or twice with the same one: kills .NET 10.
    #[error("event {id} is there twice")]
    EventTwice {
        /// The event.
        id: u32,
    },
    /// Not a name that the kernel can be given.
    #[error(
        "{name:?} is no tracepoint name: it has 1 to {MAX_NAME} ASCII letters, digits and the signs . _ -"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// Events without a destination.
    #[error("neither a default nor a set is given")]
    None,
    /// The same tracepoint for two sets, or for a set and the rest.
    #[error("tracepoint {name:?} is there twice, join the sets")]
    SetTwice {
        /// The tracepoint.
        name: String,
    },
    /// A set with more events than runtimes are known to take in a list.
    #[error("the set of tracepoint {name:?} has {ids} event ids, at most {MAX_FILTER_IDS} are allowed")]
    SetTooLong {
        /// The tracepoint.
        name: String,
        /// Ids in its set.
        ids: usize,
    },
}

impl Tracepoints {
    /// All events to one tracepoint.
    pub fn all_to(name: impl Into<String>) -> Self {
        Self { default: Some(name.into()), sets: Vec::new() }
    }

    /// These events to another one.
    #[must_use]
    pub fn with_set(mut self, name: impl Into<String>, ids: impl Into<Vec<u32>>) -> Self {
        self.sets.push(TracepointSet { name: name.into(), ids: ids.into() });
        self
    }

    /// Every tracepoint that the runtime is going to register.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.default.as_deref().into_iter().chain(self.sets.iter().map(|set| set.name.as_str()))
    }

    /// Refuses what no runtime must be sent.
    ///
    /// # Errors
    /// What is wrong.
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

/// The tracepoints are valid.
pub(super) fn encode(w: &mut Writer, tracepoints: &Tracepoints) {
    w.utf16_counted(tracepoints.default.as_deref()).u32(wire_count(tracepoints.sets.len()));
    for set in &tracepoints.sets {
        w.utf16_counted(Some(&set.name));
        encode_ids(w, &set.ids);
    }
}

/// Takes what healthy runtimes take: any name, sets without events, the same tracepoint in two sets.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Tracepoints, DecodeError> {
    let start = r.offset();
    let default = string(r, "default tracepoint")?.filter(|name| !name.is_empty());
    let count = r.u32("tracepoint set count")?;
    if default.is_none() && count == 0 {
        let kind = DecodeErrorKind::Invalid("are missing: there is neither a default nor a set");
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
            let kind = DecodeErrorKind::Invalid("is there twice");
            return Err(DecodeError::new(first + 4 * twice as u64, "tracepoint id", kind));
        }
        sets.push(TracepointSet { name, ids });
    }
    Ok(Tracepoints { default, sets })
}
