//! Messages about counters.

use runtap_clr::counters::{CounterNotice, MetricsSettings};
use runtap_convert::source::Partial;
use runtap_model::Message;

use super::jvm::GROUPS;
use super::monitor::MAX_ERRORS;
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
            let error = error.lines().map(str::trim).find(|line| !line.is_empty());
            let error = error.unwrap_or("the error has no text");
            Message::Warning(format!("an observable instrument of process {pid} failed: {error}"))
        }
        CounterNotice::OtherSession => Message::Warning(format!(
            "another tool collects the meters of process {pid}, and its runtime supports one such session; stop the other tool to see meters. Event counters are not affected"
        )),
        CounterNotice::OtherSettings { running: Some(running), .. } => {
            let MetricsSettings { interval_s, max_series, max_histograms } = running;
            Message::Warning(format!(
                "another tool collects the meters of process {pid} with other settings; to share its session, use --refresh-interval {interval_s} --maxTimeSeries {max_series} --maxHistograms {max_histograms}. Event counters are not affected"
            ))
        }
        CounterNotice::OtherSettings { running: None, .. } => Message::Warning(format!(
            "another tool collects the meters of process {pid} with other settings; stop the other tool to see meters. Event counters are not affected"
        )),
        CounterNotice::SharedSeries { provider, name } => Message::Warning(format!(
            "process {pid} has several instruments named {provider}/{name} with equal tags, and its runtime does not distinguish them: such series have only the sums of all instruments (.NET 9 and later report each)"
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
    messages.extend(monitor.truncated_errors().into_iter().map(|pid| {
        Message::Warning(format!(
            "further errors of process {pid} were omitted, because runtap shows at most {MAX_ERRORS} different errors of a process"
        ))
    }));
    if monitor.omitted() > 0 {
        messages.push(Message::Warning(format!(
            "{} readings were omitted, because the memory for series is limited; select fewer counters with --counters",
            monitor.omitted()
        )));
    }
    (messages, is_partial)
}

/// Returns the note about a request without readings. `exists` is whether the program has such an instrument.
fn silence(request: &Unread, exists: bool) -> Message {
    let Unread { pid, provider, counter, is_jvm } = request;
    if *is_jvm {
        let counter = counter.as_ref().map_or_else(String::new, |counter| format!("[{counter}]"));
        return Message::Note(format!(
            "no values of {provider}{counter} were received: process {pid} is a Java program, which has the groups {}; not every virtual machine has all counters",
            GROUPS.join(", ")
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_their_first_line_with_text() {
        let error = CounterNotice::CallbackError("\r\n  \nSystem.Exception: broken\n   at A.B()".to_owned());
        let Message::Warning(text) = notice(7, &error) else { panic!("not a warning") };
        assert_eq!(text, "an observable instrument of process 7 failed: System.Exception: broken");
    }

    #[test]
    fn unknown_settings_are_not_suggested() {
        let rejected = CounterNotice::OtherSettings { client: "me".to_owned(), running: None };
        let Message::Warning(text) = notice(7, &rejected) else { panic!("not a warning") };
        assert!(text.contains("other settings") && !text.contains("--refresh-interval"), "{text}");
    }
}
