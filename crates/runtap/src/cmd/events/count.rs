//! `runtap events FILE --count`

use std::fmt::Write as _;

use runtap_clr::{EventCount, EventCounts};
use runtap_nettrace::TraceHeader;
use serde::Serialize;

use crate::cli::Events;
use crate::cmd::recording::{Partial, partial_of, warn_if_partial};
use crate::output::{Clean, HEADING, Output};
use crate::units::Count;
use runtap_clr::lines::Chooser;
use runtap_files::Recording;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    format: Option<&'static str>,
    version: Option<u32>,
    pointer_size: Option<u32>,
    process_id: Option<u32>,
    events: u64,
    lost: u64,
    partial: Option<Partial>,
    counts: Vec<EventCount>,
}

pub(super) fn run(options: &Events, mut chooser: Chooser, output: Output) -> anyhow::Result<u8> {
    let mut recording = Recording::open(&options.file)?;
    let mut counts = EventCounts::new();
    if chooser.takes_all() {
        recording.read_parallel(&mut counts, EventCounts::new)?;
    } else {
        recording.read(|item| counts.chosen(&mut chooser, item))?;
    }
    let header = recording.header();
    let document = Document {
        schema: "runtap.counts/1",
        file: &options.file.display().to_string(),
        format: header.map(TraceHeader::format_name),
        version: header.map(|header| header.version),
        pointer_size: header.map(|header| header.pointer_size),
        process_id: header.map(|header| header.process_id).filter(|id| *id != 0),
        events: counts.total(),
        lost: recording.lost(),
        partial: partial_of(&recording),
        counts: counts.rows(),
    };
    if output.json() {
        output.document(&document)?;
    } else {
        output.text(text(&document))?;
    }
    Ok(warn_if_partial(&recording, output))
}

fn text(document: &Document<'_>) -> String {
    let mut text = format!("{HEADING}{:>12}  {:>6} {:>3}  EVENT{HEADING:#}\n", "COUNT", "ID", "V");
    for row in &document.counts {
        let separator = if row.name.is_empty() { "" } else { "/" };
        let (n, id, version) = (Count(row.n), row.id, row.version);
        // Writing to a String can't fail.
        let (provider, name) = (Clean(&row.provider), Clean(&row.name));
        let _ = writeln!(text, "{n:>12}  {id:>6} {version:>3}  {provider}{separator}{name}");
    }
    let _ = writeln!(text, "{:>12}  events, {} lost", Count(document.events), Count(document.lost));
    text
}
