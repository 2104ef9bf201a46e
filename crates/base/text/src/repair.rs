//! A repaired copy of a recording: `runtap.repair/1` and its text.

use std::io;
use std::path::Path;

use runtap_nettrace::{Repaired, TraceHeader};
use serde::Serialize;

use crate::document::Partial;
use crate::units::{Bytes, Count};
use crate::{Clean, Print, TextOptions};

/// Maximum number of skipped places that are printed.
const MAX_PLACES: usize = 10;

/// The document `runtap.repair/1`.
#[derive(Debug, Serialize)]
pub struct RepairDocument<'a> {
    schema: &'static str,
    file: String,
    /// `None` if the recording is intact and nothing was written.
    output: Option<String>,
    format: &'static str,
    version: u32,
    partial: Option<Partial>,
    bytes_read: u64,
    bytes_written: u64,
    blocks_shortened: u64,
    blocks_left_out: u64,
    start_added: bool,
    end_added: bool,
    bytes_after_end: u64,
    /// The first places that were skipped because of damage.
    skipped: Vec<SkippedBytes>,
    skipped_places: u64,
    bytes_skipped: u64,
    events_left_out: u64,
    events_without_stack: u64,
    #[serde(skip)]
    repaired: &'a Repaired,
}

/// Bytes of the recording that are not in the copy.
#[derive(Debug, Serialize)]
struct SkippedBytes {
    offset: u64,
    bytes: u64,
}

impl<'a> RepairDocument<'a> {
    /// Creates the document for a file with this header.
    pub fn new(file: &Path, output: Option<String>, header: &TraceHeader, repaired: &'a Repaired) -> Self {
        Self {
            schema: "runtap.repair/1",
            file: file.display().to_string(),
            output,
            format: header.format_name(),
            version: header.version,
            partial: repaired.partial.as_ref().map(Into::into),
            bytes_read: repaired.bytes_read,
            bytes_written: repaired.bytes_written,
            blocks_shortened: repaired.blocks_shortened,
            blocks_left_out: repaired.blocks_left_out,
            start_added: repaired.start_added,
            end_added: repaired.end_added,
            bytes_after_end: repaired.bytes_after_end,
            skipped: repaired
                .skipped
                .iter()
                .map(|skipped| SkippedBytes { offset: skipped.offset, bytes: skipped.bytes })
                .collect(),
            skipped_places: repaired.skipped_places,
            bytes_skipped: repaired.bytes_skipped,
            events_left_out: repaired.events_left_out,
            events_without_stack: repaired.events_without_stack,
            repaired,
        }
    }

    /// Describes the repairs in one line.
    pub fn remark(&self) -> String {
        let Self { file, blocks_shortened, blocks_left_out, .. } = self;
        if !self.repaired.has_changed() {
            return format!("{file} is complete; nothing to repair");
        }
        let partial = self.repaired.partial.as_ref().map(ToString::to_string);
        let why = partial.as_deref().unwrap_or("has unknown blocks");
        format!(
            "{file} {why}; repaired: {blocks_shortened} blocks truncated, {blocks_left_out} blocks skipped"
        )
    }

    /// Describes what the copy lacks, one line each.
    pub fn losses(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.start_added {
            lines.push("added the missing first bytes, which identify the format".to_owned());
        }
        for SkippedBytes { offset, bytes } in self.skipped.iter().take(MAX_PLACES) {
            lines.push(format!("skipped {} bytes at offset {offset}", Count(*bytes)));
        }
        if let Some(more @ 1..) = self.skipped_places.checked_sub(MAX_PLACES as u64) {
            let (more, all) = (Count(more), Count(self.bytes_skipped));
            lines.push(format!("skipped bytes in {more} more places, {all} bytes in total"));
        }
        if self.events_left_out > 0 {
            let events = Count(self.events_left_out);
            lines.push(format!("omitted {events} events because their definitions are missing"));
        }
        if self.events_without_stack > 0 {
            let events = Count(self.events_without_stack);
            lines.push(format!("{events} events have no stack in the copy because their stacks are missing"));
        }
        lines
    }
}

/// Prints the line of the copy, if one was written.
impl Print for RepairDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let Some(output) = self.output.as_ref().filter(|_| self.repaired.has_changed()) else {
            return Ok(());
        };
        writeln!(out, "{}  {} of {}", Clean(output), Bytes(self.bytes_written), Bytes(self.bytes_read))
    }
}
