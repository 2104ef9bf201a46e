//! Activities with start and end events: requests, exceptions being handled, and a program's own pairs.
//!
//! The rules are those of TraceEvent: a pair is recognized by its opcodes, or by a name that ends in `Start` or `Stop`, and by an
//! activity id that is a path, as assigned by the runtime.

use std::fmt::Write as _;

use runtap_nettrace::{Event, FieldType, Metadata};
use runtap_wire::Reader;

use super::ids;
use crate::clr;
use crate::payload::{Fields, Payload, Value};
use crate::shown::shown;

const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
/// System.Data.SqlClient, and versions of Microsoft.Data.SqlClient that use this name.
const ADO_NET: &str = "Microsoft-AdoNet-SystemData";
const OPEN_TELEMETRY: &str = "OpenTelemetry-Sdk";
const APPLICATION_INSIGHTS: &str = "Microsoft-ApplicationInsights-Data";
/// Commands are truncated to this number of UTF-16 units.
const LONGEST_COMMAND: usize = 50;
/// An id that stands for no activity.
const NONE_OF_THEIRS: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What an event reports about an activity.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) id: [u8; 16],
    pub(super) related: Option<[u8; 16]>,
    /// The activity in which the event occurred, if that takes precedence over the related one.
    pub(super) inside: Option<[u8; 16]>,
    /// The name of the task and the label of the frame. Empty for an end.
    pub(super) task: String,
    pub(super) label: String,
    /// Whether the id is a path, which includes the outer activities.
    pub(super) is_path: bool,
    /// Whether the view `request` shows it at the top instead of below its outer activity.
    pub(super) detached: bool,
}

/// Whether events of a kind start or end activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    Start(Rule),
    Stop(Rule),
}

/// How the id and the label are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The id must be a path. The first field is shown if it is a text.
    Path,
    /// A handled exception: any id, and the method.
    Exception,
    /// Any id, and no details.
    Any,
    /// An id derived from the event's number, the data source and the command.
    Sql,
    /// Any id, and the field `id`. The name of the task is that of the event.
    OpenTelemetry,
    /// Any id, and the field `Name` or else `Id`. Only activities without a related one.
    ApplicationInsights,
}

