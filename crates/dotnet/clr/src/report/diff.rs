//! What changed from one profile to another, frame by frame.

use runtap_model::{Comparison, ComparisonSide, FrameHandle, ShareChange, Unit, View};
use serde::Serialize;

use super::Report;
use super::cpu::{unit_name, view_name};

/// What differs between two recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// What is compared.
    #[serde(serialize_with = "view_name")]
    pub view: View,
    /// What the weights count.
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    /// Whether the order of the frames is that of shares, not of weights as they are.
    pub normalized: bool,
    /// The first recording.
    pub before: DiffSide,
    /// The second one.
    pub after: DiffSide,
    /// Every frame with weight in one of them, those that changed most first.
    pub frames: Vec<FrameChange>,
    /// How many there are.
    pub frames_count: usize,
    /// How many of them changed.
    #[serde(skip)]
    pub changed_count: usize,
}

/// What the order of the frames follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffOrder {
    /// Weights as they are, not shares of each recording.
    pub absolute: bool,
    /// A frame with all that it called, not the frame itself.
    pub inclusive: bool,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiffSide {
    /// Samples, or events, in the view.
    pub samples: u64,
    /// The sum of their weights, in the unit.
    pub total: u64,
    /// How many threads have samples in the view.
    pub threads: usize,
    /// How long was recorded.
    pub duration_ns: u64,
}

/// A frame and how it changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameChange {
    /// Its name, with the types of its arguments.
    pub name: String,
    /// Its module, where one is known.
    pub module: Option<String>,
    /// What it weighed.
    pub before: Weights,
    /// What it weighs.
    pub after: Weights,
    /// The share of the frame itself.
    pub self_share: Shares,
    /// The share of the frame and of all that it called.
    pub total_share: Shares,
    /// As people see it.
    #[serde(skip)]
    pub label: String,
}

/// Weights of a frame in one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// Of the frame itself, in the unit.
    #[serde(rename = "self")]
    pub own: u64,
    /// Of the frame and of all that it called, in the unit.
    pub total: u64,
    /// Of the frame itself, in samples.
    pub self_samples: u64,
    /// Of the frame and of all that it called, in samples.
    pub total_samples: u64,
}

/// Shares of the recordings' totals, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// In the first one.
    pub before: f64,
    /// In the second one.
    pub after: f64,
    /// The difference.
    pub change: f64,
    /// How far the change may be off, at 95 %, at least; `None` for views that are not sampled.
    pub margin: Option<f64>,
    /// Whether it is more than the margin.
    pub significant: bool,
}

impl DiffReport {
    /// The report.
    pub fn new(comparison: &Comparison, order: DiffOrder) -> Self {
        let sides = [comparison.before(), comparison.after()];
        // With what they are sorted by: the larger, the earlier.
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
        frames.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.label.cmp(&other.label)));
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
    /// How much it changed, whatever the direction.
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
