//! Parts of a stream that are gathered side by side, and put together in the order of the stream. What depends on what
//! was before is kept until then; a part for which that is not enough says so, and is read again.

use runtap_nettrace::{Item, Join, Metadata, Observe};

use super::ProfileBuilder;
use crate::names::NamingEvents;

/// What a part keeps for later.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) naming: NamingEvents,
    definitions: Vec<Metadata>,
    /// Whether it has events that can't be kept.
    pub(super) refuses: bool,
}

impl Part {
    pub(super) fn define(&mut self, metadata: &Metadata) {
        self.definitions.push(metadata.clone());
    }
}

impl ProfileBuilder {
    /// Makes builders for parts of the stream, each of which sees the items of one part; [`Join::join`] takes them
    /// in. `None` for a view that is made of events, whose parts mean nothing by themselves.
    pub fn parts(&self) -> Option<impl Fn() -> Self + Sync + use<>> {
        let stacks = self.stacks.of_part();
        let part = move || Self { stacks: stacks.clone(), part: Some(Part::default()), ..Self::new() };
        self.events.is_none().then_some(part)
    }
}

impl Join for ProfileBuilder {
    /// As if the items of that part had been shown to this one.
    fn join(&mut self, next: Self) -> bool {
        let Self { header, stacks, ticks, end, part, .. } = next;
        let Some(part) = part.filter(|part| !part.refuses) else { return false };
        let places = self.stacks.join(&stacks);
        if !self.ticks.join(ticks, &places) {
            return false;
        }
        if let Some(header) = &header {
            self.item(&Item::Header(header));
        }
        for metadata in &part.definitions {
            self.item(&Item::Metadata(metadata));
        }
        part.naming.replay(&mut self.names);
        self.end = self.end.max(end);
        // Known by the events' own definitions.
        self.actions.clear();
        true
    }
}
