//! Activities that an event begins and another one ends: requests, exceptions being handled, a program's own pairs.
//!
//! Which events those are and what the activities are called, by the rules of TraceEvent: a pair is known by its opcodes, or
//! by a name that ends in `Start` or `Stop`, and by an activity id that is a path, as the runtime gives them out.

use std::fmt::Write as _;

use runtap_nettrace::{Event, FieldType, Metadata};
use runtap_wire::Reader;

use crate::clr;
use crate::payload::{Fields, Payload, Schema, Value};

const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";

/// What an event tells of an activity.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) id: [u8; 16],
    pub(super) related: Option<[u8; 16]>,
    /// The task's name, and the frame's text; of an end there are none.
    pub(super) task: String,
    pub(super) label: String,
}

/// Whether events of a kind begin or end activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    Start(Rule),
    Stop(Rule),
}

/// Where the id and the words come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The id has to be a path; the first field says more, if it is a text.
    Path,
    /// An exception that is handled: any id, and the method.
    Exception,
    /// Any id, and nothing more.
    Any,
}

impl Pairs {
    /// For the view `request`, which has neither exceptions nor connections.
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
        let rule = if provider == "Microsoft-Diagnostics-ActivityTracking" { Rule::Any } else { Rule::Path };
        match opcode(metadata)? {
            1 => Some(Self::Start(rule)),
            2 => Some(Self::Stop(rule)),
            _ => None,
        }
    }

    /// What an event tells, if its id is one.
    pub(super) fn span(self, event: &Event<'_>, process: u32, pointer_size: u32) -> Option<Span> {
        let (Self::Start(rule) | Self::Stop(rule)) = self;
        let id = event.activity_id.map(|id| id.to_bytes_le()).unwrap_or_default();
        if rule == Rule::Path && path(&id, process).is_none() {
            return None;
        }
        let related = event.related_activity_id.filter(|id| !id.is_nil()).map(|id| id.to_bytes_le());
        let (mut task, mut label) = (String::new(), String::new());
        if matches!(self, Self::Start(_)) {
            let text = path(&id, process).unwrap_or_else(|| plain(id));
            let extra;
            (task, extra) = words(rule, event.metadata?, event, pointer_size);
            let comma = if extra.is_some() { "," } else { "" };
            label = format!("Activity {task}({text}{comma}{})", extra.unwrap_or_default());
        }
        Some(Span { id, related, task, label })
    }

    /// The same with a label that all requests of a kind have: `GET /path`, `http://host:80/path`, or the task.
    pub(super) fn span_of_kind(self, event: &Event<'_>, process: u32, pointer_size: u32) -> Option<Span> {
        let mut span = self.span(event, process, pointer_size)?;
        let metadata = event.metadata?;
        let schema = Schema::of(metadata, pointer_size);
        let payload = Payload::new(&schema, event.payload);
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

/// 1 of an event that begins something, 2 of one that ends it.
fn opcode(metadata: &Metadata) -> Option<u8> {
    metadata.opcode.filter(|opcode| *opcode != 0).or_else(|| {
        let name = metadata.name.to_ascii_lowercase();
        if name.ends_with("start") {
            Some(1)
        } else if name.ends_with("stop") {
            Some(2)
        } else {
            None
        }
    })
}

/// The name of the task, and what its first field says.
fn words(rule: Rule, metadata: &Metadata, event: &Event<'_>, pointer_size: u32) -> (String, Option<String>) {
    let schema = Schema::of(metadata, pointer_size);
    let payload = Payload::new(&schema, event.payload);
    if rule == Rule::Exception {
        return ("ExceptionHandling".to_owned(), Some(payload.text("MethodName").unwrap_or_default()));
    }
    let name = &metadata.name;
    let task = match name.get(name.len().saturating_sub(5)..) {
        Some(end) if end.eq_ignore_ascii_case("start") => name.get(..name.len() - 5).unwrap_or(name),
        _ => name,
    };
    let task = if name.is_empty() { format!("EventID({})", metadata.event_id) } else { task.to_owned() };
    if rule == Rule::Any {
        return (task, None);
    }
    if metadata.provider == "Microsoft-Diagnostics-DiagnosticSource"
        && let Some(name) = payload.text("EventName")
    {
        return (name, Some(arguments(payload)));
    }
    let extra = metadata.fields.first().filter(|field| field.field_type == FieldType::String).map(|field| {
        let value = Reader::new(event.payload).utf16z("").unwrap_or_default();
        format!("/{}={value}", field.name)
    });
    (task, extra)
}

/// `key="value"` of all that have a value.
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

fn plain(id: [u8; 16]) -> String {
    runtap_nettrace::Uuid::from_bytes_le(id).to_string()
}

/// The text of an id that is a path: the numbers of the activities from the outermost one on, `/#PID/1/7/`.
fn path(id: &[u8; 16], process: u32) -> Option<String> {
    let word = |at: usize| {
        let bytes = id.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let sum = word(0).wrapping_add(word(4)).wrapping_add(word(8)).wrapping_add(0x599D_99AD);
    let of = sum ^ word(12);
    let fits = match process {
        0 => of >> 20 == 0,
        process => of == process || of == 0,
    };
    if !fits {
        return None;
    }
    let mut text = String::new();
    if of == 0 {
        text.push('/');
    } else {
        let _ = write!(text, "/#{}", of.cast_signed());
    }
    let bytes = id.get(..12).unwrap_or_default();
    let half = |at: usize| {
        let byte = *bytes.get(at / 2)?;
        Some(if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
    };
    let (mut at, mut separator) = (0, '/');
    while let Some(code) = half(at) {
        at += 1;
        match code {
            0 => break,
            1..=0xA => {
                let _ = write!(text, "/{code}");
                continue;
            }
            _ => {}
        }
        let mut code = code;
        let mut high = 0;
        if code == 0xB {
            // The code follows: in the low half of this byte, else in the high half of the next one.
            separator = '$';
            let Some(next) = half(at) else { break };
            if !(0xC..=0xF).contains(&next) {
                return Some(plain(*id));
            }
            if !at.is_multiple_of(2) {
                high = u32::from(next);
            }
            code = next;
            at += 1;
            // What is left of a byte does not count.
            at += at % 2;
        } else if !at.is_multiple_of(2) {
            high = u32::from(half(at).unwrap_or(0));
            at += 1;
        }
        let count = usize::from(code - 0xC) + 1;
        let start = at / 2;
        let Some(value) = bytes.get(start..start + count) else { break };
        let low = value.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
        let number = high.checked_shl(u32::try_from(8 * count).unwrap_or(32)).unwrap_or(0) | low;
        let _ = write!(text, "{separator}{number}");
        at = (start + count) * 2;
    }
    text.push('/');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(hex: &str, last: u32) -> [u8; 16] {
        let mut id = [0; 16];
        for (at, byte) in hex.split(' ').enumerate() {
            id[at] = u8::from_str_radix(byte, 16).unwrap();
        }
        id[12..].copy_from_slice(&last.to_be_bytes());
        id
    }

    #[test]
    fn paths_have_texts() {
        for (hex, last, process, text) in [
            ("17", 0xb3d0_9d59, 18807, Some("/#18807/1/7/")),
            ("1d ee 02", 0xbdce_a059, 18807, Some("/#18807/1/750/")),
            (
                "1c 40 11 11 11 11 11 11 11 11 11 11",
                0xace9_d08c,
                4679,
                Some("/#4679/1/64/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/"),
            ),
            (
                "1c 40 11 11 11 11 11 11 11 1b c0",
                0xac17_807c,
                4679,
                Some("/#4679/1/64/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1$0/"),
            ),
            ("17", 0xb3d0_9d59, 1, None),
        ] {
            assert_eq!(path(&id(hex, last), process).as_deref(), text, "{hex}");
        }
    }
}
