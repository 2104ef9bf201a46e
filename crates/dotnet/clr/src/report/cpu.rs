//! Where the time went, or whatever else a view counts: frames and threads.

use runtap_model::{FrameTotals, Trace, Unit, View};
use serde::{Serialize, Serializer};

use super::Report;

/// What a profile says about one of its views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuReport {
    /// The view.
    #[serde(serialize_with = "view_name")]
    pub view: View,
    /// Samples, or events, in it.
    pub samples: u64,
    /// What the weights count.
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    /// Their sum.
    pub total: u64,
    /// How many threads have samples in it.
    pub threads_count: usize,
    /// The heaviest first. All that have no name are one a module.
    pub frames: Vec<FrameRow>,
    /// The heaviest first.
    pub threads: Vec<ThreadRow>,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrameRow {
    /// Its name, with the types of its arguments.
    pub name: String,
    /// Its module, where one is known.
    pub module: Option<String>,
    /// The weight of the frame itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// The weight of the frame and of all that it called.
    pub total: u64,
    /// As people see it.
    #[serde(skip)]
    pub label: String,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadRow {
    /// Its number.
    pub thread: u64,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its samples.
    pub samples: u64,
    /// Their weight.
    pub total: u64,
    /// With its process, where there are several.
    #[serde(skip)]
    pub label: String,
}

impl CpuReport {
    /// The report; `inclusive` puts the frames in the order of their total, not of their own weight.
    pub fn new(trace: &Trace, view: View, inclusive: bool) -> Self {
        let (tables, totals) = FrameTotals::by_name(trace, view);
        let mut frames: Vec<FrameRow> = tables
            .all_frames()
            .map(|(handle, frame)| FrameRow {
                name: frame.name.to_owned(),
                module: frame.module.map(str::to_owned).filter(|module| !module.is_empty()),
                own: totals.self_weight(handle),
                total: totals.total_weight(handle),
                label: frame.to_string(),
            })
            .filter(|row| row.total > 0)
            .collect();
        frames.sort_by_key(|row| {
            std::cmp::Reverse(if inclusive { (row.total, row.own) } else { (row.own, row.total) })
        });
        let mut threads: Vec<ThreadRow> = trace
            .threads()
            .map(|(_, thread)| ThreadRow {
                thread: thread.tid(),
                name: thread.name().map(str::to_owned),
                samples: thread.ticks(view),
                total: thread.weight(view),
                label: thread.label(),
            })
            .filter(|row| row.samples > 0)
            .collect();
        threads.sort_by_key(|row| std::cmp::Reverse(row.total));
        Self {
            view,
            samples: totals.ticks(),
            unit: view.unit(),
            total: totals.sum(),
            threads_count: threads.len(),
            frames,
            threads,
        }
    }
}

impl Report for CpuReport {
    fn limit(&mut self, n: usize) {
        self.frames.truncate(n);
        self.threads.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.samples == 0
    }
}

pub(super) fn view_name<S: Serializer>(view: &View, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(view.name())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn unit_name<S: Serializer>(unit: &Unit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(unit.name())
}
