//! `runtap.diff/1`: the difference as JSON.

use runtap_clr::report::{DiffReport, DiffSide, FrameChange};
use serde::Serialize;

use super::Source;
use crate::cmd::recording::Partial;
use crate::cmd::trace::OutputFile;

#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema: &'static str,
    view: &'static str,
    unit: &'static str,
    normalized: bool,
    before: Recording<'a>,
    after: Recording<'a>,
    frames: &'a [FrameChange],
    frames_count: usize,
    outputs: Vec<OutputFile>,
}

#[derive(Serialize)]
struct Recording<'a> {
    file: String,
    #[serde(flatten)]
    profile: DiffSide,
    lost: u64,
    partial: Option<&'a Partial>,
}

impl<'a> Document<'a> {
    pub(super) fn new(
        report: &'a DiffReport,
        [before, after]: [&'a Source; 2],
        outputs: Vec<OutputFile>,
    ) -> Self {
        let recording = |profile, source: &'a Source| Recording {
            file: source.file.display().to_string(),
            profile,
            lost: source.lost,
            partial: source.partial.as_ref(),
        };
        Self {
            schema: "runtap.diff/1",
            view: report.view.name(),
            unit: report.unit.name(),
            normalized: report.normalized,
            before: recording(report.before, before),
            after: recording(report.after, after),
            frames: &report.frames,
            frames_count: report.frames_count,
            outputs,
        }
    }
}
