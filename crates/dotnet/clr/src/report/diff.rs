//! Reports the differences between two profiles by frame.

use runtap_model::{Comparison, ComparisonSide, FrameHandle, ShareChange, Unit, View, order};
use serde::Serialize;

use super::Report;
use super::cpu::{unit_name, view_name};

/// The differences between two recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// The view that is compared.
    #[serde(serialize_with = "view_name")]
    pub view: View,
    /// The unit of the weights.
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    /// Whether frames are sorted by share instead of weight.
    pub normalized: bool,
    /// The first recording.
    pub before: DiffSide,
    /// The second recording.
    pub after: DiffSide,
    /// The frames with weight in either recording, largest change first.
    pub frames: Vec<FrameChange>,
    /// The number of frames.
    pub frames_count: usize,
    /// The number of frames that changed.
    #[serde(skip)]
    pub changed_count: usize,
}

/// How frames are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffOrder {
    /// Sort by weight instead of share.
    pub absolute: bool,
    /// Sort by the weight including callees instead of the frame's own.
    pub inclusive: bool,
}

/// One of the two recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiffSide {
    /// The number of samples or events in the view.
    pub samples: u64,
    /// The sum of their weights.
    pub total: u64,
    /// The number of threads with samples in the view.
    pub threads: usize,
    /// The duration of the recording in nanoseconds.
    pub duration_ns: u64,
}

/// A frame and its changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameChange {
    /// The name, with the types of its arguments.
    pub name: String,
    /// The module, if known.
    pub module: Option<String>,
    /// The weights in the first recording.
    pub before: Weights,
    /// The weights in the second recording.
    pub after: Weights,
    /// The shares of the frame itself.
    pub self_share: Shares,
    /// The shares of the frame and of everything that it called.
    pub total_share: Shares,
    /// The frame with its module, for display.
    #[serde(skip)]
    pub label: String,
}

/// The weights of a frame in one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// The weight of the frame itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// The weight of the frame and of everything that it called.
    pub total: u64,
    /// The number of samples of the frame itself.
    pub self_samples: u64,
    /// The number of samples of the frame and of everything that it called.
    pub total_samples: u64,
}

/// The shares of a frame in the recordings' totals, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// The share in the first recording.
    pub before: f64,
    /// The share in the second recording.
    pub after: f64,
    /// The difference.
    pub change: f64,
    /// The margin of error at 95 % confidence, as a lower bound. `None` for views that are not sampled.
    pub margin: Option<f64>,
    /// Whether the change exceeds the margin.
    pub significant: bool,
}

impl DiffReport {
    /// Creates the report.
    pub fn new(comparison: &Comparison, order: DiffOrder) -> Self {
        let sides = [comparison.before(), comparison.after()];
        // Paired with the sort key, largest first.
        let mut frames: Vec<(f64, FrameChange)> = comparison
            .tables()
            .all_frames()
            .filter(|(frame, _)| sides.iter().any(|side| side.frames().total_weight(*frame) > 0))
            .map(|(handle, frame)| {
                let [before, after] = sides.map(|side| Weights::new(side, handle));
                let change = FrameChange {
                    name: frame.name.to_owned(),
                    module: frame.module.map(str::to_owned),
                    before,
                    after,
                    self_share: comparison.self_change(handle).into(),
                    total_share: comparison.total_change(handle).into(),
                    label: frame.to_string(),
                };
                (change.size(order), change)
            })
            .collect();
        order::sort_by(&mut frames, |(a, one), (b, other)| {
            b.total_cmp(a).then_with(|| one.label.cmp(&other.label))
        });
        let view = comparison.view();
        Self {
            view,
            unit: view.unit(),
            normalized: !order.absolute,
            before: DiffSide::new(comparison.before()),
            after: DiffSide::new(comparison.after()),
            frames_count: frames.len(),
            changed_count: frames.iter().filter(|(size, _)| *size > 0.0).count(),
            frames: frames.into_iter().map(|(_, frame)| frame).collect(),
        }
    }
}

impl Report for DiffReport {
    fn limit(&mut self, n: usize) {
        self.frames.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.frames_count == 0
    }
}

impl FrameChange {
    /// Returns the absolute value of the change.
    fn size(&self, order: DiffOrder) -> f64 {
        let DiffOrder { absolute, inclusive } = order;
        if absolute {
            let weight = |of: Weights| if inclusive { of.total } else { of.own };
            #[expect(clippy::cast_precision_loss, reason = "only the order is wanted")]
            let size = weight(self.before).abs_diff(weight(self.after)) as f64;
            size
        } else {
            let share = if inclusive { self.total_share } else { self.self_share };
            share.change.abs()
        }
    }
}

impl DiffSide {
    fn new(side: &ComparisonSide) -> Self {
        Self {
            samples: side.stacks().ticks(),
            total: side.stacks().total_weight(),
            threads: side.threads(),
            duration_ns: side.duration_ns(),
        }
    }
}

impl Weights {
    fn new(side: &ComparisonSide, frame: FrameHandle) -> Self {
        let totals = side.frames();
        Self {
            own: totals.self_weight(frame),
            total: totals.total_weight(frame),
            self_samples: totals.self_ticks(frame),
            total_samples: totals.total_ticks(frame),
        }
    }
}

impl From<ShareChange> for Shares {
    fn from(share: ShareChange) -> Self {
        Self {
            before: share.before,
            after: share.after,
            change: share.change(),
            margin: share.margin,
            significant: share.is_significant(),
        }
    }
}
