//! Readings as JSON Lines of the type `counter`. The members are stable (docs/counters.md). Missing numbers are `null`; NaN and
//! infinities are the texts `NaN`, `inf` and `-inf`.

use std::io::{self, Write as _};

use runtap_model::UtcNs;
use runtap_model::counters::{CounterRow, Tags};

use super::number::{Number, PLAIN};
use crate::json::string;

/// Writes the latest reading of a series as a line.
pub(super) fn write(row: &CounterRow, out: &mut Vec<u8>) -> io::Result<()> {
    let (counter, values) = (&row.counter, &row.values);
    out.extend_from_slice(b"{\"type\":\"counter\"");
    text(out, "time", row.utc_ns.map(|ns| UtcNs(ns).to_string()).as_deref())?;
    write!(out, ",\"pid\":{}", row.process)?;
    text(out, "provider", Some(&counter.provider))?;
    text(out, "version", counter.version.as_deref())?;
    text(out, "name", Some(&counter.name))?;
    text(out, "display_name", counter.display_name.as_deref())?;
    text(out, "unit", Some(&counter.unit))?;
    text(out, "kind", Some(counter.kind.name()))?;
    tags(out, "tags", &counter.tags)?;
    text(out, "tags_text", Some(counter.tags.text()))?;
    tags(out, "meter_tags", &counter.provider_tags)?;
    tags(out, "instrument_tags", &counter.counter_tags)?;
    if let Some(instruments) = counter.instruments {
        write!(out, ",\"instruments\":{instruments}")?;
    }
    for (name, value) in [
        ("value", row.value()),
        ("delta", values.delta),
        ("interval_s", values.interval_s),
        ("sum", values.sum),
        ("min", values.min),
        ("max", values.max),
        ("total_sum", row.total_sum),
    ] {
        write!(out, ",\"{name}\":")?;
        number(out, value)?;
    }
    for (name, value) in [("count", values.count), ("total_count", row.total_count)] {
        match value {
            Some(value) => write!(out, ",\"{name}\":{value}")?,
            None => write!(out, ",\"{name}\":null")?,
        }
    }
    out.extend_from_slice(b",\"quantiles\":");
    if values.quantiles.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        let mut separator = b'{';
        for (share, value) in &values.quantiles {
            out.push(separator);
            string(out, share)?;
            out.push(b':');
            number(out, Some(*value))?;
            separator = b',';
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) -> io::Result<()> {
    write!(out, ",\"{name}\":")?;
    match value {
        Some(value) => string(out, value),
        None => out.write_all(b"null"),
    }
}

/// Writes a number, or `null` if it is missing.
pub(super) fn number(out: &mut Vec<u8>, value: Option<f64>) -> io::Result<()> {
    match value {
        None => out.write_all(b"null"),
        Some(value) if value.is_finite() => write!(out, "{}", Number { value, infinities: PLAIN }),
        Some(value) => string(out, &Number { value, infinities: PLAIN }),
    }
}

/// Writes tags as an object. Of tags with one name, the last is written.
fn tags(out: &mut Vec<u8>, name: &str, tags: &Tags) -> io::Result<()> {
    write!(out, ",\"{name}\":{{")?;
    let pairs = tags.pairs();
    let mut is_first = true;
    for (index, (name, value)) in pairs.iter().enumerate() {
        if pairs.iter().skip(index + 1).any(|(other, _)| other == name) {
            continue;
        }
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        string(out, name)?;
        out.push(b':');
        string(out, value)?;
    }
    out.push(b'}');
    Ok(())
}
