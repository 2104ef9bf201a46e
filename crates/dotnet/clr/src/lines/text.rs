//! Events as lines for people: time, name, thread, fields. Log messages look like those of .NET's console logger.

use std::io::Write;

use crate::payload::{Fields, Payload, PayloadError, Value};
use crate::{Member, MemberValue, Record, UtcNs};

use runtap_model::text::Clean;

use crate::shown::shown;

/// Writes a line. `name_process` adds the process id.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, frames: Option<&[String]>, name_process: bool) {
    let mut line = Vec::new();
    match record.member(Member::Time) {
        Some(MemberValue::Time(UtcNs(ns))) => {
            let text = UtcNs(ns).to_bytes();
            line.extend_from_slice(text.get(11..26).unwrap_or_default());
        }
        _ => put(&mut line, format_args!("{:>15}", record.header.relative_ns(record.event.timestamp))),
    }
    if name_process && let Some(MemberValue::UInt(process)) = record.member(Member::Process) {
        put(&mut line, format_args!("  {process:>7}"));
    }
    line.extend_from_slice(b"  ");
    if !log(&mut line, record) {
        let metadata = record.event.metadata;
        let provider = metadata.map_or("?", |metadata| &metadata.provider);
        put(&mut line, format_args!("{}/", shown(provider)));
        match record.payload.schema().name() {
            "" => put(&mut line, format_args!("{}", metadata.map_or(0, |metadata| metadata.event_id))),
            name => put(&mut line, shown(name)),
        }
        put(&mut line, format_args!("  [{}] ", record.event.thread_id));
        payload(&mut line, record.payload);
    }
    // Data of the target must neither act on a terminal nor break the line.
    put(out, Clean(&String::from_utf8_lossy(&line)));
    out.push(b'\n');
    for frame in frames.unwrap_or_default() {
        put(out, format_args!("    {}\n", Clean(frame)));
    }
}

/// Writes `info: Category[7] message`, as .NET's console logger does.
fn log(out: &mut Vec<u8>, record: &Record<'_>) -> bool {
    let of_logger =
        record.event.metadata.is_some_and(|metadata| metadata.provider == "Microsoft-Extensions-Logging");
    let payload = record.payload;
    if !of_logger || payload.schema().name() != "FormattedMessage" {
        return false;
    }
    let (Some(category), Some(message)) = (payload.text("LoggerName"), payload.text("FormattedMessage"))
    else {
        return false;
    };
    let level = match payload.u64("Level") {
        Some(0) => "trce",
        Some(1) => "dbug",
        Some(2) => "info",
        Some(3) => "warn",
        Some(4) => "fail",
        _ => "crit",
    };
    let id = payload.get("EventId").and_then(|id| id.as_i64()).unwrap_or_default();
    put(out, format_args!("{level}: {category}[{id}] {message}"));
    true
}

fn payload(out: &mut Vec<u8>, payload: Payload<'_>) {
    if payload.schema().is_described() {
        let mut names: Vec<_> = payload.names().collect();
        payload.fields().for_each(|read| {
            let field = match &read {
                Ok((field, _)) => *field,
                Err(_) => "",
            };
            self::field(out, read);
            if let Some(at) = names.iter().position(|(known, _)| *known == field) {
                put(out, format_args!(" ({})", names.remove(at).1));
            }
        });
        // Names of parts of a field.
        for (part, name) in names {
            put(out, format_args!(" {part}={name}"));
        }
    } else if !payload.bytes().is_empty() {
        put(out, format_args!(" ({} bytes)", payload.bytes().len()));
    }
}

fn fields(out: &mut Vec<u8>, fields: Fields<'_>) {
    fields.for_each(|read| field(out, read));
}

fn field(out: &mut Vec<u8>, read: Result<(&str, Value<'_>), PayloadError>) {
    match read {
        Ok((name, one)) => {
            put(out, format_args!(" {name}="));
            value(out, one);
        }
        Err(error) => put(out, format_args!(" ({error})")),
    }
}

fn value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Bool(value) => put(out, value),
        Value::Int(value) => put(out, value),
        Value::UInt(value) => put(out, value),
        Value::Hex(value) => put(out, format_args!("{value:#x}")),
        Value::F32(value) => put(out, value),
        Value::F64(value) => put(out, value),
        Value::Decimal(value) => put(out, value),
        Value::Char(unit) => put(out, String::from_utf16_lossy(&[unit])),
        Value::Time(value) => match value.unix_ns() {
            Some(ns) => put(out, UtcNs(ns)),
            None => put(out, value.0),
        },
        Value::Guid(value) => put(out, value),
        Value::Bytes(value) => put(out, format_args!("({} bytes)", value.len())),
        Value::Object(inner) => {
            out.push(b'{');
            fields(out, inner.fields());
            out.extend_from_slice(b" }");
        }
        Value::Array(elements) => {
            out.push(b'[');
            for (i, element) in elements.enumerate() {
                if i > 0 {
                    out.extend_from_slice(b", ");
                }
                self::value(out, element);
            }
            out.push(b']');
        }
        text => {
            let text = text.as_text().unwrap_or_default();
            // Quote only what could be taken for two fields.
            let quoted = text.is_empty() || text.contains(char::is_whitespace);
            if quoted { put(out, format_args!("\"{text}\"")) } else { put(out, text) }
        }
    }
}

/// Writing to a Vec can't fail.
fn put(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}
