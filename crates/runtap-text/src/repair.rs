//! A repaired copy of a recording: `runtap.repair/1`, and its line.

use std::io;
use std::path::Path;

use runtap_nettrace::{Repaired, TraceHeader};
use serde::Serialize;

use crate::document::Partial;
use crate::units::Bytes;
use crate::{Clean, Print, TextOptions};

/// `runtap.repair/1`
#[derive(Debug, Serialize)]
pub struct RepairDocument<'a> {
    schema: &'static str,
    file: String,
    /// `None` where the recording is whole, and nothing was written.
    output: Option<String>,
    format: &'static str,
    version: u32,
    partial: Option<Partial>,
    bytes_read: u64,
    bytes_written: u64,
    blocks_shortened: u64,
    blocks_left_out: u64,
    end_added: bool,
    bytes_after_end: u64,
    #[serde(skip)]
    repaired: &'a Repaired,
}

impl<'a> RepairDocument<'a> {
    /// Of a file with this header, and the copy of it.
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
            end_added: repaired.end_added,
            bytes_after_end: repaired.bytes_after_end,
            repaired,
        }
    }

    /// What there was to repair, in one line.
    pub fn remark(&self) -> String {
        let Self { file, blocks_shortened, blocks_left_out, .. } = self;
        if !self.repaired.has_changed() {
            return format!("{file} is whole: nothing to repair");
        }
        let partial = self.repaired.partial.as_ref().map(ToString::to_string);
        let why = partial.as_deref().unwrap_or("has blocks that nobody knows");
        format!("{file} {why}; blocks shortened: {blocks_shortened}, left out: {blocks_left_out}")
    }
}

/// The line of the copy, if there is one.
impl Print for RepairDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let Some(output) = self.output.as_ref().filter(|_| self.repaired.has_changed()) else {
            return Ok(());
        };
        writeln!(out, "{}  {} of {}", Clean(output), Bytes(self.bytes_written), Bytes(self.bytes_read))
    }
}
