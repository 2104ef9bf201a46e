//! Messages about counters.

use runtap_clr::counters::{CounterNotice, MetricsSettings};
use runtap_convert::source::Partial;
use runtap_model::Message;

use super::{CounterMonitor, Unread};
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
    let unread = monitor.unread();
    let mut messages: Vec<Message> =
        unread.iter().map(|(request, exists)| silence(request, *exists)).collect();
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

/// Returns the note about a request without readings. `exists` is whether the program has such an instrument.
fn silence(request: &Unread, exists: bool) -> Message {
    let Unread { pid, provider, counter } = request;
    let (subject, kind) = match counter {
        Some(counter) => (format!("{provider}[{counter}]"), "counter"),
        None => (provider.clone(), "meter or event source"),
    };
    let why = if exists {
        "it has no values yet, or the session was shorter than the interval".to_owned()
    } else {
        format!(
            "the program has no such {kind}, the session was shorter than the interval, or the name is misspelled (names are case-sensitive)"
        )
    };
    Message::Note(format!("no values of {subject} were received (process {pid}): {why}"))
}
