//! Makes a long recording out of a short one by repeating its events with later times, by the project's own writer.

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Context as _, Result};
use runtap_nettrace::{EventToWrite, Reader, StreamItem, TraceHeader, Writer};

/// Writes at least `size` bytes to `file`, in complete rounds of `recording`; returns the number of events.
pub(crate) fn repeat(recording: &[u8], size: u64, mut file: impl Write) -> Result<u64> {
    let (header, first, last) = ends(recording)?;
    let mut writer = Writer::new(&header);
    let mut ids = HashMap::new();
    let (mut events, mut written, mut later) = (0, 0, 0);
    while written < size {
        let mut reader = Reader::new();
        let mut items = reader.items(recording);
        while let Some(item) = items.next()? {
            match item {
                StreamItem::Metadata(metadata) if later == 0 => {
                    ids.insert(metadata.id, writer.define_event(metadata)?);
                }
                StreamItem::Event(event) => {
                    events += 1;
                    let stack: Vec<u64> = event.stack.ips().collect();
                    writer.event(&EventToWrite {
                        metadata_id: *ids.get(&event.metadata_id).context("an event without a definition")?,
                        thread_id: event.thread_id,
                        capture_thread_id: event.capture_thread_id,
                        sequence: None,
                        processor: event.processor,
                        stack: &stack,
                        timestamp: event.timestamp + later,
                        activity_id: event.activity_id,
                        related_activity_id: event.related_activity_id,
                        labels: &[],
                        payload: event.payload,
                    })?;
                }
                StreamItem::SequencePoint(point) => writer.sequence_point(point.timestamp + later),
                _ => {}
            }
        }
        let output = writer.take_output();
        written += output.len() as u64;
        file.write_all(&output)?;
        later += last - first + 1;
    }
    file.write_all(&writer.finish())?;
    Ok(events)
}

/// Returns the header, and the first and the last time stamp.
fn ends(recording: &[u8]) -> Result<(TraceHeader, u64, u64)> {
    let mut reader = Reader::new();
    let (mut first, mut last) = (u64::MAX, 0);
    reader.items(recording).for_each(|item| {
        let time = match item {
            StreamItem::Event(event) => event.timestamp,
            StreamItem::SequencePoint(point) => point.timestamp,
            _ => return,
        };
        (first, last) = (first.min(time), last.max(time));
    })?;
    let header = reader.header().context("the recording has no header")?.clone();
    Ok((header, first.min(last), last))
}
