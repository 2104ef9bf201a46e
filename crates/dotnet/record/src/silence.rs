//! Detects that an enabled provider sends no events, or stops sending them. Whether it should have sent events is unknown, so this
//! is a note and not an error.

use std::time::Duration;

use crate::providers::{EnabledBy, Requested};
use runtap_nettrace::{Event, StreamItem, TraceHeader};
use runtap_wire::Utf16;

/// The minimum duration of a silence.
const SHORT: Duration = Duration::from_millis(200);
/// The minimum ratio of a silence to the longest pause before it.
const UNUSUAL: u32 = 10;

/// The source that converts what a `DiagnosticListener` writes to events, according to its arguments.
const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The provider of method names at the end of a session.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Requested events that were not received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// No events of these providers.
    Never(Vec<String>),
    /// Another session of the process ended while this one started or ran, and no events of these providers were received, or none
    /// after the given time. The runtime may have disabled events for both sessions.
    Overtaken {
        /// The duration of the session.
        after: Duration,
        /// The providers, with the time of the last event if there was one.
        providers: Vec<(String, Option<Duration>)>,
    },
    /// There are samples, but no names for their methods.
    NoNames,
    /// An event source reported an error of its own, so its events are missing.
    Broken {
        /// The provider.
        provider: String,
        /// The truncated error message.
        message: String,
    },
}

/// The maximum number of errors of event sources, and the maximum number of characters of each.
const MAX_ERRORS: usize = 5;
const MAX_ERROR: usize = 500;

/// The maximum number of providers with statistics, and the maximum length of their names in bytes. A session may define any number
/// of providers, one after the other.
const MAX_PROVIDERS: usize = 1_000;
const MAX_NAME: usize = 4_096;

/// Statistics of received events by provider.
#[derive(Debug, Default)]
pub struct Received {
    header: Option<TraceHeader>,
    providers: Vec<ProviderPauses>,
    /// Whether providers were left out, so that a missing provider may have sent events.
    is_truncated: bool,
    /// The provider and definition of the last event, which often match the next event.
    last: usize,
    definition: Option<u32>,
    /// The maximum number of threads in a sequence point.
    threads: Option<usize>,
    /// The errors that event sources reported about themselves.
    errors: Vec<Silence>,
}

/// The times of events of a provider, in ticks of the target.
#[derive(Debug)]
struct ProviderPauses {
    name: String,
    last: u64,
    /// The longest time between two events.
    pause: u64,
}

