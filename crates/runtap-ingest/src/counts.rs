//! How many events of which kind a stream holds.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::{Event, Item, Join, Metadata, Observe};

use crate::payload::Schema;

/// Events of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Per metadata id of the stream, which are small and dense as every writer makes them.
    by_metadata: Vec<Option<Tally>>,
    /// What has no place there: events without a definition, ids beyond [`DENSE`], definitions that were replaced.
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

/// Metadata ids up to here are counted by index.
const DENSE: usize = 1 << 16;

impl EventCounts {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an event.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        self.total += 1;
        let id = usize::try_from(event.metadata_id).unwrap_or(usize::MAX);
        match self.by_metadata.get_mut(id) {
            Some(Some(tally)) => tally.n += 1,
            _ => self.add_new(id, event.metadata),
        }
    }

    #[cold]
    fn add_new(&mut self, id: usize, metadata: Option<&Metadata>) {
        let name = |metadata| Schema::of(metadata, 8).name().to_owned();
        let kind =
            metadata.map_or_else(Kind::default, |m| (m.provider.clone(), m.event_id, m.version, name(m)));
        if id < DENSE && metadata.is_some() {
            if self.by_metadata.len() <= id {
                self.by_metadata.resize(id + 1, None);
            }
            if let Some(slot) = self.by_metadata.get_mut(id) {
                *slot = Some(Tally { kind, n: 1 });
            }
        } else {
            *self.others.entry(kind).or_default() += 1;
        }
    }

    /// Call when the stream defines a metadata id anew: what was counted under the old definition stays counted.
    pub fn redefined(&mut self, metadata_id: u32) {
        let id = usize::try_from(metadata_id).unwrap_or(usize::MAX);
        if let Some(old) = self.by_metadata.get_mut(id).and_then(Option::take) {
            *self.others.entry(old.kind).or_default() += old.n;
        }
    }

    /// All events.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The counts, sorted by provider, id, version and name. Definitions that agree in these are one row.
    pub fn rows(&self) -> Vec<EventCount> {
        let dense = self.by_metadata.iter().flatten().map(|tally| (&tally.kind, tally.n));
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
        let dense = next.by_metadata.into_iter().flatten().map(|tally| (tally.kind, tally.n));
        for (kind, n) in dense.chain(next.others) {
            *self.others.entry(kind).or_default() += n;
        }
        self.total += next.total;
        true
    }
}
