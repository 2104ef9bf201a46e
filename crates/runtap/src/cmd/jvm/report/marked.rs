//! The parts of a recording that were marked while it was made.

use std::time::Duration;

use serde::Serialize;

use super::load::LoadedAgent;

/// A part that got a name while it was recorded. Times are of the collector's clock, since it began to listen.
#[derive(Debug, Serialize)]
pub(super) struct PartRow {
    pub(super) name: String,
    pub(super) start_ns: u64,
    /// `None`: it was not ended.
    pub(super) end_ns: Option<u64>,
}

/// Those of an agent's recording, in the order of their beginnings.
pub(super) fn parts(agent: &LoadedAgent) -> Vec<PartRow> {
    let marks = &agent.recorded.marks;
    let nanoseconds = |at: Duration| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
    let mut rows: Vec<PartRow> = marks
        .names()
        .into_iter()
        .flat_map(|name| {
            marks.ranges(name).into_iter().map(move |(from, until)| PartRow {
                name: name.to_owned(),
                start_ns: nanoseconds(from),
                end_ns: (until < Duration::MAX).then(|| nanoseconds(until)),
            })
        })
        .collect();
    rows.sort_by_key(|row| row.start_ns);
    rows
}
