//! Writes the events of a session's buffers to its stream: nettrace 4 or `NetPerf` 3, with the rundown at the end.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use runtap_diag_proto::{Format, ProcessInfo};
use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, TraceHeader, Version, Writer};

use crate::batch::Due;
use crate::event::current_thread_id;
use crate::records::Gathered;
use crate::rundown::{Sources, WriteRundown};
use crate::session::{Drained, Session};
use crate::state::PipeState;

/// The provider of the event at the end of every session.
const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";

/// The number of bytes of events to encode before sending.
const CHUNK: usize = 256 << 10;

/// The encoder of one session's stream.
#[derive(Debug)]
pub(crate) struct Encoder {
    writer: Writer,
    pipe: Arc<PipeState>,
    /// Metadata ids by [`Definition::index`](crate::definition::Definition); 0 means that the event is not defined yet.
    ids: Vec<u32>,
}

impl Encoder {
    pub(crate) fn new(pipe: Arc<PipeState>, info: &ProcessInfo, format: Format) -> Self {
        let utc = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let utc = i64::try_from(utc.as_nanos()).unwrap_or(i64::MAX);
        let start = i64::try_from(pipe.now()).unwrap_or(i64::MAX);
        let mut header = TraceHeader::new(utc, start, 1_000_000_000);
        header.process_id = u32::try_from(info.process_id).unwrap_or(u32::MAX);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        header.processors = u32::try_from(processors).unwrap_or(1);
        let version = match format {
            Format::NetPerf => Version::NetPerf3,
            Format::Nettrace => Version::Nettrace4,
        };
        Self { writer: Writer::with_version(&header, version), pipe, ids: Vec::new() }
    }

    /// Appends events until they fill a chunk. Returns their number and their size in the buffers. Events that cannot be
    /// written are lost, which leaves a gap in the sequence numbers.
    pub(crate) fn events<'e>(&mut self, events: impl Iterator<Item = Due<'e>>) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        for Due { capture_thread_id, event } in events {
            count += 1;
            bytes += event.size();
            let Gathered { record, extra, stack, payload } = event;
            let extra = extra.copied().unwrap_or_default();
            if let Some(metadata_id) = self.metadata_id(record.definition) {
                // The writer rejects events that the buffer accepted but the format forbids: a definition or an order.
                let _ = self.writer.event(&EventToWrite {
                    metadata_id,
                    thread_id: extra.thread.unwrap_or(capture_thread_id),
                    capture_thread_id,
                    sequence: Some(record.sequence),
                    processor: u32::MAX,
                    stack,
                    timestamp: record.timestamp,
                    activity_id: extra.activity,
                    related_activity_id: extra.related_activity,
                    labels: &[],
                    payload,
                });
            }
            if bytes >= CHUNK {
                break;
            }
        }
        (count, bytes)
    }

    /// Makes all appended events visible to the reader. With `probe`, at least a sequence point is written, to detect whether
    /// the reader is still connected.
    pub(crate) fn flush(&mut self, drained: &Drained, probe: bool) {
        for (thread, attempted) in &drained.attempted {
            self.writer.attempted(*thread, *attempted);
        }
        for thread in &drained.ended {
            self.writer.end_thread(*thread);
        }
        if probe || self.writer.needs_sequence_point() {
            self.writer.sequence_point(drained.until);
        } else {
            self.writer.flush();
        }
    }

    fn metadata_id(&mut self, index: usize) -> Option<u32> {
        if let Some(id) = self.ids.get(index).filter(|id| **id != 0) {
            return Some(*id);
        }
        let definition = self.pipe.definition(index)?;
        let id = self.writer.define_event(&definition.metadata).ok()?;
        if self.ids.len() <= index {
            self.ids.resize(index + 1, 0);
        }
        if let Some(place) = self.ids.get_mut(index) {
            *place = id;
        }
        Some(id)
    }

    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        self.writer.take_output()
    }

    /// Ends the stream: the process information, the rundown if the session requests one, and the end marker. Passes the
    /// output to `send` in parts. May take long, because the program's own code runs here.
    pub(crate) fn finish(
        mut self,
        session: &Session,
        info: &ProcessInfo,
        sources: &Sources,
        send: impl FnMut(Vec<u8>),
    ) {
        self.process_info(info);
        let mut ending = Ending { encoder: self, send };
        let keyword = session.config.rundown_keyword;
        if keyword != 0 {
            sources.write(keyword, &mut ending);
        }
        let Ending { encoder, mut send } = ending;
        send(encoder.writer.finish());
    }

    fn process_info(&mut self, info: &ProcessInfo) {
        let mut metadata = Metadata::new(EVENT_PIPE, 1, "ProcessInfo");
        (metadata.version, metadata.level) = (1, 0);
        metadata.fields = ["CommandLine", "OSInformation", "ArchInformation"]
            .map(|name| Field::new(name, FieldType::String))
            .to_vec();
        let mut payload = runtap_wire::Writer::new();
        payload.utf16z(&info.command_line).utf16z(&info.os).utf16z(&info.arch);
        if let Ok(id) = self.writer.define_event(&metadata) {
            self.write_now(id, current_thread_id(), payload.as_bytes());
        }
    }

    fn write_now(&mut self, metadata_id: u32, thread: u64, payload: &[u8]) {
        // A payload beyond the format's limit, such as a very long command line, is omitted.
        let _ = self.writer.event(&EventToWrite {
            metadata_id,
            thread_id: thread,
            capture_thread_id: thread,
            timestamp: self.pipe.now(),
            processor: u32::MAX,
            payload,
            ..EventToWrite::default()
        });
    }
}

/// A stream that is being ended, with the receiver of its bytes.
struct Ending<F> {
    encoder: Encoder,
    send: F,
}

impl<F> fmt::Debug for Ending<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ending").field("encoder", &self.encoder).finish_non_exhaustive()
    }
}

impl<F: FnMut(Vec<u8>)> WriteRundown for Ending<F> {
    fn write(&mut self, definition: usize, thread: u64, payload: &[u8]) {
        if let Some(id) = self.encoder.metadata_id(definition) {
            self.encoder.write_now(id, thread, payload);
        }
        // Send complete blocks, which are large.
        let bytes = self.encoder.take_output();
        if !bytes.is_empty() {
            (self.send)(bytes);
        }
    }
}
