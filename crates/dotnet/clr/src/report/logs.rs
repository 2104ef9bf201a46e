//! Log messages, as the logging library's event source tells them.
//!
//! It can tell a message in three ways at once: one of them counts, the most readable that was recorded.

use serde::Serialize;

use super::collector::{Collector, Found, Kept, small, text};
use super::{Collect, Item, Observe, Report};
use crate::payload::{Payload, Value};

/// What a recording says about the program's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogsReport {
    /// How many messages.
    pub messages_count: u64,
    /// How many scopes were begun. `None` where nothing was recorded that would tell.
    pub scopes_count: Option<u64>,
    /// How many messages came with an exception. `None` where only texts were asked for, which do not say it.
    pub exceptions_count: Option<u64>,
    /// By level and category.
    pub by_level: Vec<LogLevelCount>,
    /// All messages, in the order of time.
    pub messages: Vec<LogMessage>,
}

/// Messages of one level in one category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLevelCount {
    /// The level.
    pub level: &'static str,
    /// The category.
    pub category: String,
    /// How many.
    pub messages_count: u64,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogMessage {
    /// When.
    pub ts_ns: i64,
    /// The thread.
    pub thread: u64,
    /// Trace to Critical.
    pub level: &'static str,
    /// The logger.
    pub category: String,
    /// The number of the kind of message.
    pub event_id: i64,
    /// Its name.
    pub event_name: String,
    /// The text; its template, where the text itself was not recorded.
    pub message: String,
}

/// The provider.
const LOGGING: &str = "Microsoft-Extensions-Logging";

/// How a message is told: the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Fields,
    Json,
    Text,
}

#[derive(Debug, Clone)]
enum What {
    Scope { json: bool },
    Message { way: Way, level: u32, has_exception: bool, message: LogMessage },
}

/// Makes a [`LogsReport`].
#[derive(Debug)]
pub struct Logs(Collector<What>);

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

fn report((kept, clock): Found<What>) -> LogsReport {
    let mut report = LogsReport::default();
    let way_of = |kept: &Kept<What>| match kept.what {
        What::Message { way, .. } => Some(way),
        What::Scope { .. } => None,
    };
    let best = kept.iter().filter_map(way_of).max();
    // Scopes come with messages of every kind, exceptions with all but texts.
    let tells_scopes = !kept.is_empty();
    let tells_exceptions = kept.iter().filter_map(way_of).any(|way| way != Way::Text);
    let mut scopes = [0u64; 2];
    let (mut by_level, mut exceptions) = (std::collections::BTreeMap::<_, u64>::new(), [0u64; 3]);
    for Kept { timestamp, thread, what } in kept {
        match what {
            What::Scope { json } => scopes[usize::from(json)] += 1,
            What::Message { way, level, has_exception, message } => {
                // The text alone does not say.
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
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |_, _, payload| {
            // Their numbers differ from process to process.
            let way = match payload.schema().name() {
                "FormattedMessage" => Way::Text,
                "MessageJson" => Way::Json,
                "Message" => Way::Fields,
                "ActivityJsonStart" => return Some(What::Scope { json: true }),
                "ActivityStart" => return Some(What::Scope { json: false }),
                _ => return None,
            };
            message(way, payload)
        });
    }
}

fn message(way: Way, payload: Payload<'_>) -> Option<What> {
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
    Some(What::Message {
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
