//! Reports log messages from the event source of the logging library.
//!
//! A message may be reported in up to three forms; only the most readable recorded form counts.

use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector, small, text};
use super::{Collect, Observe, Report, StreamItem};
use crate::payload::{Payload, Value};

/// The log messages in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogsReport {
    /// The number of messages.
    pub messages_count: u64,
    /// The number of scopes begun. `None` if unknown.
    pub scopes_count: Option<u64>,
    /// The number of messages with an exception. `None` if only formatted texts were recorded.
    pub exceptions_count: Option<u64>,
    /// The number of messages by level and category.
    pub by_level: Vec<LogLevelCount>,
    /// The messages in order of time.
    pub messages: Vec<LogMessage>,
}

/// The messages of one level in one category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLevelCount {
    /// The level.
    pub level: &'static str,
    /// The category.
    pub category: String,
    /// The number of messages.
    pub messages_count: u64,
}

/// A log message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogMessage {
    /// The time in nanoseconds since the start of the session.
    pub ts_ns: i64,
    /// The thread.
    pub thread: u64,
    /// The level, from Trace to Critical.
    pub level: &'static str,
    /// The category, which is the name of the logger.
    pub category: String,
    /// The id of the message's event.
    pub event_id: i64,
    /// The name of the message's event.
    pub event_name: String,
    /// The text, or the template if the text was not recorded.
    pub message: String,
}

/// The provider.
const LOGGING: &str = "Microsoft-Extensions-Logging";

/// The form of a message, most readable last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Fields,
    Json,
    Text,
}

#[derive(Debug, Clone)]
enum EventData {
    Scope { json: bool },
    Message { way: Way, level: u32, has_exception: bool, message: LogMessage },
}

/// Collects a [`LogsReport`].
#[derive(Debug)]
pub struct Logs(Collector<EventData>);

impl Default for Logs {
    fn default() -> Self {
        Self(Collector::new(|metadata| metadata.provider == LOGGING))
    }
}

fn level_name(level: u32) -> &'static str {
    match level {
        0 => "Trace",
        1 => "Debug",
        2 => "Information",
        3 => "Warning",
        4 => "Error",
        5 => "Critical",
        _ => "None",
    }
}

impl Report for LogsReport {
    fn limit(&mut self, n: usize) {
        self.messages.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Collect for Logs {
    type Report = LogsReport;

    fn finish(self) -> LogsReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> LogsReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Collected<EventData>) -> LogsReport {
    let mut report = LogsReport::default();
    let way_of = |kept: &CollectedEvent<EventData>| match kept.what {
        EventData::Message { way, .. } => Some(way),
        EventData::Scope { .. } => None,
    };
    let best = kept.iter().filter_map(way_of).max();
    // Scopes are reported in every form, exceptions in all but formatted texts.
    let tells_scopes = !kept.is_empty();
    let tells_exceptions = kept.iter().filter_map(way_of).any(|way| way != Way::Text);
    let mut scopes = [0u64; 2];
    let (mut by_level, mut exceptions) = (std::collections::BTreeMap::<_, u64>::new(), [0u64; 3]);
    for CollectedEvent { timestamp, thread, what } in kept {
        match what {
            EventData::Scope { json } => scopes[usize::from(json)] += 1,
            EventData::Message { way, level, has_exception, message } => {
                // Formatted texts do not include exceptions.
                exceptions[way as usize] += u64::from(has_exception);
                if Some(way) == best {
                    *by_level.entry((level, message.category.clone())).or_default() += 1;
                    report.messages.push(LogMessage { ts_ns: clock.at(timestamp), thread, ..message });
                }
            }
        }
    }
    report.messages_count = u64::try_from(report.messages.len()).unwrap_or(u64::MAX);
    report.scopes_count = tells_scopes.then(|| scopes[0].max(scopes[1]));
    report.exceptions_count = exceptions.into_iter().max().filter(|_| tells_exceptions);
    report.by_level = by_level
        .into_iter()
        .map(|((level, category), messages_count)| LogLevelCount {
            level: level_name(level),
            category,
            messages_count,
        })
        .collect();
    report
}

impl Observe for Logs {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |_, _, payload| {
            // The ids differ between processes.
            let way = match payload.schema().name() {
                "FormattedMessage" => Way::Text,
                "MessageJson" => Way::Json,
                "Message" => Way::Fields,
                "ActivityJsonStart" => return Some(EventData::Scope { json: true }),
                "ActivityStart" => return Some(EventData::Scope { json: false }),
                _ => return None,
            };
            message(way, payload)
        });
    }
}

fn message(way: Way, payload: Payload<'_>) -> Option<EventData> {
    let level = small(payload, "Level")?;
    let formatted = payload.text("FormattedMessage");
    let exception = match way {
        Way::Text => false,
        Way::Json => payload.text("ExceptionJson").is_some_and(|json| json.len() > 2),
        Way::Fields => match payload.get("Exception") {
            Some(Value::Object(fields)) => {
                fields.get("TypeName").and_then(|name| name.as_text()).is_some_and(|name| !name.is_empty())
            }
            _ => false,
        },
    };
    Some(EventData::Message {
        way,
        level,
        has_exception: exception,
        message: LogMessage {
            ts_ns: 0,
            thread: 0,
            level: level_name(level),
            category: text(payload, "LoggerName"),
            event_id: payload.get("EventId").and_then(|id| id.as_i64()).unwrap_or(0),
            event_name: text(payload, "EventName"),
            message: formatted.or_else(|| template(payload)).unwrap_or_default(),
        },
    })
}

fn template(payload: Payload<'_>) -> Option<String> {
    let Value::Array(pairs) = payload.get("Arguments")? else { return None };
    pairs
        .objects()
        .find(|pair| pair.get("Key").and_then(|key| key.as_text()).as_deref() == Some("{OriginalFormat}"))?
        .get("Value")?
        .as_text()
}