impl Pairs {
    /// Returns the rule for the view `request`, which has neither exceptions nor connections.
    pub(super) fn of_requests(metadata: &Metadata) -> Option<Self> {
        let is_connection = metadata.provider == KESTREL && metadata.name.starts_with("Connection");
        Self::of(metadata).filter(|pair| {
            !is_connection && !matches!(pair, Self::Start(Rule::Exception) | Self::Stop(Rule::Exception))
        })
    }

    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
        match (provider, id) {
            (clr::RUNTIME, 250) => return Some(Self::Start(Rule::Exception)),
            (clr::RUNTIME, 251) => return Some(Self::Stop(Rule::Exception)),
            (clr::RUNTIME | clr::RUNDOWN | clr::TPL, _) => return None,
            _ if provider.starts_with(clr::RUNTIME) => return None,
            _ => {}
        }
        // Events without an opcode whose names end in neither word.
        if metadata.opcode.is_none_or(|opcode| opcode == 0) {
            match (provider, id, metadata.name.as_str()) {
                (ADO_NET, 1, _) => return Some(Self::Start(Rule::Sql)),
                (ADO_NET, 2, _) => return Some(Self::Stop(Rule::Sql)),
                (OPEN_TELEMETRY, _, "ActivityStarted") => return Some(Self::Start(Rule::OpenTelemetry)),
                (OPEN_TELEMETRY, _, "ActivityStopped") => return Some(Self::Stop(Rule::OpenTelemetry)),
                _ => {}
            }
        }
        let rule = match provider {
            "Microsoft-Diagnostics-ActivityTracking" => Rule::Any,
            APPLICATION_INSIGHTS if task(metadata) == "Request" => Rule::ApplicationInsights,
            APPLICATION_INSIGHTS => return None,
            _ => Rule::Path,
        };
        match opcode(metadata)? {
            1 => Some(Self::Start(rule)),
            2 => Some(Self::Stop(rule)),
            _ => None,
        }
    }

    /// Returns the span of an event, if its id follows the rule.
    pub(super) fn span(self, event: &Event<'_>, payload: Payload<'_>, process: u32) -> Option<Span> {
        let (Self::Start(rule) | Self::Stop(rule)) = self;
        let mut id = event.activity_id.map(|id| id.to_bytes_le()).unwrap_or_default();
        if rule == Rule::Path && !ids::is_path(&id, process) {
            return None;
        }
        let related = event.related_activity_id.filter(|id| !id.is_nil()).map(|id| id.to_bytes_le());
        let is_start = matches!(self, Self::Start(_));
        if rule == Rule::ApplicationInsights && is_start && related.is_some_and(|id| id != NONE_OF_THEIRS) {
            return None;
        }
        let mut inside = None;
        if rule == Rule::Sql {
            inside = Some(id);
            id = ids::of_command(*event.payload.first_chunk()?);
        }
        let (mut task, mut label) = (String::new(), String::new());
        if is_start {
            let text = ids::text(&id, process);
            let extra;
            (task, extra) = words(rule, event.metadata?, payload);
            let comma = if extra.is_some() { "," } else { "" };
            label = format!("Activity {task}({text}{comma}{})", extra.unwrap_or_default());
        }
        let is_path = rule == Rule::Path;
        Some(Span { id, related, inside, task, label, is_path, detached: false })
    }

    /// Returns the span with a label common to all requests of a kind: `GET /path`, `http://host:80/path`, or the task.
    pub(super) fn span_of_kind(self, event: &Event<'_>, payload: Payload<'_>, process: u32) -> Option<Span> {
        let mut span = self.span(event, payload, process)?;
        let metadata = event.metadata?;
        let text = |name| payload.text(name).unwrap_or_default();
        let without_query = |path: String| path.split(['?', '#']).next().unwrap_or_default().to_owned();
        span.label = match (metadata.provider.as_str(), span.task.as_str()) {
            ("Microsoft.AspNetCore.Hosting" | KESTREL, "Request") => {
                format!("{} {}", text("method"), without_query(text("path")))
            }
            ("System.Net.Http", "Request") => {
                let path = without_query(text("pathAndQuery"));
                format!("{}://{}:{}{path}", text("scheme"), text("host"), payload.u64("port").unwrap_or(0))
            }
            _ => span.task.clone(),
        };
        Some(span)
    }
}

/// Returns 1 for a start event and 2 for an end event.
fn opcode(metadata: &Metadata) -> Option<u8> {
    metadata.opcode.filter(|opcode| *opcode != 0).or_else(|| {
        if without_end(&metadata.name, "start").is_some() {
            Some(1)
        } else if without_end(&metadata.name, "stop").is_some() {
            Some(2)
        } else {
            None
        }
    })
}

/// Returns a name without the word at its end, in any case.
fn without_end<'a>(name: &'a str, word: &str) -> Option<&'a str> {
    let (before, end) = name.split_at_checked(name.len().checked_sub(word.len())?)?;
    end.eq_ignore_ascii_case(word).then_some(before)
}

/// Returns the name of the activity that an event starts or ends.
fn task(metadata: &Metadata) -> String {
    let name = &metadata.name;
    if name.is_empty() {
        return format!("EventID({})", metadata.event_id);
    }
    let task = match opcode(metadata) {
        Some(1) => without_end(name, "start"),
        Some(2) => without_end(name, "stop"),
        _ => None,
    };
    shown(task.unwrap_or(name)).into_owned()
}

/// Returns the data source (the second field) and the truncated text of the command (the fourth).
fn command(metadata: &Metadata, payload: Payload<'_>) -> String {
    let text = |index: usize| metadata.fields.get(index).and_then(|field| payload.text(&field.name));
    let mut words = format!("DS={}", text(1).unwrap_or_default());
    if let Some(command) = text(3).filter(|command| !command.is_empty()) {
        let units: Vec<u16> = command.encode_utf16().take(LONGEST_COMMAND + 1).collect();
        let shown = match units.get(..LONGEST_COMMAND - 3) {
            Some(first) if units.len() > LONGEST_COMMAND => String::from_utf16_lossy(first) + "...",
            _ => command,
        };
        let _ = write!(words, ",CMD={shown}");
    }
    words
}

