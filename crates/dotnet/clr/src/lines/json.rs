//! Events as lines of JSON. The format is stable (docs/events.md).
//!
//! | in the event | in the line |
//! |---|---|
//! | common members | members with equal names; `null` if unknown |
//! | `keywords`, addresses, identifiers of 64 bits | hexadecimal texts |
//! | GUIDs, times | text; RFC 3339 with nanoseconds |
//! | fields | members of `payload`; arrays of bytes as hexadecimal text; NaN and infinity as text |
//! | numbers that have a name | the number; `payload_names` has the name by field |
//! | bytes without a description | `payload` is `null`, and `payload_hex` has them |
//! | a payload that does not follow its description | the fields before the error, and `payload_error` |

use std::io::Write;

use crate::payload::{Fields, Value};
use crate::{Member, MemberValue, Record, UtcNs};
use runtap_nettrace::IdTable;
use runtap_wire::Utf16;

use runtap_model::text::{acts_unseen, json_escape};

use crate::shown::shown;

/// The parts of lines that are equal for all events of a kind, by metadata id.
#[derive(Debug, Default)]
pub(super) struct Heads {
    heads: IdTable<Box<[u8]>>,
    /// The total size in bytes, including entries that were removed.
    bytes: usize,
}

/// The maximum size in bytes: a stream may define any number of events with long names.
const MAX_BYTES: usize = 16 << 20;

/// Consecutive members that are equal for all events of a kind.
const OF_KIND: [Member; 7] = [
    Member::Provider,
    Member::Name,
    Member::Id,
    Member::Version,
    Member::Level,
    Member::Keywords,
    Member::Opcode,
];
const BEFORE: [Member; 2] = [Member::TsNs, Member::Time];
const BEHIND: [Member; 6] = [
    Member::Thread,
    Member::CaptureThread,
    Member::Processor,
    Member::Process,
    Member::Activity,
    Member::RelatedActivity,
];

impl Heads {
    /// Forgets a kind that is redefined.
    pub(super) fn forget(&mut self, metadata_id: u32) {
        self.heads.remove(metadata_id);
    }

    fn write(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        // An event's own labels may replace those of its kind.
        if !record.event.labels.is_empty() {
            members(out, record, &OF_KIND);
            return;
        }
        let id = record.event.metadata_id;
        if let Some(head) = self.heads.get(id) {
            out.extend_from_slice(head);
            return;
        }
        let start = out.len();
        members(out, record, &OF_KIND);
        let head = out.get(start..).unwrap_or_default();
        self.bytes += head.len();
        if self.bytes > MAX_BYTES {
            self.heads.clear();
            self.bytes = head.len();
        }
        self.heads.insert(id, head.into());
    }
}

