//! Collects events for reports and sorts them by time.

use std::fmt;

use runtap_model::order;

use super::{Decoder, Event, IdTable, Metadata, Observe, Payload, StreamItem, TraceHeader};

/// The collected events sorted by time, and the clock.
pub(super) type Collected<T> = (Vec<CollectedEvent<T>>, Clock);

/// A collected event.
#[derive(Debug, Clone)]
pub(super) struct CollectedEvent<T> {
    pub(super) timestamp: u64,
    pub(super) thread: u64,
    pub(super) what: T,
}

/// Collects what a report needs.
pub(super) struct Collector<T> {
    header: Option<TraceHeader>,
    decoder: Decoder,
    /// Whether events of a kind are wanted, by metadata id.
    wanted: IdTable<bool>,
    wants: fn(&Metadata) -> bool,
    kept: Vec<CollectedEvent<T>>,
}

impl<T> fmt::Debug for Collector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

impl<T> Collector<T> {
    pub(super) fn new(wants: fn(&Metadata) -> bool) -> Self {
        Self { header: None, decoder: Decoder::new(), wanted: IdTable::default(), wants, kept: Vec::new() }
    }

    /// Processes the next item. `keep` returns what is kept of a wanted event.
    pub(super) fn item(
        &mut self,
        item: &StreamItem<'_>,
        keep: impl FnOnce(&Metadata, &Event<'_>, Payload<'_>) -> Option<T>,
    ) {
        match item {
            StreamItem::Header(header) => self.header = Some((*header).clone()),
            StreamItem::Metadata(metadata) => {
                self.wanted.remove(metadata.id);
            }
            StreamItem::SequencePoint(point) if point.flushes_metadata() => self.wanted.clear(),
            StreamItem::Event(event) => {
                if let Some(metadata) = event.metadata
                    && self.is_wanted(metadata)
                    && let Some(what) = keep(metadata, event, self.decoder.payload(event))
                {
                    self.kept.push(CollectedEvent {
                        timestamp: event.timestamp,
                        thread: event.thread_id,
                        what,
                    });
                }
                return;
            }
            _ => {}
        }
        self.decoder.item(item);
    }

    #[inline]
    fn is_wanted(&mut self, metadata: &Metadata) -> bool {
        if let Some(known) = self.wanted.get(metadata.id) {
            return *known;
        }
        let wanted = (self.wants)(metadata);
        self.wanted.insert(metadata.id, wanted);
        wanted
    }

    /// Returns the collected events.
    pub(super) fn finish(self) -> Collected<T> {
        found(self.kept, self.header)
    }

    /// Returns a copy of what has been collected so far.
    pub(super) fn so_far(&self) -> Collected<T>
    where
        T: Clone,
    {
        found(self.kept.clone(), self.header.clone())
    }
}

fn found<T>(mut kept: Vec<CollectedEvent<T>>, header: Option<TraceHeader>) -> Collected<T> {
    // The stream groups events by thread; a stable sort merges these runs.
    order::sort_by_number(&mut kept, |kept| kept.timestamp);
    let header = match kept.first() {
        Some(first) => header.map(|header| header.within_reach(first.timestamp)),
        None => header,
    };
    (kept, Clock { header })
}

/// Converts ticks to nanoseconds.
pub(super) struct Clock {
    header: Option<TraceHeader>,
}

impl Clock {
    /// Returns the nanoseconds since the start of the session.
    pub(super) fn at(&self, timestamp: u64) -> i64 {
        self.header.as_ref().map_or(0, |header| header.relative_ns(timestamp))
    }

    /// Returns the nanoseconds between two times.
    pub(super) fn ns(&self, from: u64, to: u64) -> u64 {
        let ticks = i128::from(to) - i128::from(from);
        let ns = self.header.as_ref().map_or(0, |header| header.ticks_to_ns(ticks));
        u64::try_from(ns).unwrap_or(0)
    }
}

/// Returns a number of the payload that fits 32 bits.
pub(super) fn small(payload: Payload<'_>, name: &str) -> Option<u32> {
    payload.u64(name).and_then(|number| u32::try_from(number).ok())
}

/// Returns the text with this name in the payload. Empty for a payload without it.
pub(super) fn text(payload: Payload<'_>, name: &str) -> String {
    payload.text(name).unwrap_or_default()
}
