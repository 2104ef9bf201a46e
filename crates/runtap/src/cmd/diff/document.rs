//! `runtap.diff/1`: the difference as JSON.

use runtap_model::{Comparison, FrameHandle, ShareChange, Side, Unit};
use serde::Serialize;

use super::{Row, Source};
use crate::cli::Diff;
use crate::cmd::recording::Partial;
use crate::cmd::trace::OutputFile;

#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema: &'static str,
    view: &'static str,
    /// What `self` and `total` count: `nanoseconds`, `bytes` or `count`.
    unit: &'static str,
    /// Whether the order of the frames and the files are of shares, not of weights as they are.
    normalized: bool,
    before: Recording<'a>,
    after: Recording<'a>,
    /// Those that changed most first; as many as were asked for.
    frames: Vec<Frame<'a>>,
    /// How many frames there are.
    frames_count: usize,
    outputs: Vec<OutputFile>,
}

#[derive(Serialize)]
struct Recording<'a> {
    file: String,
    /// Samples, or events, in the view.
    samples: u64,
    /// The sum of their weights, in the unit.
    total: u64,
    threads: usize,
    duration_ns: u64,
    lost: u64,
    partial: Option<&'a Partial>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    module: Option<&'a str>,
    before: Weights,
    after: Weights,
    self_share: Shares,
    total_share: Shares,
}

/// In the unit, and in samples.
#[derive(Serialize)]
struct Weights {
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    self_samples: u64,
    total_samples: u64,
}

/// Shares of the recording's total, from 0 to 1.
#[derive(Serialize)]
struct Shares {
    before: f64,
    after: f64,
    change: f64,
    /// How far the change may be off, at 95 %; null for views that are not sampled.
    margin: Option<f64>,
    significant: bool,
}

impl<'a> Document<'a> {
    pub(super) fn new(
        comparison: &'a Comparison,
        [before, after]: [&'a Source; 2],
        rows: &[Row],
        options: &Diff,
        outputs: Vec<OutputFile>,
    ) -> Self {
        let frames = rows.iter().take(options.number.unwrap_or(usize::MAX)).map(|row| {
            let frame = comparison.tables().frame(row.frame);
            Frame {
                name: frame.name,
                module: frame.module,
                before: Weights::new(comparison.before(), row.frame),
                after: Weights::new(comparison.after(), row.frame),
                self_share: row.own.into(),
                total_share: row.total.into(),
            }
        });
        Self {
            schema: "runtap.diff/1",
            view: comparison.view().name(),
            unit: match comparison.view().unit() {
                Unit::Nanoseconds => "nanoseconds",
                Unit::Bytes => "bytes",
                _ => "count",
            },
            normalized: !options.absolute,
            before: Recording::new(comparison.before(), before),
            after: Recording::new(comparison.after(), after),
            frames: frames.collect(),
            frames_count: rows.len(),
            outputs,
        }
    }
}

impl<'a> Recording<'a> {
    fn new(side: &Side, source: &'a Source) -> Self {
        Self {
            file: source.file.display().to_string(),
            samples: side.stacks().ticks(),
            total: side.stacks().total_ns(),
            threads: side.threads(),
            duration_ns: side.duration_ns(),
            lost: source.lost,
            partial: source.partial.as_ref(),
        }
    }
}

impl Weights {
    fn new(side: &Side, frame: FrameHandle) -> Self {
        let totals = side.frames();
        Self {
            own: totals.self_ns(frame),
            total: totals.total_ns(frame),
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
