//! How many events of which kind a stream holds.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::{Event, IdTable, Item, Join, Metadata, Observe};
use serde::Serialize;

use crate::lines::Chooser;
use crate::payload::Schema;

/// Events of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EventCount {
    /// Provider, empty where the stream does not say.
    pub provider: String,
    /// Event id.
    pub id: u32,
    /// Event version.
    pub version: u32,
    /// Name as the stream has it, or `Task/Opcode` for the runtime's own events, which bring none.
    pub name: String,
    /// How many.
    pub n: u64,
}

/// Counts events while a stream is read: one addition an event.
#[derive(Debug, Default)]
pub struct EventCounts {
    by_metadata: IdTable<Tally>,
    /// What has no place there: events without a definition, definitions that were replaced.
    others: HashMap<Kind, u64, RandomState>,
    total: u64,
}

/// Provider, id, version, name.
type Kind = (String, u32, u32, String);

#[derive(Debug, Clone)]
struct Tally {
    kind: Kind,
    n: u64,
}

impl EventCounts {
    /// Nothing counted yet.
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
            *self.others.entry(Kind::default()).or_default() += 1;
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

    /// Takes the next item of a stream, and counts it if it is an event that `chooser` takes, which sees the others.
    pub fn chosen(&mut self, chooser: &mut Chooser, item: &Item<'_>) {
        if let Item::Event(event) = item {
            if chooser.choose(event).is_some() {
                self.add(event);
            }
        } else {
            self.item(item);
            chooser.item(item);
        }
    }

    /// Call when the stream defines a metadata id anew: what was counted under the old definition stays counted.
    pub fn redefined(&mut self, metadata_id: u32) {
        if let Some(old) = self.by_metadata.remove(metadata_id) {
            *self.others.entry(old.kind).or_default() += old.n;
        }
    }

    /// All events.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The counts, sorted by provider, id, version and name. Definitions that agree in these are one row.
    pub fn rows(&self) -> Vec<EventCount> {
        let dense = self.by_metadata.values().map(|tally| (&tally.kind, tally.n));
        let mut tallies: Vec<_> = dense.chain(self.others.iter().map(|(kind, n)| (kind, *n))).collect();
        tallies.sort();
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
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => self.add(event),
            Item::Metadata(metadata) => self.redefined(metadata.id),
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
