//! The requests of sessions to the metrics, and the running collection: its settings, its owner and its limit on series.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use runtap_diag_server::{ProviderRequest, SessionId};

use super::instrument::{Instrument, InstrumentKind, Series};
use super::layout::{Events, PUBLISHING, VALUES};
use crate::arguments::argument;

/// The id of collections that sessions with equal settings share.
const SHARED: &str = "SHARED";

/// The shortest and the longest supported interval.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_hours(24)];

/// The most series of a session, whatever it requests: about 50 MB at most.
const MAX_SERIES: usize = 100_000;

/// The most histograms among them. Each one needs 4 KiB for each power of two that its values span.
const MAX_HISTOGRAMS: usize = 1_000;

/// The settings of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) interval: Duration,
    pub(super) max_series: usize,
    pub(super) max_histograms: usize,
}

/// The request of one session.
#[derive(Debug, Clone)]
pub(super) struct SessionRequest {
    pub(super) session: SessionId,
    /// The requested id. `None` gets a unique id.
    pub(super) id: Option<String>,
    pub(super) client: String,
    pub(super) settings: Settings,
    pub(super) metrics: Vec<Metric>,
}

/// A meter, or one of its instruments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metric {
    meter: String,
    instrument: Option<String>,
}

impl SessionRequest {
    /// Parses a request. `None` if it does not concern metrics.
    pub(super) fn of(request: &ProviderRequest) -> Option<Self> {
        let value = |key| argument(&request.arguments, key);
        let metrics = value("Metrics").unwrap_or_default();
        if request.keywords & (VALUES | PUBLISHING) == 0
            || metrics.is_empty() && request.keywords & PUBLISHING == 0
        {
            return None;
        }
        let number = |key| value(key).and_then(|value| value.trim().parse::<usize>().ok());
        let interval = value("RefreshInterval").and_then(|value| value.trim().parse::<f64>().ok());
        let interval = interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let [shortest, longest] = INTERVALS;
        let id = value("SessionId").filter(|id| !id.is_empty()).map(str::to_owned);
        Some(Self {
            session: request.session,
            id,
            client: value("ClientId").unwrap_or_default().to_owned(),
            settings: Settings {
                interval: interval.unwrap_or(Duration::from_secs(1)).clamp(shortest, longest),
                max_series: number("MaxTimeSeries").unwrap_or(1000).min(MAX_SERIES),
                max_histograms: number("MaxHistograms").unwrap_or(20).min(MAX_HISTOGRAMS),
            },
            metrics: metrics.split(',').filter(|text| !text.is_empty()).map(Metric::parse).collect(),
        })
    }
}

impl Metric {
    fn parse(text: &str) -> Self {
        match text.split_once('\\') {
            None => Self { meter: text.to_owned(), instrument: None },
            Some((meter, instrument)) => {
                Self { meter: meter.to_owned(), instrument: Some(instrument.to_owned()) }
            }
        }
    }

    fn is(&self, instrument: &Instrument) -> bool {
        self.meter == instrument.meter.name
            && self.instrument.as_ref().is_none_or(|name| *name == instrument.name)
    }
}

/// The running collection.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) id: String,
    pub(super) settings: Settings,
    pub(super) members: Vec<SessionRequest>,
    /// The start of the next interval to report.
    pub(super) from: SystemTime,
    pub(super) due: Instant,
}

/// The outcome of a request while a collection runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Joins,
    /// The request has the collection's id, but other settings.
    OtherSettings,
    Refused,
}

impl Collection {
    pub(super) fn new(request: SessionRequest, now: Instant) -> Self {
        let id = request.id.clone().unwrap_or_else(|| format!("session-{}", request.session.0));
        let settings = request.settings;
        Self { id, settings, members: vec![request], from: SystemTime::now(), due: now + settings.interval }
    }

    pub(super) fn judge(&self, request: &SessionRequest) -> Verdict {
        match &request.id {
            Some(id) if *id == self.id && id == SHARED && request.settings == self.settings => Verdict::Joins,
            Some(id) if *id == self.id && id == SHARED => Verdict::OtherSettings,
            _ => Verdict::Refused,
        }
    }

    pub(super) fn wants(&self, instrument: &Instrument) -> bool {
        self.members.iter().flat_map(|member| &member.metrics).any(|metric| metric.is(instrument))
    }
}

/// The limit on the series of a collection.
#[derive(Debug, Default)]
pub(super) struct Budget {
    left: Mutex<RemainingBudget>,
    series_full: AtomicBool,
    histograms_full: AtomicBool,
}

