//! The event that ends a recording (`--stopping-event-…`), looked for while the stream is written away.

use runtap_ingest::payload::Decoder;
use runtap_ingest::{Filter, Record};
use runtap_nettrace::{Event, Item, Observe, TraceHeader};

use super::signals::Stops;
use crate::cli::StoppingEvent;
use crate::exit::usage;

/// Which event it is.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    provider: String,
    /// As the stream has it, or `Task/Opcode`.
    name: Option<String>,
    payload: Option<Filter>,
}

impl Condition {
    /// What the options say, if they say anything.
    ///
    /// # Errors
    /// An option without the one that it needs, or a filter that is none.
    pub(super) fn new(options: &StoppingEvent) -> anyhow::Result<Option<Self>> {
        let StoppingEvent { provider, name, payload } = options;
        let missing = |option: &str, needed: &str| {
            Err(usage(format!("--stopping-event-{option} needs --stopping-event-{needed} too")))
        };
        if payload.is_some() && name.is_none() {
            return missing("payload-filter", "event-name");
        }
        let Some(provider) = provider.clone() else {
            return if name.is_some() { missing("event-name", "provider-name") } else { Ok(None) };
        };
        let payload = payload.as_deref().map(filter).transpose()?;
        Ok(Some(Self { provider, name: name.clone(), payload }))
    }
}

impl Condition {
    /// Whose event it is.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }
}

/// `FIELD:VALUE,FIELD:VALUE`, as dotnet-trace has it: all must hold.
fn filter(text: &str) -> anyhow::Result<Filter> {
    let mut conditions = Vec::new();
    for pair in text.split(',') {
        let Some((field, value)) = pair.split_once(':').filter(|(field, _)| !field.trim().is_empty()) else {
            return Err(usage(format!("--stopping-event-payload-filter: '{pair}' is no FIELD:VALUE")));
        };
        conditions.push(format!("payload.{} = {}", quoted(field.trim()), quoted(value.trim())));
    }
    conditions
        .join(" and ")
        .parse()
        .map_err(|error| usage(format!("--stopping-event-payload-filter: {error}")))
}

/// As a word of a filter. A backslash at the end would take the quote for its own.
fn quoted(text: &str) -> String {
    let inner = text.trim_end_matches('\\');
    let end = text.strip_prefix(inner).unwrap_or_default();
    format!("\"{}\"{end}", inner.replace('"', "\\\""))
}

/// Looks at the events of one stream.
#[derive(Debug)]
pub(super) struct Lookout {
    condition: Condition,
    decoder: Decoder,
    header: Option<TraceHeader>,
    stops: Stops,
    seen: bool,
}

impl Lookout {
    /// Tells `stops` when the event has come.
    pub(super) fn new(condition: Condition, stops: Stops) -> Self {
        Self { condition, decoder: Decoder::new(), header: None, stops, seen: false }
    }

    /// Takes the next item of the stream.
    pub(super) fn item(&mut self, item: &Item<'_>) {
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
        let Condition { provider, name, payload } = &self.condition;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn options(provider: Option<&str>, name: Option<&str>, payload: Option<&str>) -> StoppingEvent {
        let own = |text: Option<&str>| text.map(str::to_owned);
        StoppingEvent { provider: own(provider), name: own(name), payload: own(payload) }
    }

    #[test]
    fn an_option_needs_those_before_it() {
        assert!(Condition::new(&options(None, None, None)).unwrap().is_none());
        assert!(Condition::new(&options(Some("P"), None, None)).unwrap().is_some());
        assert!(Condition::new(&options(Some("P"), Some("E"), Some("a:b,c:d:e"))).unwrap().is_some());
        for wrong in [
            options(None, Some("E"), None),
            options(Some("P"), None, Some("a:b")),
            options(None, None, Some("a:b")),
            options(Some("P"), Some("E"), Some("a")),
            options(Some("P"), Some("E"), Some("a:b,:c")),
        ] {
            let error = Condition::new(&wrong).unwrap_err().to_string();
            assert!(error.contains("--stopping-event-"), "{error}");
        }
    }

    #[test]
    fn any_text_can_be_quoted() {
        for text in ["", "a b", "a\"b", "a\\\"b", "a\\", "\\", "'", "null", "x and y"] {
            filter(&format!("f:{text}")).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
    }
}