/// Returns the name of the task, and the details.
fn words(rule: Rule, metadata: &Metadata, payload: Payload<'_>) -> (String, Option<String>) {
    if rule == Rule::Exception {
        return ("ExceptionHandling".to_owned(), Some(payload.text("MethodName").unwrap_or_default()));
    }
    let task = task(metadata);
    match rule {
        Rule::Any => return (task, None),
        Rule::Sql => return ("SQLCommand".to_owned(), Some(command(metadata, payload))),
        Rule::OpenTelemetry => return (metadata.name.clone(), Some(payload.text("id").unwrap_or_default())),
        Rule::ApplicationInsights => return (task, payload.text("Name").or_else(|| payload.text("Id"))),
        Rule::Exception | Rule::Path => {}
    }
    if metadata.provider == "Microsoft-Diagnostics-DiagnosticSource"
        && let Some(name) = payload.text("EventName")
    {
        return (name, Some(arguments(payload)));
    }
    let extra = metadata.fields.first().filter(|field| field.field_type == FieldType::String).map(|field| {
        let value = Reader::new(payload.bytes()).utf16z("").unwrap_or_default();
        format!("/{}={value}", shown(&field.name))
    });
    (task, extra)
}

/// Formats all arguments that have values as `key="value"`.
fn arguments(payload: Payload<'_>) -> String {
    let Some(Value::Array(pairs)) = payload.get("Arguments") else { return String::new() };
    let text =
        |fields: Fields<'_>, name| fields.get(name).and_then(|value| value.as_text()).unwrap_or_default();
    let mut joined = String::new();
    for (n, pair) in pairs.objects().enumerate() {
        let (key, value) = (text(pair.fields(), "Key"), text(pair.fields(), "Value"));
        if value.is_empty() {
            continue;
        }
        if n > 0 {
            joined.push(' ');
        }
        // Writing to a String can't fail.
        let _ = write!(joined, "{key}=\"{value}\"");
    }
    joined
}

#[cfg(test)]
mod tests {
    use runtap_nettrace::{EventToWrite, Field, StreamItem, TraceHeader, Uuid, Writer};
    use runtap_wire::Writer as Bytes;

    use super::*;
    use crate::payload::Schema;

    /// Returns the span of an event of this kind with these numbers as ids.
    fn told(metadata: &Metadata, ids: (u128, u128), write: impl FnOnce(&mut Bytes)) -> Option<Span> {
        let mut stream = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
        let metadata_id = stream.define_event(metadata).unwrap();
        let mut payload = Bytes::new();
        write(&mut payload);
        let of = |id: u128| (id != 0).then(|| Uuid::from_u128(id));
        let (activity_id, related_activity_id) = (of(ids.0), of(ids.1));
        let payload = payload.as_bytes();
        let event =
            EventToWrite { metadata_id, activity_id, related_activity_id, payload, ..Default::default() };
        stream.event(&event).unwrap();
        let mut reader = runtap_nettrace::Reader::new();
        reader.feed(&stream.finish());
        reader.finish();
        while let Some(item) = reader.next().unwrap() {
            if let StreamItem::Event(event) = item {
                let metadata = event.metadata.unwrap();
                let schema = Schema::of(metadata, 8);
                return Pairs::of(metadata)?.span(&event, Payload::new(&schema, event.payload), 42);
            }
        }
        panic!("an event")
    }

    fn kind(provider: &str, id: u32, name: &str, fields: &[(&str, FieldType)]) -> Metadata {
        let mut metadata = Metadata::new(provider, id, name);
        metadata.fields = fields.iter().map(|(name, of)| Field::new(*name, of.clone())).collect();
        metadata
    }