/// Writes an event as a line.
pub(super) fn write(out: &mut Vec<u8>, heads: &mut Heads, record: &Record<'_>, frames: Option<&[String]>) {
    out.extend_from_slice(br#"{"type":"event""#);
    members(out, record, &BEFORE);
    heads.write(out, record);
    members(out, record, &BEHIND);
    out.extend_from_slice(br#","payload":"#);
    let odd = payload(out, record);
    if let Some(PayloadProblem::Bytes(all)) = &odd {
        out.extend_from_slice(br#","payload_hex":"#);
        bytes(out, all);
    }
    if record.payload.schema().has_names() {
        names(out, br#","payload_names":"#, record);
    }
    if let Some(PayloadProblem::Error(error)) = &odd {
        out.extend_from_slice(br#","payload_error":"#);
        text(out, error);
    }
    out.extend_from_slice(br#","stack":"#);
    match frames {
        None => out.extend_from_slice(b"null"),
        Some(frames) => stack(out, frames),
    }
    out.extend_from_slice(b"}\n");
}

pub(super) fn stack(out: &mut Vec<u8>, frames: &[String]) {
    list(out, b'[', frames.iter(), |out, frame| text(out, frame));
    out.push(b']');
}

fn members(out: &mut Vec<u8>, record: &Record<'_>, members: &[Member]) {
    for member in members {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(member.name().as_bytes());
        out.extend_from_slice(b"\":");
        match record.member(*member) {
            None => out.extend_from_slice(b"null"),
            Some(MemberValue::Text(value)) => text(out, &shown(value)),
            Some(MemberValue::Int(value)) => number(out, value),
            Some(MemberValue::UInt(value)) => number(out, value),
            Some(MemberValue::Hex(value)) => hex(out, value),
            Some(MemberValue::Time(value)) => time(out, value),
            Some(MemberValue::Guid(value)) => guid(out, value),
        }
    }
}

/// A problem with a payload.
pub(super) enum PayloadProblem<'a> {
    /// There is no description.
    Bytes(&'a [u8]),
    /// The payload does not follow its description.
    Error(String),
}

/// Writes the payload as one value.
pub(super) fn payload<'a>(out: &mut Vec<u8>, record: &Record<'a>) -> Option<PayloadProblem<'a>> {
    let payload = record.payload;
    if !payload.schema().is_described() && !payload.bytes().is_empty() {
        out.extend_from_slice(b"null");
        return Some(PayloadProblem::Bytes(payload.bytes()));
    }
    object(out, payload.fields()).map(PayloadProblem::Error)
}

/// Writes the names of the payload's numbers as one object after `before`. Writes nothing if there are none.
pub(super) fn names(out: &mut Vec<u8>, before: &[u8], record: &Record<'_>) {
    let mut names = record.payload.names().peekable();
    if names.peek().is_none() {
        return;
    }
    out.extend_from_slice(before);
    list(out, b'{', names, |out, (field, name)| {
        text(out, field);
        out.push(b':');
        text(out, &name);
    });
    out.push(b'}');
}

/// Writes bytes as hexadecimal digits, without quotes.
pub(super) fn hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
}

/// Writes an object. Returns the error in its last field, if any.
fn object(out: &mut Vec<u8>, fields: Fields<'_>) -> Option<String> {
    let (mut first, mut wrong) = (true, None);
    out.push(b'{');
    fields.for_each(|field| match field {
        Ok((name, one)) => {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            text(out, name);
            out.push(b':');
            value(out, one);
        }
        Err(error) => wrong = Some(error.to_string()),
    });
    out.push(b'}');
    wrong
}

fn value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Value::Int(value) => number(out, value),
        Value::UInt(value) => number(out, value),
        Value::Hex(value) => hex(out, value),
        Value::F32(value) => real(out, value, value.is_finite()),
        Value::F64(value) => real(out, value, value.is_finite()),
        Value::Decimal(value) => written(out, value),
        Value::Char(unit) => utf16(out, Utf16::new(&unit.to_le_bytes())),
        Value::Time(value) => match value.unix_ns() {
            Some(ns) => time(out, UtcNs(ns)),
            None => out.extend_from_slice(b"null"),
        },
        Value::Guid(value) => guid(out, value),
        Value::Utf16(value) => utf16(out, value),
        Value::Utf8(value) => text(out, &String::from_utf8_lossy(value)),
        Value::Bytes(value) => bytes(out, value),
        Value::Object(inner) => _ = object(out, inner.fields()),
        Value::Array(elements) => {
            list(out, b'[', elements, self::value);
            out.push(b']');
        }
    }
}

fn list<T>(
    out: &mut Vec<u8>,
    open: u8,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(open);
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

/// Writing to a Vec can't fail.
fn written(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}

fn number(out: &mut Vec<u8>, value: impl serde::Serialize) {
    let _ = serde_json::to_writer(out, &value);
}

fn real(out: &mut Vec<u8>, value: impl serde::Serialize + std::fmt::Display, finite: bool) {
    if finite {
        number(out, value);
    } else {
        text(out, &value.to_string());
    }
}

fn hex(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"\"0x");
    let digits = (67 - value.leading_zeros().min(63)) / 4;
    let digit = |i: u32| b"0123456789abcdef"[usize::try_from(value >> (4 * i) & 15).unwrap_or_default()];
    out.extend((0..digits).rev().map(digit));
    out.push(b'"');
}

fn time(out: &mut Vec<u8>, time: UtcNs) {
    out.push(b'"');
    out.extend_from_slice(&time.to_bytes());
    out.push(b'"');
}

fn guid(out: &mut Vec<u8>, guid: runtap_nettrace::Uuid) {
    out.push(b'"');
    written(out, guid);
    out.push(b'"');
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    hex_digits(out, bytes);
    out.push(b'"');
}

/// Whether a character needs no escape. A `#` after another one does, because build servers execute `##[` and `##vso[`.
fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) && !b"\"\\#".contains(&byte)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().all(is_plain) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escaped(out, text.chars());
    }
    out.push(b'"');
}

fn utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    out.push(b'"');
    let (units, _) = text.as_bytes().as_chunks::<2>();
    if units.iter().all(|[low, high]| *high == 0 && is_plain(*low)) {
        out.extend(units.iter().map(|[low, _]| *low));
    } else {
        escaped(out, text.chars());
    }
    out.push(b'"');
}

/// Escapes what JSON requires, and what would act on a terminal or in the log of a build server, where a line may be shown.
fn escaped(out: &mut Vec<u8>, chars: impl Iterator<Item = char>) {
    let mut last = ' ';
    for c in chars {
        let is_command = (last, c) == ('#', '#');
        last = c;
        match c {
            '"' => out.extend_from_slice(br#"\""#),
            '\\' => out.extend_from_slice(br"\\"),
            '\n' => out.extend_from_slice(br"\n"),
            '\r' => out.extend_from_slice(br"\r"),
            '\t' => out.extend_from_slice(br"\t"),
            c if is_command || acts_unseen(c) => {
                let mut text = String::new();
                json_escape(c, &mut text);
                out.extend_from_slice(text.as_bytes());
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_round_trip_and_do_not_act_on_a_terminal() {
        for original in [
            "",
            "plain C#",
            "##vso[task.complete]###[error] # #",
            "q\" b\\ \n\r\t\u{1}",
            "é中😀\u{7f}\u{9b}\u{202e}\u{200b}\u{e0041}",
        ] {
            let units: Vec<u8> = original.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for json in [shown(|out| text(out, original)), shown(|out| utf16(out, Utf16::new(&units)))] {
                assert_eq!(serde_json::from_str::<String>(&json).unwrap(), original);
                assert!(!json.contains(acts_unseen) && !json.contains("##"), "{json:?}");
            }
        }
    }

    #[test]
    fn numbers() {
        for (value, json) in [
            (Value::Hex(0), "\"0x0\""),
            (Value::Hex(0x1f), "\"0x1f\""),
            (Value::Hex(u64::MAX), "\"0xffffffffffffffff\""),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::UInt(u64::MAX), "18446744073709551615"),
            (Value::F64(2.0), "2.0"),
            (Value::F32(0.1), "0.1"),
            (Value::F64(f64::NAN), "\"NaN\""),
            (Value::F32(f32::NEG_INFINITY), "\"-inf\""),
            (Value::Bytes(&[0, 0xab]), "\"00ab\""),
            (Value::Char(0xd800), "\"\u{fffd}\""),
        ] {
            assert_eq!(shown(|out| super::value(out, value)), json);
        }
    }
}