impl Received {
    /// Processes the next item of the stream.
    pub fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Event(event) => self.event(event),
            // After any other item, ids may be reused.
            StreamItem::Header(header) => {
                self.header = Some((*header).clone());
                self.definition = None;
            }
            StreamItem::SequencePoint(point) => {
                self.threads = self.threads.max(Some(point.threads.len()));
                self.definition = None;
            }
            _ => self.definition = None,
        }
    }

    /// Whether a buffer of `buffer_mb` megabytes may have been full, if it contained all `events` and `bytes` at once. Each thread
    /// uses a block of its own, and each event includes its whole stack.
    pub(crate) fn may_have_filled(&self, buffer_mb: u32, events: u64, bytes: u64) -> bool {
        const MAX_BLOCK: u64 = 1 << 20;
        const MAX_HEAD: u64 = 1024;
        let Some(threads) = self.threads else { return true };
        let blocks = u64::try_from(threads).unwrap_or(u64::MAX).saturating_mul(MAX_BLOCK);
        let needed = bytes.saturating_add(events.saturating_mul(MAX_HEAD)).saturating_add(blocks);
        needed >= u64::from(buffer_mb) << 20
    }

    fn event(&mut self, event: &Event<'_>) {
        let Some(metadata) = event.metadata else { return };
        if metadata.event_id == 0 && metadata.name == "EventSourceMessage" {
            self.source_message(&metadata.provider, event.payload);
        }
        if metadata.name == "Message" && metadata.provider == DIAGNOSTIC_SOURCE {
            self.diagnostic_source_message(event.payload);
        }
        if self.definition != Some(event.metadata_id) {
            self.definition = Some(event.metadata_id);
            self.turn_to(&metadata.provider, event.timestamp);
        }
        let Some(provider) = self.providers.get_mut(self.last) else { return };
        // Events are in order only within a thread.
        if let Some(pause) = event.timestamp.checked_sub(provider.last) {
            provider.pause = provider.pause.max(pause);
            provider.last = event.timestamp;
        }
    }

    /// Keeps an error that an event source sends instead of its events. Other messages of sources are ignored.
    #[cold]
    fn source_message(&mut self, provider: &str, payload: &[u8]) {
        let message: String = Utf16::new(payload).until_nul().chars().take(MAX_ERROR).collect();
        if !message.starts_with("ERROR") {
            return;
        }
        self.keep_error(provider, message);
    }

    /// Keeps errors that this source reports about its arguments. It also reports progress, with the text of the arguments.
    #[cold]
    fn diagnostic_source_message(&mut self, payload: &[u8]) {
        let message: String = Utf16::new(payload).until_nul().chars().take(MAX_ERROR).collect();
        let text = message.to_ascii_lowercase();
        let is_progress =
            text.starts_with("diagnosticsource: enabling") || text.starts_with("diagnosticsource: parsing");
        let is_error = ["error", "warning", "not found", "exception"].iter().any(|word| text.contains(word));
        if is_error && !is_progress {
            self.keep_error(DIAGNOSTIC_SOURCE, message);
        }
    }

    fn keep_error(&mut self, provider: &str, message: String) {
        let error = Silence::Broken { provider: provider.to_owned(), message };
        if self.errors.len() < MAX_ERRORS && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Returns the first errors that event sources reported about themselves.
    pub fn errors(&self) -> &[Silence] {
        &self.errors
    }

    #[inline(never)]
    fn turn_to(&mut self, name: &str, timestamp: u64) {
        if self.providers.get(self.last).is_none_or(|provider| provider.name != name) {
            let known = self.providers.iter().position(|provider| provider.name == name);
            self.last = known.unwrap_or(self.providers.len());
            if known.is_none() && (self.providers.len() >= MAX_PROVIDERS || name.len() > MAX_NAME) {
                self.is_truncated = true;
            } else if known.is_none() {
                self.providers.push(ProviderPauses { name: name.to_owned(), last: timestamp, pause: 0 });
            }
        }
    }

    /// Whether there are samples, but no names for their methods.
    pub fn is_nameless(&self) -> bool {
        let received = |name: &str| self.providers.iter().any(|provider| provider.name == name);
        received(SAMPLER) && !received(RUNDOWN)
    }

    /// Returns what is notable after `end`, the time from the start of the session to its stop. `overtaken` states that another
    /// session ended meanwhile.
    pub fn silence(&self, asked: &[Requested], end: Duration, overtaken: bool) -> Option<Silence> {
        let header = self.header.as_ref()?;
        let ns =
            |ticks: i128| Duration::from_nanos(u64::try_from(header.ticks_to_ns(ticks)).unwrap_or_default());
        let since = |timestamp: u64| ns(i128::from(timestamp) - i128::from(header.sync_qpc));
        let (mut silent, mut stopped) = (Vec::new(), Vec::new());
        for Requested { provider, by } in asked {
            let name = provider.name.as_str();
            let provider = self.providers.iter().find(|provider| provider.name.eq_ignore_ascii_case(name));
            match provider {
                None if self.is_truncated => {}
                None => silent.push((name.to_owned(), *by)),
                Some(provider) => {
                    let silence = end.saturating_sub(since(provider.last));
                    if silence > SHORT.max(ns(i128::from(provider.pause)) * UNUSUAL) {
                        stopped.push((name.to_owned(), Some(since(provider.last))));
                    }
                }
            }
        }
        if overtaken {
            let never = silent.into_iter().map(|(name, _)| (name, None));
            let providers: Vec<_> = never.chain(stopped).collect();
            return (!providers.is_empty()).then_some(Silence::Overtaken { after: end, providers });
        }
        // The runtime's providers are silent if nothing happens; a name that was typed may be misspelled.
        let nothing = silent.len() == asked.len();
        silent.retain(|(_, by)| nothing || *by == EnabledBy::Providers);
        let names: Vec<String> = silent.into_iter().map(|(name, _)| name).collect();
        (!names.is_empty()).then_some(Silence::Never(names))
    }
}

#[cfg(test)]
mod tests {
    use runtap_diag::{Level, Provider};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn asked(providers: &[(&str, EnabledBy)]) -> Vec<Requested> {
        let one = |(name, by): &(&str, EnabledBy)| Requested {
            provider: Provider::new(*name, 1, Level::Verbose),
            by: *by,
        };
        providers.iter().map(one).collect()
    }

