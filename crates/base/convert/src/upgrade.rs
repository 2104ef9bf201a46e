//! Converts a recording in the oldest format, `NetPerf`, to Nettrace 4, which newer tools read.
//!
//! Events, definitions, stacks and times are copied unchanged. What the old format does not contain (processor numbers,
//! sequence numbers and therefore losses) stays unknown.

use std::io::Write as _;

use crate::source::Recording;
use runtap_nettrace::{Event, EventToWrite, IdTable, Metadata, StreamItem, Writer};
use runtap_os::output::Writer as Output;

use crate::Error;

/// Number of events that are buffered.
const BATCH_SIZE: u64 = 4096;

/// Copies a recording to the newer format.
///
/// # Errors
/// If the file is not a recording or already in the newer format, or if the output cannot be written.
pub fn upgrade(recording: &mut Recording, out: &mut Output) -> Result<(), Error> {
    let mut copy = None;
    recording.read_in_order(|item| match (item, &mut copy) {
        (StreamItem::Header(header), _) => {
            if header.format_name() != "NetPerf" {
                return Err(Error::NotNetPerf);
            }
            copy = Some(Copy {
                writer: Writer::new(header),
                ids: IdTable::default(),
                stack: Vec::new(),
                events: 0,
            });
            Ok(())
        }
        (StreamItem::Metadata(metadata), Some(copy)) => copy.define(metadata),
        (StreamItem::Event(event), Some(copy)) => {
            copy.event(event)?;
            if copy.events.is_multiple_of(BATCH_SIZE) { copy.write(out) } else { Ok(()) }
        }
        _ => Ok(()),
    })?;
    if let Some(copy) = copy {
        put(&copy.writer.finish(), out)?;
    }
    Ok(())
}

struct Copy {
    writer: Writer,
    /// Maps metadata ids of the recording to those of the copy.
    ids: IdTable<u32>,
    stack: Vec<u64>,
    events: u64,
}

impl Copy {
    fn define(&mut self, metadata: &Metadata) -> Result<(), Error> {
        let id = self
            .writer
            .define_event(metadata)
            .map_err(|error| Error::Copy { what: "a definition", error })?;
        self.ids.insert(metadata.id, id);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        // An event without a definition cannot be interpreted.
        let Some(metadata_id) = self.ids.get(event.metadata_id) else { return Ok(()) };
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
        if self.writer.needs_sequence_point() {
            self.writer.sequence_point(event.timestamp);
        }
        self.events += 1;
        self.writer.event(&event).map_err(|error| Error::Copy { what: "an event", error })
    }

    fn write(&mut self, out: &mut Output) -> Result<(), Error> {
        self.writer.flush();
        put(&self.writer.take_output(), out)
    }
}

fn put(bytes: &[u8], out: &mut Output) -> Result<(), Error> {
    out.write_all(bytes).map_err(|error| out.failed(error).into())
}
