//! Helpers of the fuzz targets: the results of a reading in a form that is cheap to compare, and files in a confined
//! directory. Makes no assertions.

#[cfg(target_os = "linux")]
pub mod confined;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use runtap_nettrace::{Error, Event, Reader, Scan, StreamItem};

/// Returns a hash of an item.
pub fn digest(item: &StreamItem<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match item {
        StreamItem::Event(event) => digest_event(event, &mut hasher),
        StreamItem::SequencePoint(point) => {
            point.timestamp.hash(&mut hasher);
            point.threads.iter().for_each(|thread| thread.hash(&mut hasher));
        }
        other => format!("{other:?}").hash(&mut hasher),
    }
    hasher.finish()
}

fn digest_event(event: &Event<'_>, hasher: &mut DefaultHasher) {
    digest_content(event, hasher);
    (event.metadata_id, event.stack_id, event.sorted, event.metadata.is_some()).hash(hasher);
    for thread in [event.thread, event.capture_thread] {
        thread.map(|thread| (thread.index, &thread.name, &thread.attributes)).hash(hasher);
    }
    if !event.labels.is_empty() {
        format!("{:?}", event.labels).hash(hasher);
    }
}

/// Hashes the meaning of an event, independent of the ids in the stream.
pub fn digest_content(event: &Event<'_>, hasher: &mut DefaultHasher) {
    (event.thread_id, event.capture_thread_id, event.process_id).hash(hasher);
    (event.processor, event.sequence, event.timestamp).hash(hasher);
    event.activity_id.map(|id| id.as_bytes().to_owned()).hash(hasher);
    event.related_activity_id.map(|id| id.as_bytes().to_owned()).hash(hasher);
    event.stack.bytes().hash(hasher);
    event.payload.hash(hasher);
}

fn error(error: &Error) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{error:?}").hash(&mut hasher);
    hasher.finish()
}

/// The results of a complete reading: every item and error, and the reader's summary.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadingResult {
    /// One number per item or error.
    pub items: Vec<u64>,
    /// The number of events among them.
    pub events: usize,
    /// Losses, oddities, damage.
    pub end: String,
}

impl ReadingResult {
    fn new() -> Self {
        Self { items: Vec::new(), events: 0, end: String::new() }
    }

    fn item(&mut self, item: &StreamItem<'_>) {
        self.events += usize::from(matches!(item, StreamItem::Event(_)));
        self.items.push(digest(item));
    }

    fn end(&mut self, reader: &Reader) {
        self.end = format!("{:?} {:?} {}", reader.partial(), reader.counts(), reader.lost());
    }

    fn rest(&mut self, reader: &mut Reader) {
        loop {
            match reader.next() {
                Ok(Some(item)) => self.item(&item),
                Ok(None) => return,
                Err(found) => self.items.push(error(&found)),
            }
        }
    }

    /// Reads a stream in chunks, one item at a time.
    pub fn of(stream: &[u8], chunk: usize) -> Self {
        let (mut reader, mut said) = (Reader::new(), Self::new());
        for chunk in stream.chunks(chunk.max(1)) {
            reader.feed(chunk);
            said.rest(&mut reader);
        }
        reader.finish();
        said.rest(&mut reader);
        said.end(&reader);
        said
    }

    /// Reads a stream in place, all items of a chunk at once.
    pub fn in_place(stream: &[u8], chunk: usize) -> Self {
        let (mut reader, mut said) = (Reader::new(), Self::new());
        for part in stream.chunks(chunk.max(1)).chain([&[][..]]) {
            if part.is_empty() {
                reader.finish();
            }
            let mut items = reader.items(part);
            while let Err(found) = items.for_each(|item| said.item(&item)) {
                said.items.push(error(&found));
            }
        }
        said.end(&reader);
        said
    }

    /// Reads a stream in parts of at least `size` bytes, and joins the results.
    pub fn in_parts(stream: &[u8], size: u64) -> Self {
        let mut said = Self::new();
        let mut whole: Option<Reader> = None;
        for part in Scan::of(stream, size) {
            let mut reader = part.reader();
            for range in part.feed_ranges() {
                reader.seek(range.start);
                let bytes = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                let bytes = bytes.and_then(|(start, end)| stream.get(start..end)).expect("a part of it");
                // Errors in a block of another part are reported by that part.
                let is_own = range == part.range();
                let mut items = reader.items(bytes);
                while let Err(found) = items.for_each(|item| {
                    assert!(is_own, "definitions are no items");
                    said.item(&item);
                }) {
                    if is_own {
                        said.items.push(error(&found));
                    }
                }
            }
            reader.finish();
            said.rest(&mut reader);
            match &mut whole {
                None => whole = Some(reader),
                Some(whole) => whole.join(reader),
            }
        }
        said.end(&whole.expect("at least one part"));
        said
    }
}