    fn received(providers: &[(&str, u64, u64)]) -> Received {
        let provider = |(name, last, pause): &(&str, u64, u64)| ProviderPauses {
            name: (*name).to_owned(),
            last: *last,
            pause: *pause,
        };
        let providers = providers.iter().map(provider).collect();
        Received { header: Some(TraceHeader::new(0, 0, 1_000_000_000)), providers, ..Received::default() }
    }

    const END: Duration = Duration::from_secs(10);
    use EnabledBy::{ClrEvents, Providers};

    #[test]
    fn a_provider_active_until_the_end_is_not_reported() {
        let asked = asked(&[("A", Providers), ("B", ClrEvents)]);
        let lively = received(&[("a", 10 * SECOND, 1), ("B", 9 * SECOND, SECOND / 5)]);
        assert_eq!(lively.silence(&asked, END, true), None);
        // A provider with rare events may have none to send.
        let seldom = received(&[("A", 5 * SECOND, SECOND), ("B", 9 * SECOND, SECOND / 5)]);
        assert_eq!(seldom.silence(&asked, END, true), None);
    }

    #[test]
    fn a_provider_silent_after_the_end_of_another_session_is_reported() {
        let asked = asked(&[("A", Providers), ("B", ClrEvents)]);
        let cut = received(&[("A", SECOND / 50, 1000), ("B", 10 * SECOND, SECOND)]);
        let overtaken = |providers: &[(&str, Option<Duration>)]| {
            let providers = providers.iter().map(|(name, after)| ((*name).to_owned(), *after)).collect();
            Some(Silence::Overtaken { after: END, providers })
        };
        let twentieth = Duration::from_millis(20);
        assert_eq!(cut.silence(&asked, END, true), overtaken(&[("A", Some(twentieth))]));
        // A single event has no typical interval, and neither has none.
        let one = received(&[("A", 1, 0)]).silence(&asked, END, true);
        assert_eq!(one, overtaken(&[("B", None), ("A", Some(Duration::from_nanos(1)))]));
        // Without such a session, the program may have finished its work.
        assert_eq!(cut.silence(&asked, END, false), None);
    }

    #[test]
    fn errors_of_diagnostic_source_are_kept() {
        let mut received = Received::default();
        for message in [
            "DiagnosticSource: Enabling 'Demo/Error'",
            "DiagnosticSource: Parsing Explicit Transform 'Exception'",
            "Property Current is static.",
            "Property Color not found on Demo.Order.",
            "Error: Invalid spec",
        ] {
            let utf16: Vec<u8> = message.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
            received.diagnostic_source_message(&utf16);
        }
        let kept: Vec<_> = received.errors().iter().map(|error| format!("{error:?}")).collect();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(kept[0].contains("Color not found") && kept[1].contains("Invalid spec"), "{kept:?}");
    }

    #[test]
    fn the_memory_for_providers_is_limited() {
        let mut many = received(&[]);
        for index in 0..2 * MAX_PROVIDERS {
            many.turn_to(&format!("P{index}"), 1);
        }
        many.turn_to(&"x".repeat(MAX_NAME + 1), 1);
        assert_eq!(many.providers.len(), MAX_PROVIDERS);
        // The late ones may have sent events.
        let asked = asked(&[("P0", Providers), ("P1999", Providers)]);
        assert_eq!(many.silence(&asked, END, false), None);
        assert_eq!(
            received(&[("P0", 1, 0)]).silence(&asked, END, false),
            Some(Silence::Never(vec!["P1999".to_owned()]))
        );
    }

    #[test]
    fn samples_need_names() {
        assert!(received(&[(SAMPLER, 1, 0), ("A", 1, 0)]).is_nameless());
        assert!(!received(&[(SAMPLER, 1, 0), (RUNDOWN, 1, 0)]).is_nameless());
        assert!(!received(&[("A", 1, 0)]).is_nameless());
    }

    #[test]
    fn providers_without_events_are_reported() {
        let both = asked(&[("A", Providers), ("B", ClrEvents)]);
        let never =
            |names: &[&str]| Some(Silence::Never(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(received(&[("B", 1, 0)]).silence(&both, END, false), never(&["A"]));
        assert_eq!(received(&[("A", 1, 0)]).silence(&both, END, false), None);
        assert_eq!(received(&[]).silence(&both, END, false), never(&["A", "B"]));
        assert_eq!(Received::default().silence(&both, END, false), None);
    }
}
