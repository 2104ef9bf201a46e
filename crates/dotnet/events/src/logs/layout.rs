//! The events of `Microsoft-Extensions-Logging` in version 9 of that library. The provider is self-describing: its
//! events are identified by name. Their level is 0, because the levels of `FilterSpecs` select what is logged.
//!
//! | event | keywords | fields |
//! |---|---|---|
//! | `FormattedMessage` | 4 | Level, FactoryID, LoggerName, EventId, EventName, FormattedMessage, ids |
//! | `Message` | 2 | Level, FactoryID, LoggerName, EventId, EventName, Exception {}, Arguments [], ids |
//! | `MessageJson` | 8 | Level, FactoryID, LoggerName, EventId, EventName, ExceptionJson, ArgumentsJson, FormattedMessage, ids |
//! | `ActivityStart`, `ActivityStop` | 6 | ID, FactoryID, LoggerName; the start event also Arguments [] |
//! | `ActivityJsonStart`, `ActivityJsonStop` | 12 | ID, FactoryID, LoggerName; the start event also ArgumentsJson |
//!
//! The ids are ActivityTraceId, ActivitySpanId and ActivityTraceFlags, which are empty here. A scope has one of the two
//! pairs: JSON if a session requests it.

use std::error::Error;
use std::fmt::{self, Display, Write};

use runtap_diag_server::{DefineError, EventPipe, Field, FieldType, Metadata};
use uuid::Uuid;

use super::json::Members;
use super::{Keywords, LogLevel, OpenScope};
use crate::payload::{self, Payload};
use crate::provider::{Event, SESSION_KEYWORDS, define, next_id};

pub(super) const PROVIDER: &str = "Microsoft-Extensions-Logging";

/// The id of the only factory of loggers.
const FACTORY: i32 = 1;

/// The name of the argument that contains the template.
const TEMPLATE: &str = "{OriginalFormat}";

/// The content of a message or a scope.
pub(crate) trait Content {
    /// Calls `each` with the name and value of each argument.
    fn arguments(&self, each: &mut dyn FnMut(&str, &dyn Display));
    /// Writes the text with placeholders for arguments.
    fn template(&self, text: &mut dyn Write) -> fmt::Result;
    /// Writes the text with the arguments.
    fn message(&self, text: &mut dyn Write) -> fmt::Result;
}

/// The error of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    pub(crate) type_name: &'a str,
    pub(crate) error: &'a (dyn Error + 'static),
}

impl Failure<'_> {
    /// Writes the error with all its sources.
    fn chain(&self) -> impl Display {
        fmt::from_fn(|f| {
            write!(f, "{}: {}", self.type_name, self.error)?;
            let mut source = self.error.source();
            while let Some(error) = source {
                write!(f, "\n ---> {error}")?;
                source = error.source();
            }
            Ok(())
        })
    }
}

/// The first fields of all messages.
pub(super) struct Head<'a> {
    pub(super) level: LogLevel,
    pub(super) category: &'a str,
    pub(super) event: (i32, &'a str),
}

#[derive(Debug)]
pub(super) struct Events {
    formatted: Event,
    message: Event,
    json: Event,
    start: Event,
    stop: Event,
    json_start: Event,
    json_stop: Event,
}

impl Events {
    pub(super) fn new(pipe: &EventPipe) -> Result<Self, DefineError> {
        use FieldType::{I32, String};
        let event = |name: &str, keywords: u64, opcode: Option<u8>, fields: Vec<Field>| {
            let mut metadata = Metadata::new(PROVIDER, next_id(), name);
            (metadata.level, metadata.keywords) = (0, keywords | SESSION_KEYWORDS);
            (metadata.opcode, metadata.fields) = (opcode, fields);
            define(pipe, metadata)
        };
        let strings = |names: &[&str]| names.iter().map(|name| Field::new(*name, String)).collect::<Vec<_>>();
        let pair = FieldType::Object(strings(&["Key", "Value"]));
        let arguments = || Field::new("Arguments", FieldType::Array(Box::new(pair.clone())));
        let message = |own: Vec<Field>| {
            let mut fields = vec![Field::new("Level", I32), Field::new("FactoryID", I32)];
            fields.extend([Field::new("LoggerName", String), Field::new("EventId", I32)]);
            fields.push(Field::new("EventName", String));
            fields.extend(own);
            fields.extend(strings(&["ActivityTraceId", "ActivitySpanId", "ActivityTraceFlags"]));
            fields
        };
        let scope = |own: Vec<Field>| {
            let mut fields = vec![Field::new("ID", I32), Field::new("FactoryID", I32)];
            fields.push(Field::new("LoggerName", String));
            fields.extend(own);
            fields
        };
        let mut exception = strings(&["TypeName", "Message"]);
        exception.extend([Field::new("HResult", I32), Field::new("VerboseMessage", String)]);
        let exception = Field::new("Exception", FieldType::Object(exception));
        let of_json = strings(&["ExceptionJson", "ArgumentsJson", "FormattedMessage"]);
        let (plain, json) = (Keywords::MESSAGE | Keywords::FORMATTED, Keywords::JSON | Keywords::FORMATTED);
        Ok(Self {
            formatted: event(
                "FormattedMessage",
                Keywords::FORMATTED,
                None,
                message(strings(&["FormattedMessage"])),
            )?,
            message: event("Message", Keywords::MESSAGE, None, message(vec![exception, arguments()]))?,
            json: event("MessageJson", Keywords::JSON, None, message(of_json))?,
            start: event("ActivityStart", plain, Some(1), scope(vec![arguments()]))?,
            stop: event("ActivityStop", plain, Some(2), scope(vec![]))?,
            json_start: event("ActivityJsonStart", json, Some(1), scope(strings(&["ArgumentsJson"])))?,
            json_stop: event("ActivityJsonStop", json, Some(2), scope(vec![]))?,
        })
    }

