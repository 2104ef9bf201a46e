//! Counts the events in a stream by kind.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::order;
use runtap_nettrace::{Event, IdTable, Join, Metadata, Observe, StreamItem};
use serde::Serialize;

use crate::lines::Chooser;
use crate::payload::Schema;

/// The number of events of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EventCount {
    /// The provider. Empty if the stream does not define the event.
    pub provider: String,
    /// The event id.
    pub id: u32,
    /// The event version.
    pub version: u32,
    /// The name in the stream, or `Task/Opcode` for the runtime's native events, which have no names there.
    pub name: String,
    /// The number of events.
    pub n: u64,
}

/// Counts events while a stream is read.
#[derive(Debug, Default)]
pub struct EventCounts {
    by_metadata: IdTable<Tally>,
    /// Counts of events without a definition, and of definitions that were replaced.
    others: HashMap<EventKey, u64, RandomState>,
    total: u64,
}

/// The provider, id, version and name.
type EventKey = (String, u32, u32, String);

#[derive(Debug, Clone)]
struct Tally {
    kind: EventKey,
    n: u64,
}

impl EventCounts {
    /// Creates empty counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an event.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        self.total += 1;
        match self.by_metadata.get_dense_mut(event.metadata_id) {
            Some(tally) => tally.n += 1,
            None => self.add_rare(event.metadata_id, event.metadata),
        }
    }

    #[cold]
    fn add_rare(&mut self, id: u32, metadata: Option<&Metadata>) {
        let Some(metadata) = metadata else {
            *self.others.entry(EventKey::default()).or_default() += 1;
            return;
        };
        if let Some(tally) = self.by_metadata.get_mut(id) {
            tally.n += 1;
            return;
        }
        let name = Schema::of(metadata, 8).name().to_owned();
        let kind = (metadata.provider.clone(), metadata.event_id, metadata.version, name);
        self.by_metadata.insert(id, Tally { kind, n: 1 });
    }

    /// Processes the next item of a stream: counts an event if `chooser` accepts it, and passes other items to `chooser`.
    pub fn chosen(&mut self, chooser: &mut Chooser, item: &StreamItem<'_>) {
        if let StreamItem::Event(event) = item {
            if chooser.choose(event).is_some() {
                self.add(event);
            }
        } else {
            self.item(item);
            chooser.item(item);
        }
    }

    /// Must be called when the stream redefines a metadata id. Events counted under the old definition stay counted.
    pub fn redefined(&mut self, metadata_id: u32) {
        if let Some(old) = self.by_metadata.remove(metadata_id) {
            *self.others.entry(old.kind).or_default() += old.n;
        }
    }

    /// Returns the number of all events.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the counts sorted by provider, id, version and name. Definitions that agree in all of these are merged.
    pub fn rows(&self) -> Vec<EventCount> {
        let dense = self.by_metadata.values().map(|tally| (&tally.kind, tally.n));
        let mut tallies: Vec<_> = dense.chain(self.others.iter().map(|(kind, n)| (kind, *n))).collect();
        order::sort(&mut tallies);
        let mut rows: Vec<EventCount> = Vec::new();
        for ((provider, id, version, name), n) in tallies {
            match rows.last_mut() {
                Some(row)
                    if (&row.provider, row.id, row.version, &row.name) == (provider, *id, *version, name) =>
                {
                    row.n += n;
                }
                _ => {
                    let (provider, name) = (provider.clone(), name.clone());
                    rows.push(EventCount { provider, id: *id, version: *version, name, n });
                }
            }
        }
        rows
    }
}

impl Observe for EventCounts {
    #[inline]
    fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Event(event) => self.add(event),
            StreamItem::Metadata(metadata) => self.redefined(metadata.id),
            _ => {}
        }
    }
}

impl Join for EventCounts {
    fn join(&mut self, next: Self) -> bool {
        let dense = next.by_metadata.into_values().map(|tally| (tally.kind, tally.n));
        for (kind, n) in dense.chain(next.others) {
            *self.others.entry(kind).or_default() += n;
        }
        self.total += next.total;
        true
    }
}
