//! Owned copies of a reader's items, for comparing readings.

use runtap_nettrace::{Error, Event, Metadata, Partial, Reader, StreamItem, Thread, TraceHeader, Uuid};

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

/// An event with its stack.
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
    pub(crate) more: Option<Box<More>>,
}

/// The data of an event that only Nettrace 6 has.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct More {
    pub(crate) thread: Option<Thread>,
    pub(crate) labels: Vec<String>,
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
        Self::end(reader, items)
    }

    /// Reads `bytes` in place, all items of a piece at once.
    pub(crate) fn in_place(bytes: &[u8], chunk: usize) -> Self {
        let (mut reader, mut items) = (Reader::new(), Vec::new());
        for part in bytes.chunks(chunk.max(1)).chain([&[][..]]) {
            if part.is_empty() {
                reader.finish();
            }
            let mut these = reader.items(part);
            while let Err(error) = these.for_each(|item| items.push(seen(item))) {
                items.push(Seen::Error(error));
            }
        }
        Self::end(&reader, items)
    }

    /// Reads `bytes` in place, item by item, leaving every third piece unread at first.
    pub(crate) fn in_place_one_by_one(bytes: &[u8], chunk: usize) -> Self {
        let (mut reader, mut items) = (Reader::new(), Vec::new());
        for (n, part) in bytes.chunks(chunk.max(1)).chain([&[][..]]).enumerate() {
            if part.is_empty() {
                reader.finish();
            }
            let mut these = reader.items(part);
            let most = if n % 3 == 2 { n % 2 } else { usize::MAX };
            for _ in 0..most {
                match these.next() {
                    Ok(Some(item)) => items.push(seen(item)),
                    Ok(None) => break,
                    Err(error) => items.push(Seen::Error(error)),
                }
            }
        }
        while let item @ (Ok(Some(_)) | Err(_)) = reader.next() {
            items.push(item.map_or_else(Seen::Error, |item| seen(item.unwrap())));
        }
        Self::end(&reader, items)
    }

    pub(crate) fn end(reader: &Reader, items: Vec<Seen>) -> Self {
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

fn more(event: &Event<'_>) -> Option<Box<More>> {
    assert_eq!(event.process_id, event.thread.and_then(|thread| thread.process_id));
    let labels = event.labels.iter().map(|label| format!("{label:?}")).collect();
    let more = More { thread: event.thread.cloned(), labels };
    (more != More::default()).then(|| Box::new(more))
}

pub(crate) fn seen(item: StreamItem<'_>) -> Seen {
    match item {
        StreamItem::Header(header) => Seen::Header(header.clone()),
        StreamItem::Metadata(metadata) => Seen::Metadata(metadata.clone()),
        StreamItem::Event(event) => Seen::Event(SeenEvent {
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
            more: more(&event),
        }),
        StreamItem::SequencePoint(point) => Seen::Point(point.timestamp, point.threads.iter().collect()),
        StreamItem::End => Seen::End,
        other => panic!("{other:?}"),
    }
}