    pub(super) fn wants_json(&self) -> bool {
        self.json.is_enabled()
    }

    /// Writes a message in all forms that sessions request.
    pub(super) fn message(
        &self,
        head: &Head<'_>,
        content: &dyn Content,
        failure: Option<Failure<'_>>,
        activity: Option<Uuid>,
    ) {
        payload::with(|payload| {
            let mut write = |event: &Event, fill: &dyn Fn(&mut Payload)| {
                if event.is_enabled() {
                    payload.clear();
                    payload.push(&i32::from(head.level as u8)).push(&FACTORY).push(head.category);
                    payload.push(&head.event.0).push(head.event.1);
                    fill(payload);
                    payload.push("").push("").push("");
                    event.write_ids(activity, None, payload.as_bytes());
                }
            };
            write(&self.formatted, &|payload| formatted(payload, content));
            write(&self.message, &|payload| {
                exception(payload, failure);
                arguments(payload, content);
            });
            write(&self.json, &|payload| {
                exception_json(payload, failure);
                arguments_json(payload, content);
                formatted(payload, content);
            });
        });
    }

    pub(super) fn start(&self, scope: &OpenScope, related: Option<Uuid>, content: &dyn Content) {
        let event = if scope.json { &self.json_start } else { &self.start };
        payload::with(|payload| {
            scope_head(payload, scope);
            if scope.json {
                arguments_json(payload, content);
            } else {
                arguments(payload, content);
            }
            event.write_ids(Some(scope.activity), related, payload.as_bytes());
        });
    }

    pub(super) fn stop(&self, scope: &OpenScope) {
        let event = if scope.json { &self.json_stop } else { &self.stop };
        payload::with(|payload| {
            scope_head(payload, scope);
            event.write_ids(Some(scope.activity), None, payload.as_bytes());
        });
    }
}

fn scope_head(payload: &mut Payload, scope: &OpenScope) {
    payload.push(&scope.number).push(&FACTORY).push(scope.logger.category());
}

/// Writes a text field in parts. The text ends where the value's own code fails.
fn text(payload: &mut Payload, write: impl FnOnce(&mut dyn Write) -> fmt::Result) {
    let mut text = payload.text();
    let _ = write(&mut text);
    text.finish();
}

fn formatted(payload: &mut Payload, content: &dyn Content) {
    text(payload, |text| content.message(text));
}

/// Writes at most as many arguments as a `u16` can count, the template last.
fn arguments(payload: &mut Payload, content: &dyn Content) {
    let place = payload.len();
    payload.push(&0u16);
    let mut count = 1u16;
    content.arguments(&mut |name, value| {
        if let Some(next) = count.checked_add(1) {
            count = next;
            payload.push(name).display(value);
        }
    });
    payload.push(TEMPLATE);
    text(payload, |text| content.template(text));
    payload.patch_u16(place, count);
}

fn arguments_json(payload: &mut Payload, content: &dyn Content) {
    text(payload, |text| {
        let mut members = Members::new(text)?;
        let mut outcome = Ok(());
        content.arguments(&mut |name, value| outcome = outcome.and_then(|()| members.add(name, value)));
        outcome?;
        members.add(TEMPLATE, &fmt::from_fn(|f| content.template(f)))?;
        members.end()
    });
}

fn exception(payload: &mut Payload, failure: Option<Failure<'_>>) {
    match failure {
        None => payload.push("").push("").push(&0i32).push(""),
        Some(failure) => {
            payload.push(failure.type_name).display(failure.error).push(&0i32).display(failure.chain())
        }
    };
}

fn exception_json(payload: &mut Payload, failure: Option<Failure<'_>>) {
    text(payload, |text| {
        let mut members = Members::new(text)?;
        if let Some(failure) = failure {
            members.add("TypeName", &failure.type_name)?;
            members.add("Message", &failure.error)?;
            members.add("HResult", &"0")?;
            members.add("VerboseMessage", &failure.chain())?;
        }
        members.end()
    });
}
