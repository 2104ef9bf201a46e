//! Which counters are requested: the syntax of dotnet-counters, and the providers of the session.
//!
//! ```text
//! list      := provider ("," provider)*
//! provider  := ["EventCounters\"] name ["[" counter ("," counter)* "]"]
//! ```
//!
//! A provider without the prefix is enabled as an event source and as a meter, because its name does not state which it is. Of a meter
//! with a list, only these instruments are requested, so that others do not use up the limit of series.

use std::time::Duration;

use runtap_clr::counters::{METRICS, MetricsSession};
use runtap_diag_proto::{Level, Provider};
use runtap_model::counters::Counter;
use thiserror::Error;

use super::jvm::GROUPS;
use crate::providers::quoted;

/// The prefix of event sources that are not requested as meters.
const EVENT_COUNTERS: &str = "EventCounters\\";
/// The provider that is requested by default.
const DEFAULT: &str = "System.Runtime";
/// The keyword of the values of meters.
const VALUES: u64 = 2;
/// The id of metrics sessions that several clients with equal settings share.
const SHARED: &str = "SHARED";

/// An error in a list of counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CounterRequestError {
    /// A provider name is empty.
    #[error("missing provider name in '{0}'; use for example System.Runtime[cpu-usage],My.Meter")]
    MissingName(String),
    /// A bracket is not closed.
    #[error("missing closing ']' in '{0}'")]
    Unclosed(String),
    /// A bracket has no opening one, or text follows it.
    #[error("unexpected text after ']' in '{0}': expected ',' and the next provider")]
    AfterBracket(String),
    /// A provider is requested with and without the prefix.
    #[error(
        "provider '{0}' is requested both with and without the prefix EventCounters\\; without it, both event counters and meters are requested"
    )]
    BothForms(String),
}

/// A requested provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSelection {
    /// The name of the meter or event source.
    pub provider: String,
    /// The names of its counters. Empty for all.
    pub counters: Vec<String>,
    /// Whether only event counters are requested.
    pub is_event_source: bool,
}

/// The requested counters and the settings of their session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRequest {
    /// The providers, each once.
    pub selections: Vec<CounterSelection>,
    /// Whether no provider was requested. Of Java programs, all counters are then read.
    pub is_default: bool,
    /// The time between two readings.
    pub interval: Duration,
    /// The maximum number of series of meters.
    pub max_series: u32,
    /// The maximum number of histograms.
    pub max_histograms: u32,
}

impl CounterRequest {
    /// Parses lists of counters. Without any, the counters of the runtime are requested.
    ///
    /// # Errors
    /// Returns an error if a list is invalid.
    pub fn parse(lists: &[String]) -> Result<Self, CounterRequestError> {
        let mut selections: Vec<CounterSelection> = Vec::new();
        let default = [DEFAULT.to_owned()];
        for list in if lists.is_empty() { &default } else { lists } {
            let mut rest = list.as_str();
            loop {
                let (selection, behind) = selection(list, rest)?;
                add(&mut selections, selection)?;
                let Some(behind) = behind else { break };
                rest = behind;
            }
        }
        let is_default = lists.is_empty();
        Ok(Self {
            selections,
            is_default,
            interval: Duration::from_secs(1),
            max_series: 1_000,
            max_histograms: 10,
        })
    }

    /// Returns new ids for a session: an id that tools with equal settings share, and an id of this client.
    pub fn session_ids(&self) -> MetricsSession {
        let [high, low] = [(); 2].map(|()| runtap_os::random_u64());
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let client = format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff);
        MetricsSession { id: SHARED.to_owned(), client }
    }

    /// Returns the providers of a session with these ids.
    pub fn providers(&self, ids: &MetricsSession) -> Vec<Provider> {
        let interval = self.interval.as_secs_f64();
        let of_source = |selection: &CounterSelection| {
            Provider::new(&selection.provider, 0, Level::Informational)
                .with_arguments(format!("EventCounterIntervalSec={interval}"))
        };
        let mut providers: Vec<Provider> = self.selections.iter().map(of_source).collect();
        let meters: Vec<String> = self.selections.iter().flat_map(metrics).collect();
        if !meters.is_empty() {
            let Self { max_series, max_histograms, .. } = self;
            let MetricsSession { id, client } = ids;
            let arguments = format!(
                "SessionId={id};Metrics={};RefreshInterval={interval};MaxTimeSeries={max_series};MaxHistograms={max_histograms};ClientId={client}",
                meters.join(",")
            );
            let arguments = quoted(&arguments).unwrap_or(arguments);
            providers.push(Provider::new(METRICS, VALUES, Level::Informational).with_arguments(arguments));
        }
        providers
    }

    /// Whether a counter was requested. The runtime may send more: those of another tool's session, and those of a provider of which
    /// only some were requested.
    pub fn wants(&self, counter: &Counter) -> bool {
        if self.is_default && GROUPS.contains(&&*counter.provider) {
            return true;
        }
        self.selections.iter().any(|selection| {
            selection.provider == counter.provider
                && (selection.counters.is_empty() || selection.counters.contains(&counter.name))
        })
    }
}

/// Returns the meters of a selection, as the runtime expects them.
fn metrics(selection: &CounterSelection) -> Vec<String> {
    let CounterSelection { provider, counters, is_event_source } = selection;
    if *is_event_source {
        return Vec::new();
    }
    // The runtime splits the name of an instrument at these characters.
    let is_plain = |name: &String| !name.contains([',', '\\', '"']);
    if counters.is_empty() || !counters.iter().all(is_plain) {
        return vec![provider.clone()];
    }
    counters.iter().map(|counter| format!("{provider}\\{counter}")).collect()
}

