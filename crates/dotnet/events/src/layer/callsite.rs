//! The state of a callsite of `tracing`: its names, whether a session records it, and the events that were defined for it.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use runtap_diag_server::{EventPipe, Field, Metadata as EventMetadata};
use tracing::{Level, Metadata};

use super::record::Recorded;
use super::{EventLayerBuilder, Naming};
use crate::activity::Activity;
use crate::logs::{Content, LogLevel, Logger, OpenScope};
use crate::provider::{Event, define, next_id};

/// The most combinations of fields and types of a callsite. Further ones are written without fields.
const MAX_SHAPES: usize = 32;

/// A callsite.
#[derive(Debug)]
pub(super) struct Callsite {
    pipe: EventPipe,
    /// The shared metadata of its events, without fields.
    common: EventMetadata,
    /// An event that is enabled when all events of the callsite are. Written only if there are too many combinations.
    gate: Option<Event>,
    pub(super) kind: CallsiteKind,
    pub(super) logger: Option<CallsiteLogger>,
}

#[derive(Debug)]
pub(super) enum CallsiteKind {
    Event(Shapes),
    Span { start: Shapes, stop: Shapes },
}

/// A logger for the messages of a callsite.
#[derive(Debug)]
pub(super) struct CallsiteLogger {
    logger: Logger,
    level: LogLevel,
    name: String,
    is_span: bool,
}

impl Callsite {
    pub(super) fn new(config: &EventLayerBuilder, metadata: &'static Metadata<'static>) -> Self {
        let target = metadata.target();
        let of_provider = match config.naming {
            Naming::Crate => target.split("::").next().unwrap_or(target),
            Naming::Target => target,
        };
        let provider = format!("{}{}", config.prefix, dotted(of_provider));
        let mut common = EventMetadata::new(provider, 0, event_name(metadata));
        common.level = match *metadata.level() {
            Level::ERROR => 2,
            Level::WARN => 3,
            Level::INFO => 4,
            _ => 5,
        };
        let mut gate = common.clone();
        gate.event_id = next_id();
        let kind = if metadata.is_span() {
            let shapes = |suffix, opcode| Shapes { suffix, opcode: Some(opcode), ..Shapes::default() };
            CallsiteKind::Span { start: shapes("Start", 1), stop: shapes("Stop", 2) }
        } else {
            CallsiteKind::Event(Shapes::default())
        };
        let logger = config.logs.as_ref().map(|logs| CallsiteLogger {
            logger: logs.logger(dotted(target)),
            level: log_level(*metadata.level()),
            name: if is_named(metadata) { metadata.name().to_owned() } else { String::new() },
            is_span: metadata.is_span(),
        });
        let gate = define(&config.pipe, gate).ok();
        Self { pipe: config.pipe.clone(), common, gate, kind, logger }
    }

    /// Returns whether a session records the callsite, as an event, a message or a scope.
    pub(super) fn is_enabled(&self) -> bool {
        self.gate_is_open() || self.logger.as_ref().is_some_and(CallsiteLogger::is_wanted)
    }

    /// Returns whether a session records its events.
    pub(super) fn gate_is_open(&self) -> bool {
        self.gate.as_ref().is_some_and(Event::is_enabled)
    }

    /// Defines the event for a combination of fields and types.
    pub(super) fn define(&self, shape: &Shape<'_>, metadata: &Metadata<'_>) -> Option<Event> {
        let mut event = self.common.clone();
        event.event_id = next_id();
        event.name.push_str(shape.shapes.suffix);
        event.opcode = shape.shapes.opcode;
        let names: Vec<_> = metadata.fields().iter().map(|field| field.name()).collect();
        let fields = shape.recorded.into_iter().flat_map(Recorded::fields);
        let named = fields.map(|(index, field_type)| {
            Field::new(without_nul(names.get(index).copied().unwrap_or_default()), field_type)
        });
        event.fields = named.collect();
        define(&self.pipe, event).ok()
    }
}

impl CallsiteLogger {
    fn is_wanted(&self) -> bool {
        if self.is_span { self.scopes() } else { self.is_enabled() }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.logger.is_enabled(self.level)
    }

    /// Returns whether scopes are recorded: wherever messages are, as in .NET; those of detailed spans only where messages of
    /// that level are, too.
    pub(super) fn scopes(&self) -> bool {
        let level = if self.level < LogLevel::Information { self.level } else { LogLevel::Critical };
        self.logger.is_enabled(level)
    }

    pub(super) fn write(&self, content: &dyn Content, activity: Option<uuid::Uuid>) {
        self.logger.write(self.level, (0, &self.name), content, None, activity);
    }

    pub(super) fn open(
        &self,
        activity: &Activity,
        related: Option<uuid::Uuid>,
        content: &dyn Content,
    ) -> OpenScope {
        self.logger.open(activity, related, content)
    }
}

/// The events that were defined for the combinations of fields and types.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    suffix: &'static str,
    opcode: Option<u8>,
    /// The first one; most callsites have no other.
    first: OnceLock<(Recorded, Option<Event>)>,
    others: Mutex<Vec<(Recorded, Event)>>,
    rest: OnceLock<Option<Event>>,
}

/// A combination for which to define an event.
pub(super) struct Shape<'a> {
    shapes: &'a Shapes,
    /// The fields. `None` for the event of all further combinations, without fields.
    recorded: Option<&'a Recorded>,
}

impl Shapes {
    /// Writes `payload` as the event for the recorded fields.
    pub(super) fn write(
        &self,
        recorded: &Recorded,
        payload: &[u8],
        define: impl Fn(&Shape<'_>) -> Option<Event>,
        write: impl Fn(&Event, &[u8]),
    ) {
        let shape = Shape { shapes: self, recorded: Some(recorded) };
        let (first, event) = self.first.get_or_init(|| (recorded.clone(), define(&shape)));
        if first == recorded {
            if let Some(event) = event {
                write(event, payload);
            }
        } else if let Some(event) = self.other(recorded, || define(&shape)) {
            write(&event, payload);
        } else if let Some(event) = self.rest.get_or_init(|| define(&Shape { shapes: self, recorded: None }))
        {
            write(event, &[]);
        }
    }

    /// Returns the event for another combination. `None` if there are too many.
    fn other(&self, recorded: &Recorded, define: impl FnOnce() -> Option<Event>) -> Option<Event> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, event)) = others.iter().find(|(other, _)| other == recorded) {
            return Some(event.clone());
        }
        if others.len() == MAX_SHAPES {
            return None;
        }
        let event = define()?;
        others.push((recorded.clone(), event.clone()));
        Some(event)
    }
}

/// Converts a target to a name that tools can request: no colon, which separates keywords, and no comma, which separates
/// providers.
fn dotted(target: &str) -> String {
    without_nul(target).replace("::", ".").replace([':', ',', ';'], "_")
}

fn without_nul(name: &str) -> String {
    name.replace('\0', "_")
}

/// Returns whether the program has named an event. Otherwise `tracing` generates a name from file and line.
fn is_named(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() || !metadata.name().starts_with("event ")
}

fn event_name(metadata: &Metadata<'_>) -> String {
    if is_named(metadata) {
        return without_nul(metadata.name());
    }
    let file = metadata.file().and_then(|file| Path::new(file).file_name());
    match (file, metadata.line()) {
        (Some(file), Some(line)) => format!("{}:{line}", without_nul(&file.to_string_lossy())),
        _ => without_nul(metadata.name()),
    }
}

fn log_level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Information,
        Level::DEBUG => LogLevel::Debug,
        _ => LogLevel::Trace,
    }
}
