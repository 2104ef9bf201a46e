//! `convert --to nettrace`: a recording of the first format, `NetPerf`, in Nettrace 4, which newer tools read.
//!
//! Events, definitions, stacks and times are copied as they are. What the old format does not tell (processors, numbers of
//! events, and with them losses) stays unknown.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Context;
use runtap_files::Recording;
use runtap_nettrace::{Event, EventToWrite, Item, Metadata, Writer};

use crate::exit::usage;

/// Events that are held.
const PIECE: u64 = 4096;

/// Copies a recording.
///
/// # Errors
/// It is none, or newer already; the output can't be written.
pub(super) fn renew(recording: &mut Recording, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut copy = None;
    recording.read_in_order(|item| match (item, &mut copy) {
        (Item::Header(header), _) => {
            if header.format_name() != "NetPerf" {
                return Err(usage("the recording is in the nettrace format already"));
            }
            copy =
                Some(Copy { writer: Writer::new(header), ids: HashMap::new(), stack: Vec::new(), events: 0 });
            Ok(())
        }
        (Item::Metadata(metadata), Some(copy)) => copy.define(metadata),
        (Item::Event(event), Some(copy)) => {
            copy.event(event)?;
            if copy.events.is_multiple_of(PIECE) { copy.write(out) } else { Ok(()) }
        }
        _ => Ok(()),
    })?;
    if let Some(copy) = copy {
        out.write_all(&copy.writer.finish())?;
    }
    Ok(())
}

struct Copy {
    writer: Writer,
    /// From ids of the recording to those of the copy.
    ids: HashMap<u32, u32>,
    stack: Vec<u64>,
    events: u64,
}

impl Copy {
    fn define(&mut self, metadata: &Metadata) -> anyhow::Result<()> {
        let id = self.writer.define_event(metadata).context("a definition can't be copied")?;
        self.ids.insert(metadata.id, id);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> anyhow::Result<()> {
        // Without a definition nobody knows what it is.
        let Some(metadata_id) = self.ids.get(&event.metadata_id) else { return Ok(()) };
        self.stack.clear();
        self.stack.extend(event.stack.ips());
        let event = EventToWrite {
            metadata_id: *metadata_id,
            thread_id: event.thread_id,
            capture_thread_id: event.capture_thread_id,
            processor: event.processor,
            stack: &self.stack,
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            payload: event.payload,
            ..EventToWrite::default()
        };
        if self.writer.wants_sequence_point() {
            self.writer.sequence_point(event.timestamp);
        }
        self.events += 1;
        self.writer.event(&event).context("an event can't be copied")
    }

    fn write(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        self.writer.flush();
        Ok(out.write_all(&self.writer.take_output())?)
    }
}