#[derive(Debug, Default)]
struct RemainingBudget {
    session: String,
    series: usize,
    histograms: usize,
}

impl Budget {
    fn left(&self) -> MutexGuard<'_, RemainingBudget> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, session: &str, settings: &Settings) {
        let (series, histograms) = (settings.max_series, settings.max_histograms);
        *self.left() = RemainingBudget { session: session.to_owned(), series, histograms };
        self.series_full.store(false, Ordering::Relaxed);
        self.histograms_full.store(false, Ordering::Relaxed);
    }

    /// Returns whether further series may be within the limit.
    pub(super) fn has_room(&self, kind: InstrumentKind) -> bool {
        let no_histogram = kind == InstrumentKind::Histogram && self.histograms_full.load(Ordering::Relaxed);
        !self.series_full.load(Ordering::Relaxed) && !no_histogram
    }

    /// Returns whether a series is within the limit, at its first measurement. The session is notified of the first rejection.
    pub(super) fn admit(&self, series: &Series, kind: InstrumentKind, events: &Events) -> bool {
        let mut left = self.left();
        let after = left.series.checked_sub(1);
        let histograms = left.histograms.checked_sub(usize::from(kind == InstrumentKind::Histogram));
        if let (Some(after), Some(histograms)) = (after, histograms) {
            // Another thread may have decided before.
            if series.enter() {
                (left.series, left.histograms) = (after, histograms);
            }
            return true;
        }
        let full = if after.is_none() { &self.series_full } else { &self.histograms_full };
        let untold = (!full.swap(true, Ordering::Relaxed)).then(|| left.session.clone());
        drop(left);
        // Without the lock: this thread may have to wait for space in the session.
        if let Some(session) = untold {
            if after.is_none() {
                events.series_limit(&session);
            } else {
                events.histogram_limit(&session);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(keywords: u64, arguments: &str) -> Option<SessionRequest> {
        SessionRequest::of(&ProviderRequest::new(SessionId(7), keywords, 4, arguments))
    }

    #[test]
    fn what_dotnet_counters_sends_is_understood() {
        let text = "SessionId=SHARED;Metrics=Demo.Shop,Demo.Odd\\many;RefreshInterval=0.5;MaxTimeSeries=9;\
                    MaxHistograms=2;ClientId=c1";
        let request = request(2, text).unwrap();
        assert_eq!(request.id.as_deref(), Some("SHARED"));
        assert_eq!(request.client, "c1");
        let interval = Duration::from_millis(500);
        assert_eq!(request.settings, Settings { interval, max_series: 9, max_histograms: 2 });
        assert_eq!(request.metrics, [Metric::parse("Demo.Shop"), Metric::parse("Demo.Odd\\many")]);
    }

    #[test]
    fn nonsense_has_defaults_and_bounds() {
        let defaults = Settings { interval: Duration::from_secs(1), max_series: 1000, max_histograms: 20 };
        assert_eq!(request(2, "Metrics=A;RefreshInterval=x;MaxTimeSeries=-1").unwrap().settings, defaults);
        assert_eq!(request(2, "Metrics=A;RefreshInterval=0").unwrap().settings.interval, INTERVALS[0]);
        assert_eq!(request(2, "Metrics=A;RefreshInterval=1e300").unwrap().settings, defaults);
        let most = format!("Metrics=A;MaxTimeSeries={};MaxHistograms={}", usize::MAX, MAX_HISTOGRAMS + 1);
        let settings = request(2, &most).unwrap().settings;
        assert_eq!((settings.max_series, settings.max_histograms), (MAX_SERIES, MAX_HISTOGRAMS));
        assert!(
            request(2, "Metrics=").is_none() && request(1, "Metrics=A").is_none() && request(4, "").is_some()
        );
    }

    #[test]
    fn only_equal_shared_sessions_join() {
        let new = |text: &str| request(2, &format!("Metrics=A;{text}")).unwrap();
        let running = Collection::new(new("SessionId=SHARED"), Instant::now());
        assert_eq!(running.judge(&new("SessionId=SHARED")), Verdict::Joins);
        assert_eq!(running.judge(&new("SessionId=SHARED;MaxHistograms=1")), Verdict::OtherSettings);
        assert_eq!(running.judge(&new("SessionId=other")), Verdict::Refused);
        let own = Collection::new(new("SessionId=x"), Instant::now());
        assert_eq!(own.judge(&new("SessionId=x")), Verdict::Refused);
    }
}
