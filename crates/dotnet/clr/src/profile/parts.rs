//! Parts of a stream that are read in parallel and joined in order. What depends on earlier parts is kept until then; a part that
//! contains other dependent events must be read again.

use runtap_nettrace::{Join, Metadata, Observe, StreamItem};

use super::ProfileBuilder;
use crate::names::NamingEvents;

/// What a part keeps for joining.
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
    /// Returns a function that creates builders for parts of the stream, each of which processes the items of one part;
    /// [`Join::join`] joins them. `None` for a view of events, whose parts can't be read separately.
    pub fn parts(&self) -> Option<impl Fn() -> Self + Sync + use<>> {
        let stacks = self.stacks.of_part();
        let part = move || Self { stacks: stacks.clone(), part: Some(Part::default()), ..Self::new() };
        self.events.is_none().then_some(part)
    }
}

impl Join for ProfileBuilder {
    /// Equivalent to processing the items of that part with this builder.
    fn join(&mut self, next: Self) -> bool {
        let Self { header, stacks, ticks, end, part, .. } = next;
        let Some(part) = part.filter(|part| !part.refuses) else { return false };
        let places = self.stacks.join(&stacks);
        if !self.ticks.join(ticks, &places) {
            return false;
        }
        if let Some(header) = &header {
            self.item(&StreamItem::Header(header));
        }
        for metadata in &part.definitions {
            self.item(&StreamItem::Metadata(metadata));
        }
        part.naming.replay(&mut self.names);
        self.end = self.end.max(end);
        // Actions are determined again from the definitions of events.
        self.actions.clear();
        true
    }
}