/// Parses the first provider of `text`, a part of `list`. Returns the text behind its comma, if there is one.
fn selection<'a>(
    list: &str,
    text: &'a str,
) -> Result<(CounterSelection, Option<&'a str>), CounterRequestError> {
    let end = text.find([',', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let (counters, rest) = match rest.strip_prefix('[') {
        None => (Vec::new(), rest),
        Some(inner) => {
            let (inner, rest) =
                inner.split_once(']').ok_or_else(|| CounterRequestError::Unclosed(list.to_owned()))?;
            let names = inner.split(',').map(str::trim).filter(|name| !name.is_empty());
            (names.map(str::to_owned).collect(), rest.trim_start())
        }
    };
    let behind = match rest.strip_prefix(',') {
        None if rest.is_empty() => None,
        None => return Err(CounterRequestError::AfterBracket(list.to_owned())),
        behind => behind,
    };
    let name = name.trim();
    let (name, is_event_source) = match name.strip_prefix(EVENT_COUNTERS) {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name.is_empty() {
        return Err(CounterRequestError::MissingName(list.to_owned()));
    }
    Ok((CounterSelection { provider: name.to_owned(), counters, is_event_source }, behind))
}

/// Adds a selection, or extends that of the same provider.
fn add(all: &mut Vec<CounterSelection>, new: CounterSelection) -> Result<(), CounterRequestError> {
    let Some(known) = all.iter_mut().find(|known| known.provider == new.provider) else {
        all.push(new);
        return Ok(());
    };
    if known.is_event_source != new.is_event_source {
        return Err(CounterRequestError::BothForms(new.provider));
    }
    if known.counters.is_empty() || new.counters.is_empty() {
        known.counters.clear();
    } else {
        for counter in new.counters {
            if !known.counters.contains(&counter) {
                known.counters.push(counter);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lists: &[&str]) -> Result<Vec<(String, Vec<String>, bool)>, CounterRequestError> {
        let lists: Vec<String> = lists.iter().map(|list| (*list).to_owned()).collect();
        let selections = CounterRequest::parse(&lists)?.selections.into_iter();
        Ok(selections.map(|it| (it.provider, it.counters, it.is_event_source)).collect())
    }

    fn one(provider: &str, counters: &[&str], is_event_source: bool) -> (String, Vec<String>, bool) {
        (provider.to_owned(), counters.iter().map(|name| (*name).to_owned()).collect(), is_event_source)
    }

    #[test]
    fn lists_are_parsed() {
        assert_eq!(parse(&[]).unwrap(), [one("System.Runtime", &[], false)]);
        assert_eq!(
            parse(&["A[x, y],B , EventCounters\\C[z]", "D[]"]).unwrap(),
            [
                one("A", &["x", "y"], false),
                one("B", &[], false),
                one("C", &["z"], true),
                one("D", &[], false)
            ]
        );
        assert_eq!(parse(&["A[x],A[y,x]"]).unwrap(), [one("A", &["x", "y"], false)]);
        assert_eq!(parse(&["A[x]", "A"]).unwrap(), [one("A", &[], false)]);
    }

    #[test]
    fn errors_name_the_list() {
        for (list, error) in [
            ("A,,B", CounterRequestError::MissingName("A,,B".to_owned())),
            ("", CounterRequestError::MissingName(String::new())),
            ("EventCounters\\", CounterRequestError::MissingName("EventCounters\\".to_owned())),
            ("A[x,B", CounterRequestError::Unclosed("A[x,B".to_owned())),
            ("A[x]B", CounterRequestError::AfterBracket("A[x]B".to_owned())),
            ("A,EventCounters\\A", CounterRequestError::BothForms("A".to_owned())),
        ] {
            assert_eq!(parse(&[list]), Err(error), "{list}");
        }
    }

    #[test]
    fn sessions_request_no_more_than_necessary() {
        let request = |list: &str| CounterRequest::parse(&[list.to_owned()]).unwrap();
        let ids = MetricsSession { id: "S".to_owned(), client: "c".to_owned() };
        let sent = |list: &str| -> Vec<String> {
            let providers = request(list).providers(&ids);
            providers
                .into_iter()
                .map(|it| {
                    format!(
                        "{}:{:x}:{} {}",
                        it.name,
                        it.keywords,
                        it.level.number(),
                        it.arguments.unwrap_or_default()
                    )
                })
                .collect()
        };
        let settings = "RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=10;ClientId=c";
        assert_eq!(
            sent("A[x,y],B"),
            [
                "A:0:4 EventCounterIntervalSec=1".to_owned(),
                "B:0:4 EventCounterIntervalSec=1".to_owned(),
                format!("{METRICS}:2:4 SessionId=S;Metrics=A\\x,A\\y,B;{settings}"),
            ]
        );
        assert_eq!(sent("EventCounters\\A"), ["A:0:4 EventCounterIntervalSec=1"]);
        // An instrument whose name can't be requested is selected from all.
        let odd = request("A[a\"b]");
        assert_eq!(metrics(&odd.selections[0]), ["A"]);
        let counter =
            |name: &str| Counter { provider: "A".to_owned(), name: name.to_owned(), ..Counter::default() };
        assert!(odd.wants(&counter("a\"b")) && !odd.wants(&counter("c")));
    }

    #[test]
    fn client_ids_are_guids() {
        let request = CounterRequest::parse(&[]).unwrap();
        let ids = request.session_ids();
        assert_eq!(ids.client.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_ne!(ids.client, request.session_ids().client);
    }
}
