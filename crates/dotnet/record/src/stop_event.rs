//! Detects the event that stops a recording while the stream is written.

use runtap_clr::payload::Decoder;
use runtap_clr::{Filter, FilterError, Record};
use runtap_nettrace::{Event, Observe, StreamItem, TraceHeader};

use crate::stops::Stops;

/// An event that stops a recording.
#[derive(Debug, Clone)]
pub struct StopEvent {
    /// The provider of the event.
    pub provider: String,
    /// The name of the event in the stream, or `Task/Opcode`. `None` for any event of the provider.
    pub name: Option<String>,
    /// The condition on the payload.
    pub payload: Option<Filter>,
}

/// An error in a condition on a payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// A part is not a pair of field and value.
    #[error("'{0}' is not of the form FIELD:VALUE")]
    NoPair(String),
    /// The condition is invalid.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// An error in the options for a stopping event.
#[derive(Debug, thiserror::Error)]
pub enum StopEventError {
    /// An option lacks another one that it requires.
    #[error("--stopping-event-{option} requires --stopping-event-{required}")]
    Incomplete {
        /// The option.
        option: &'static str,
        /// The missing option.
        required: &'static str,
    },
    /// The condition on the payload is invalid.
    #[error("--stopping-event-payload-filter: {0}")]
    Payload(#[from] PayloadError),
}

impl StopEvent {
    /// Creates the event from dotnet-trace's options: the provider, the name and the condition on the payload. Returns `None` if the
    /// options specify no event.
    ///
    /// # Errors
    /// Returns an error if an option lacks another one that it requires, or if the condition is invalid.
    pub fn from_options(
        provider: Option<&str>,
        name: Option<&str>,
        payload: Option<&str>,
    ) -> Result<Option<Self>, StopEventError> {
        let missing = |option, required| Err(StopEventError::Incomplete { option, required });
        if payload.is_some() && name.is_none() {
            return missing("payload-filter", "event-name");
        }
        let Some(provider) = provider else {
            return if name.is_some() { missing("event-name", "provider-name") } else { Ok(None) };
        };
        let payload = payload.map(Self::payload_filter).transpose()?;
        Ok(Some(Self { provider: provider.to_owned(), name: name.map(str::to_owned), payload }))
    }

    /// Parses `FIELD:VALUE,FIELD:VALUE`, as in dotnet-trace. All parts must match.
    ///
    /// # Errors
    /// Returns an error if a part is invalid.
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

/// Quotes a word of a filter. A backslash at the end is placed after the quote, which it would escape.
fn quoted(text: &str) -> String {
    let inner = text.trim_end_matches('\\');
    let end = text.strip_prefix(inner).unwrap_or_default();
    format!("\"{}\"{end}", inner.replace('"', "\\\""))
}

/// Checks the events of one stream.
#[derive(Debug)]
pub(crate) struct StopEventWatch {
    event: StopEvent,
    decoder: Decoder,
    header: Option<TraceHeader>,
    stops: Stops,
    seen: bool,
}

impl StopEventWatch {
    /// Creates a watch that calls `stops` when the event occurs.
    pub(crate) fn new(event: StopEvent, stops: Stops) -> Self {
        Self { event, decoder: Decoder::new(), header: None, stops, seen: false }
    }

    /// Processes the next item of the stream.
    pub(crate) fn item(&mut self, item: &StreamItem<'_>) {
        if self.seen {
            return;
        }
        match item {
            StreamItem::Event(event) if self.is_it(event) => {
                self.seen = true;
                self.stops.stop();
            }
            StreamItem::Event(_) => {}
            other => {
                if let StreamItem::Header(header) = other {
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
    fn options_require_their_predecessors() {
        let of = StopEvent::from_options;
        assert!(of(None, None, None).unwrap().is_none());
        assert!(of(Some("P"), None, None).unwrap().is_some());
        assert!(of(Some("P"), Some("E"), Some("a:b,c:d:e")).unwrap().is_some());
        for (provider, name, payload) in [
            (None, Some("E"), None),
            (Some("P"), None, Some("a:b")),
            (None, None, Some("a:b")),
            (Some("P"), Some("E"), Some("a")),
            (Some("P"), Some("E"), Some("a:b,:c")),
        ] {
            let error = of(provider, name, payload).unwrap_err().to_string();
            assert!(error.contains("--stopping-event-"), "{error}");
        }
    }

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
