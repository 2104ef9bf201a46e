//! Reports the frames and threads of a view, for example where CPU time was spent.

use runtap_model::{FrameTotals, Trace, Unit, View, order};
use serde::{Serialize, Serializer};

use super::Report;

/// The frames and threads of a view of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuReport {
    /// The view.
    #[serde(serialize_with = "view_name")]
    pub view: View,
    /// The number of samples or events in the view.
    pub samples: u64,
    /// The unit of the weights.
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    /// The sum of the weights.
    pub total: u64,
    /// The number of threads with samples in the view.
    pub threads_count: usize,
    /// The frames, heaviest first. All unnamed frames of a module are combined.
    pub frames: Vec<FrameRow>,
    /// The threads, heaviest first.
    pub threads: Vec<ThreadRow>,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrameRow {
    /// The name, with the types of its arguments.
    pub name: String,
    /// The module, if known.
    pub module: Option<String>,
    /// The weight of the frame itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// The weight of the frame and of everything that it called.
    pub total: u64,
    /// The frame with its module, for display.
    #[serde(skip)]
    pub label: String,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadRow {
    /// The thread id.
    pub thread: u64,
    /// The name, if any.
    pub name: Option<String>,
    /// The number of samples.
    pub samples: u64,
    /// The weight of the samples.
    pub total: u64,
    /// The thread with its name, and with its process if there are several, for display.
    #[serde(skip)]
    pub label: String,
}

impl CpuReport {
    /// Creates the report. `inclusive` sorts frames by their total instead of their own weight.
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
        order::sort_by_key(&mut frames, |row| {
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
        order::sort_by_key(&mut threads, |row| std::cmp::Reverse(row.total));
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