    #[test]
    fn commands_have_their_own_ids_and_labels() {
        let text = FieldType::String;
        let fields = [("objectId", FieldType::I32), ("dataSource", text.clone())];
        let fields = [&fields[..], &[("databaseName", text.clone()), ("commandText", text)]].concat();
        let begin = kind(ADO_NET, 1, "BeginExecute", &fields);
        let (full, long) = ("x".repeat(50), "x".repeat(51));
        for (command, words) in [
            ("SELECT 1", "DS=db,CMD=SELECT 1".to_owned()),
            ("", "DS=db".to_owned()),
            (&full, format!("DS=db,CMD={full}")),
            (&long, format!("DS=db,CMD={}...", "x".repeat(47))),
        ] {
            let write = |w: &mut Bytes| _ = w.u32(0xAB).utf16z("db").utf16z("master").utf16z(command);
            let span = told(&begin, (7, 0), write).unwrap();
            assert_eq!(span.label, format!("Activity SQLCommand(SQL/Id=000000ab,{words})"));
            assert_eq!(
                (span.task.as_str(), span.inside),
                ("SQLCommand", Some(Uuid::from_u128(7).to_bytes_le()))
            );
            // The end has an equal number, and therefore an equal id.
            let end = kind(ADO_NET, 2, "EndExecute", &[("objectId", FieldType::I32)]);
            assert_eq!(told(&end, (8, 0), |w| _ = w.u32(0xAB)).unwrap().id, span.id);
        }
        assert!(told(&begin, (7, 0), |w| _ = w.u16(1)).is_none(), "no number, no activity");
        // An event with an opcode follows the general rule.
        let mut stated = begin;
        stated.opcode = Some(1);
        assert!(told(&stated, (7, 0), |w| _ = w.u32(1)).is_none(), "its id is no path");
    }

    #[test]
    fn activities_of_libraries_need_no_path() {
        const ID: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        const SHOWN: &str = "01234567-89ab-cdef-0123-456789abcdef";
        let text = FieldType::String;
        let fields = [("name", text.clone()), ("id", text.clone())];
        let words = |w: &mut Bytes| _ = w.utf16z("GET").utf16z("00-1");
        let started = told(&kind(OPEN_TELEMETRY, 24, "ActivityStarted", &fields), (ID, 0), words).unwrap();
        assert_eq!(started.label, format!("Activity ActivityStarted({SHOWN},00-1)"));
        let stopped = told(&kind(OPEN_TELEMETRY, 25, "ActivityStopped", &fields), (ID, 0), words).unwrap();
        assert_eq!((stopped.id, stopped.label.as_str()), (started.id, ""));
        assert!(told(&kind(OPEN_TELEMETRY, 1, "ActivityDropped", &fields), (ID, 0), words).is_none());

        let insights = |name, related, fields: &[(&str, FieldType)]| {
            told(&kind(APPLICATION_INSIGHTS, 1, name, fields), (ID, related), words)
        };
        let named = [("Id", text.clone()), ("Name", text)];
        let label = |span: Option<Span>| span.unwrap().label;
        assert_eq!(label(insights("RequestStart", 0, &named)), format!("Activity Request({SHOWN},00-1)"));
        // Without a name, the id is shown. Id 1 stands for none.
        let one = 1 << 96;
        assert_eq!(
            label(insights("RequestStart", one, &named[..1])),
            format!("Activity Request({SHOWN},GET)")
        );
        assert!(insights("RequestStart", 2, &named).is_none(), "it is part of another one");
        assert!(insights("RequestStop", 2, &named).is_some(), "that matters at the beginning only");
        assert!(insights("DependencyStart", 0, &named).is_none());
        // For all other providers, the id must be a path.
        assert!(told(&kind("Mine", 1, "RequestStart", &fields), (ID, 0), words).is_none());
    }

    #[test]
    fn a_long_name_is_truncated_in_labels() {
        const PATH: u128 = 0x0000_3012_0000_0000_0000_0000_bfc9_9d59;
        let field = "F".repeat(9_000);
        let begin = kind("Mine", 1, &("N".repeat(9_000) + "Start"), &[(&field, FieldType::String)]);
        let span = told(&begin, (PATH, 0), |w| _ = w.utf16z("v")).unwrap();
        let (task, field) = ("N".repeat(256), "F".repeat(256));
        assert_eq!(span.label, format!("Activity {task}…(//1/2/3/,/{field}…=v)"));
    }
}
