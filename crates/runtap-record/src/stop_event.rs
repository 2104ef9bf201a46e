//! The event that ends a recording, looked for while the stream is written away.

use runtap_clr::payload::Decoder;
use runtap_clr::{Filter, Record};
use runtap_nettrace::{Event, Item, Observe, TraceHeader};

use crate::stops::Stops;

/// The event that ends a recording.
#[derive(Debug, Clone)]
pub struct StopEvent {
    /// Its provider.
    pub provider: String,
    /// Its name as the stream has it, or `Task/Opcode`; by default any event of the provider.
    pub name: Option<String>,
    /// What its payload has to be like.
    pub payload: Option<Filter>,
}

/// Looks at the events of one stream.
#[derive(Debug)]
pub(crate) struct StopEventWatch {
    event: StopEvent,
    decoder: Decoder,
    header: Option<TraceHeader>,
    stops: Stops,
    seen: bool,
}

impl StopEventWatch {
    /// Tells `stops` when the event has come.
    pub(crate) fn new(event: StopEvent, stops: Stops) -> Self {
        Self { event, decoder: Decoder::new(), header: None, stops, seen: false }
    }

    /// Takes the next item of the stream.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        if self.seen {
            return;
        }
        match item {
            Item::Event(event) if self.is_it(event) => {
                self.seen = true;
                self.stops.stop();
            }
            Item::Event(_) => {}
            other => {
                if let Item::Header(header) = other {
                    self.header = Some((*header).clone());
                }
                self.decoder.item(other);
            }
        }
    }

    fn is_it(&self, event: &Event<'_>) -> bool {
        let StopEvent { provider, name, payload } = &self.event;
        if event.metadata.is_none_or(|metadata| metadata.provider != *provider) {
            return false;
        }
        let found = self.decoder.payload(event);
        let schema = found.schema();
        if name.as_ref().is_some_and(|name| schema.name() != name && schema.task_and_opcode() != *name) {
            return false;
        }
        let Some(filter) = payload else { return true };
        let Some(header) = &self.header else { return false };
        filter.matches(&Record { header, event, payload: found }, &[])
    }
}
