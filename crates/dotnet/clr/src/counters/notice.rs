//! Problems of metrics sessions, as the runtime reports them.

use super::text;
use crate::payload::Payload;

/// The maximum number of characters of an error text.
const MAX_ERROR: usize = 500;

/// Plausible intervals in seconds.
const MIN_INTERVAL_S: f64 = 0.001;
const MAX_INTERVAL_S: f64 = 31_536_000.0;

/// A problem of a metrics session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CounterNotice {
    /// The limit of time series is reached: further series are missing.
    SeriesLimit,
    /// The limit of histograms is reached: further histograms are missing.
    HistogramLimit,
    /// The program's code of an observable instrument failed with this error.
    CallbackError(String),
    /// The runtime failed with this error.
    Error(String),
    /// Several instruments of this name and with equal tags report to one series, and the runtime does not distinguish them.
    SharedSeries {
        /// The meter.
        provider: String,
        /// The instruments.
        name: String,
    },
    /// Another tool's session runs, and the runtime supports one only.
    OtherSession,
    /// The shared session runs with other settings.
    OtherSettings {
        /// The id of the client whose session was rejected.
        client: String,
        /// The settings of the running session. `None` if the runtime reported invalid numbers.
        running: Option<MetricsSettings>,
    },
}

/// The settings of a metrics session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricsSettings {
    /// The interval in seconds.
    pub interval_s: f64,
    /// The maximum number of time series.
    pub max_series: u32,
    /// The maximum number of histograms.
    pub max_histograms: u32,
}

/// Decodes the settings of the running session. Their texts come from the runtime, and must not reach a command unparsed.
fn settings(payload: Payload<'_>) -> Option<MetricsSettings> {
    let number = |name| text(payload, name).parse().ok();
    let interval = text(payload, "expectedRefreshInterval").parse().ok();
    Some(MetricsSettings {
        interval_s: interval.filter(|seconds| (MIN_INTERVAL_S..=MAX_INTERVAL_S).contains(seconds))?,
        max_series: number("expectedMaxTimeSeries")?,
        max_histograms: number("expectedMaxHistograms")?,
    })
}

/// Decodes an event with this id. Returns the problem and the id of the running session, if it is stated.
pub(super) fn decode(id: u32, payload: Payload<'_>) -> Option<(CounterNotice, String)> {
    let error = || text(payload, "errorMessage").chars().take(MAX_ERROR).collect();
    let notice = match id {
        9 => CounterNotice::Error(error()),
        12 => CounterNotice::SeriesLimit,
        13 => CounterNotice::HistogramLimit,
        14 => CounterNotice::CallbackError(error()),
        15 => return Some((CounterNotice::OtherSession, text(payload, "runningSessionId"))),
        17 => {
            let running = settings(payload);
            CounterNotice::OtherSettings { client: text(payload, "clientId"), running }
        }
        _ => return None,
    };
    Some((notice, text(payload, "sessionId")))
}
