//! The event that ends a recording, looked for while the stream is written away.

use runtap_clr::payload::Decoder;
use runtap_clr::{Filter, FilterError, Record};
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

/// Why a text is no condition for a payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// A part of it has no field.
    #[error("'{0}' is no FIELD:VALUE")]
    NoPair(String),
    /// What it means can't be looked for.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl StopEvent {
    /// `FIELD:VALUE,FIELD:VALUE`, as dotnet-trace has it: all must hold.
    ///
    /// # Errors
    /// A part of it is none.
    pub fn payload_filter(text: &str) -> Result<Filter, PayloadError> {
        let mut conditions = Vec::new();
        for pair in text.split(',') {
            let (field, value) = pair
                .split_once(':')
                .filter(|(field, _)| !field.trim().is_empty())
                .ok_or_else(|| PayloadError::NoPair(pair.to_owned()))?;
            conditions.push(format!("payload.{} = {}", quoted(field.trim()), quoted(value.trim())));
        }
        Ok(conditions.join(" and ").parse()?)
    }
}

/// As a word of a filter. A backslash at the end would take the quote for its own.
fn quoted(text: &str) -> String {
    let inner = text.trim_end_matches('\\');
    let end = text.strip_prefix(inner).unwrap_or_default();
    format!("\"{}\"{end}", inner.replace('"', "\\\""))
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
        if event.metadata.is_none_or(|metadata| !metadata.provider.eq_ignore_ascii_case(provider)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_quoted() {
        for text in ["", "a b", "a\"b", "a\\\"b", "a\\", "\\", "'", "null", "x and y"] {
            StopEvent::payload_filter(&format!("f:{text}"))
                .unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        for text in ["a", "a:b,:c", ""] {
            assert!(matches!(StopEvent::payload_filter(text), Err(PayloadError::NoPair(_))), "{text}");
        }
    }
}
