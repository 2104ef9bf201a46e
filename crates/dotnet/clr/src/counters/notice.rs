//! Problems of metrics sessions, as the runtime reports them.

use super::text;
use crate::payload::Payload;

/// The maximum number of characters of an error text.
const MAX_ERROR: usize = 500;

/// A problem of a metrics session.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Another tool's session runs, and the runtime supports one only.
    OtherSession,
    /// The shared session runs with other settings.
    OtherSettings {
        /// The id of the client whose session was rejected.
        client: String,
        /// The settings of the running session.
        running: MetricsSettings,
    },
}

/// The settings of a metrics session, as texts of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The interval in seconds.
    pub interval: String,
    /// The maximum number of time series.
    pub max_series: String,
    /// The maximum number of histograms.
    pub max_histograms: String,
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
            let running = MetricsSettings {
                interval: text(payload, "expectedRefreshInterval"),
                max_series: text(payload, "expectedMaxTimeSeries"),
                max_histograms: text(payload, "expectedMaxHistograms"),
            };
            CounterNotice::OtherSettings { client: text(payload, "clientId"), running }
        }
        _ => return None,
    };
    Some((notice, text(payload, "sessionId")))
}
