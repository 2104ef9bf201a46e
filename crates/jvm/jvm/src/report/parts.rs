//! The parts of a recording that were marked during recording.

use std::sync::Arc;
use std::time::Duration;

use runtap_model::order;
use serde::{Serialize, Serializer};

use crate::recording::Marks;

/// A named part of a recording. Times are relative to the start of the collector, by its clock.
#[derive(Debug, Serialize)]
pub struct PartRow {
    /// The name of the part.
    pub name: String,
    /// The time at which the part starts.
    pub start_ns: u64,
    /// The time at which the part ends; `None` if it was not ended.
    pub end_ns: Option<u64>,
}

/// The marked parts of a recording, shared by all its agents.
#[derive(Debug, Clone)]
pub struct Parts(Arc<[PartRow]>);

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&*self.0)
    }
}

impl Parts {
    /// Returns the marked parts.
    pub fn of(marks: &Marks) -> Self {
        let nanoseconds = |at: Duration| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let mut rows: Vec<PartRow> = marks
            .parts()
            .into_iter()
            .flat_map(|(name, ranges)| {
                ranges.into_iter().map(move |(from, until)| PartRow {
                    name: name.to_owned(),
                    start_ns: nanoseconds(from),
                    end_ns: (until < Duration::MAX).then(|| nanoseconds(until)),
                })
            })
            .collect();
        order::sort_by_key(&mut rows, |row| row.start_ns);
        Self(rows.into())
    }

    /// Returns the parts, sorted by their start.
    pub fn rows(&self) -> &[PartRow] {
        &self.0
    }
}
