//! Owned copies of what a reader hands out, to compare whole readings. Does not judge.

use runtap_nettrace::{Error, Item, Metadata, Partial, Reader, TraceHeader, Uuid};

/// An item or an error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Header(TraceHeader),
    Metadata(Metadata),
    Event(SeenEvent),
    Point(u64, Vec<(u64, u32)>),
    End,
    Error(Error),
}

/// An event, with its stack looked up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenEvent {
    pub(crate) metadata_id: u32,
    pub(crate) defined: bool,
    pub(crate) thread_id: u64,
    pub(crate) capture_thread_id: u64,
    pub(crate) processor: u32,
    pub(crate) sequence: u32,
    pub(crate) stack: Vec<u64>,
    pub(crate) timestamp: u64,
    pub(crate) activity_id: Option<Uuid>,
    pub(crate) related_activity_id: Option<Uuid>,
    pub(crate) sorted: bool,
    pub(crate) payload: Vec<u8>,
}

/// A whole reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) items: Vec<Seen>,
    pub(crate) lost: u64,
    pub(crate) complete: bool,
    pub(crate) partial: Option<Partial>,
    pub(crate) counts: runtap_nettrace::Counts,
}

impl Reading {
    /// Reads `bytes` in chunks of `chunk` bytes.
    pub(crate) fn of(bytes: &[u8], chunk: usize) -> Self {
        Self::with(&mut Reader::new(), bytes, chunk)
    }

    pub(crate) fn with(reader: &mut Reader, bytes: &[u8], chunk: usize) -> Self {
        let mut items = Vec::new();
        crate::common::read(reader, bytes, chunk, |item| items.push(item.map_or_else(Seen::Error, seen)));
        Self {
            items,
            lost: reader.lost(),
            complete: reader.is_complete(),
            partial: reader.partial().cloned(),
            counts: reader.counts(),
        }
    }

    pub(crate) fn events(&self) -> Vec<&SeenEvent> {
        self.items
            .iter()
            .filter_map(|item| if let Seen::Event(event) = item { Some(event) } else { None })
            .collect()
    }

    pub(crate) fn metadata(&self) -> Vec<&Metadata> {
        self.items
            .iter()
            .filter_map(|item| if let Seen::Metadata(m) = item { Some(m) } else { None })
            .collect()
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.items
            .iter()
            .filter_map(|item| if let Seen::Error(error) = item { Some(error.to_string()) } else { None })
            .collect()
    }
}

fn seen(item: Item<'_>) -> Seen {
    match item {
        Item::Header(header) => Seen::Header(header.clone()),
        Item::Metadata(metadata) => Seen::Metadata(metadata.clone()),
        Item::Event(event) => Seen::Event(SeenEvent {
            metadata_id: event.metadata_id,
            defined: event.metadata.is_some(),
            thread_id: event.thread_id,
            capture_thread_id: event.capture_thread_id,
            processor: event.processor,
            sequence: event.sequence,
            stack: event.stack.ips().collect(),
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            sorted: event.sorted,
            payload: event.payload.to_vec(),
        }),
        Item::SequencePoint(point) => Seen::Point(point.timestamp, point.threads.iter().collect()),
        Item::End => Seen::End,
        other => panic!("{other:?}"),
    }
}
