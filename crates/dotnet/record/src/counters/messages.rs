//! Messages about counters.

use runtap_clr::counters::{CounterNotice, MetricsSettings};
use runtap_convert::source::Partial;
use runtap_model::Message;

use super::{CounterMonitor, SilentProvider};
use crate::RecordingOutcome;
use crate::messages::{missing, silence as broken};

/// Returns the message about a problem of a process.
pub fn notice(pid: u32, notice: &CounterNotice) -> Message {
    match notice {
        CounterNotice::SeriesLimit => Message::Warning(format!(
            "process {pid} has reached the limit of time series, so further series are missing; --maxTimeSeries raises the limit, which needs more memory in the process"
        )),
        CounterNotice::HistogramLimit => Message::Warning(format!(
            "process {pid} has reached the limit of histograms, so further histograms are missing; --maxHistograms raises the limit, which needs more memory in the process"
        )),
        CounterNotice::CallbackError(error) => {
            // The stack follows.
            let error = error.lines().next().unwrap_or_default();
            Message::Warning(format!("an observable instrument of process {pid} failed: {error}"))
        }
        CounterNotice::OtherSession => Message::Warning(format!(
            "another tool collects the meters of process {pid}, and its runtime supports one such session; stop the other tool to see meters. Event counters are not affected"
        )),
        CounterNotice::OtherSettings {
            running: MetricsSettings { interval, max_series, max_histograms },
            ..
        } => Message::Warning(format!(
            "another tool collects the meters of process {pid} with other settings; to share its session, use --refresh-interval {interval} --maxTimeSeries {max_series} --maxHistograms {max_histograms}. Event counters are not affected"
        )),
        CounterNotice::Error(error) => {
            Message::Warning(format!("the runtime of process {pid} failed to collect meters: {error}"))
        }
        other => Message::Warning(format!("process {pid}: {other:?}")),
    }
}

/// Returns the messages at the end, and whether a part of the readings is missing.
pub fn outcome(outcome: &RecordingOutcome, monitor: &CounterMonitor) -> (Vec<Message>, bool) {
    let mut messages: Vec<Message> = monitor.silent().iter().map(silence).collect();
    let mut is_partial = false;
    for part in outcome.made.iter().flat_map(|files| &files.parts) {
        let pid = part.pid;
        if part.lost > 0 {
            messages.push(Message::Warning(format!(
                "process {pid} dropped at least {} events, so some readings are missing",
                part.lost
            )));
        }
        let notes = part.silence.iter().map(|it| Message::Note(format!("process {pid}: {}", broken(it, ""))));
        messages.extend(notes);
        if let Some(why) = &part.missing {
            is_partial = true;
            let why = missing(why, |partial| Partial::from(partial.clone()).reason.to_string());
            messages.push(Message::Warning(format!("process {pid}: {why}")));
        }
    }
    if monitor.omitted() > 0 {
        messages.push(Message::Warning(format!(
            "{} readings of further series were omitted, because runtap keeps a limited number of series; select fewer with --counters",
            monitor.omitted()
        )));
    }
    (messages, is_partial)
}

/// Returns the note about a provider without readings.
fn silence(silent: &SilentProvider) -> Message {
    let SilentProvider { pid, provider } = silent;
    Message::Note(format!(
        "no counters were received from {provider} (process {pid}): the program has no such meter or event source, the recording was shorter than the interval, or the name is misspelled (names are case-sensitive)"
    ))
}
