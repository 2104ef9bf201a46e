//! The files of dotnet-counters, so that what reads those reads these:
//!
//! | in the board | in the file |
//! |---|---|
//! | a gauge, an up-down counter | a row `NAME (UNIT)[TAGS]` of the type `Metric` with the value |
//! | a rate | a row `NAME (UNIT / N sec)[TAGS]` of the type `Rate` with the increment, and a row `NAME (UNIT)[TAGS]` of the type `Total` |
//! | a histogram | a row of the type `Metric` for each quantile, with the tag `Percentile`, and two rows of the type `Total`, `NAME.count` and `NAME.sum (UNIT)` |
//! | the process, if there are several | the first tag, `pid=1234` |
//! | tags | `name=value` joined by `;` in CSV and by `,` in JSON, from those of the meter to those of the series |
//! | times | UTC in whole seconds: `MM/dd/yyyy HH:mm:ss` in CSV, `yyyy-MM-dd HH:mm:ssZ` in JSON |
//! | a missing number | an empty cell, or `null` |
//! | NaN, infinities | `NaN`, `Infinity`, `-Infinity`; texts in JSON |
//!
//! Rows of the type `Total` are not in the files of dotnet-counters. The names of rates contain the requested interval. Fields of CSV
//! are quoted by RFC 4180.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use runtap_model::UtcNs;
use runtap_model::counters::{Counter, CounterKind, CounterRow, Tags};
use runtap_model::text::Clean;

use super::number::{DOTNET, Number};
use crate::json::string;

/// What follows the last row of a JSON document.
pub(super) const JSON_TAIL: &str = "\n  ]\n}\n";

pub(super) fn csv_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n");
}

pub(super) fn json_head(target: &str, start_ns: i64, out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(b"{\n  \"TargetProcess\": ");
    string(out, target)?;
    out.extend_from_slice(b",\n  \"StartTime\": ");
    string(out, &time(Some(start_ns)))?;
    out.extend_from_slice(b",\n  \"Events\": [");
    Ok(())
}

/// A row of a file.
struct FileRow {
    name: String,
    percentile: Option<String>,
    kind: &'static str,
    value: Option<f64>,
}

/// Returns the rows for the latest reading of a series.
fn rows(row: &CounterRow, interval_s: f64) -> Vec<FileRow> {
    let (counter, values) = (&row.counter, &row.values);
    let name = counter.display_name.as_deref().unwrap_or(&counter.name);
    let unit = counter.unit.as_str();
    let with = |name: &str, unit: &str| match unit {
        "" => name.to_owned(),
        unit => format!("{name} ({unit})"),
    };
    let of = |name, kind, value| FileRow { name, percentile: None, kind, value };
    match counter.kind {
        CounterKind::Rate => {
            let counted = if unit.is_empty() { "Count" } else { unit };
            vec![
                of(format!("{name} ({counted} / {interval_s} sec)"), "Rate", values.delta),
                of(with(name, counted), "Total", row.value()),
            ]
        }
        CounterKind::Histogram => {
            let quantiles = values.quantiles.iter().map(|(share, value)| FileRow {
                percentile: Some(percentile(share)),
                ..of(with(name, unit), "Metric", Some(*value))
            });
            #[expect(clippy::cast_precision_loss, reason = "the format has one type of numbers")]
            let count = row.total_count.map(|count| count as f64);
            let totals = [
                of(format!("{name}.count"), "Total", count),
                of(with(&format!("{name}.sum"), unit), "Total", row.total_sum),
            ];
            quantiles.chain(totals).collect()
        }
        _ => vec![of(with(name, unit), "Metric", row.value())],
    }
}

/// Converts `0.95` to `95`. A text that is not a number is kept.
fn percentile(share: &str) -> String {
    let percent = share.parse::<f64>().ok().map(|share| (share * 1e8).round() / 1e6);
    percent.map_or_else(|| share.to_owned(), |percent| percent.to_string())
}

/// Joins tags with a separator, after the process id if there is one.
fn joined<'a>(process: Option<u32>, levels: &[&'a Tags], percentile: Option<&'a str>, by: &str) -> String {
    let mut text = process.map_or_else(String::new, |process| format!("pid={process}"));
    let tags = levels.iter().flat_map(|tags| tags.pairs()).map(|(name, value)| (&**name, &**value));
    for (name, value) in tags.chain(percentile.map(|percentile| ("Percentile", percentile))) {
        let separator = if text.is_empty() { "" } else { by };
        // Writing to memory does not fail.
        let _ = write!(text, "{separator}{name}={value}");
    }
    text
}

pub(super) fn csv_rows(row: &CounterRow, process: Option<u32>, interval_s: f64, out: &mut Vec<u8>) {
    let time = row.utc_ns.map_or_else(String::new, |ns| {
        let text = UtcNs(ns).to_string();
        let part = |range| text.get(range).unwrap_or_default();
        format!("{}/{}/{} {}", part(5..7), part(8..10), part(0..4), part(11..19))
    });
    for FileRow { name, percentile, kind, value } in rows(row, interval_s) {
        let Counter { provider_tags, counter_tags, tags, .. } = &row.counter;
        let tags = joined(process, &[provider_tags, counter_tags, tags], percentile.as_deref(), ";");
        let name = if tags.is_empty() { name } else { format!("{name}[{tags}]") };
        let value = value.map(|value| Number { value, infinities: DOTNET }.to_string()).unwrap_or_default();
        for (text, end) in [(time.as_str(), b','), (&row.counter.provider, b','), (&name, b','), (kind, b',')]
        {
            cell(text, out);
            out.push(end);
        }
        out.extend_from_slice(value.as_bytes());
        out.push(b'\n');
    }
}

/// Writes a text so that it can act neither in a spreadsheet nor on a terminal, quoted if necessary.
fn cell(text: &str, out: &mut Vec<u8>) {
    // Full-width variants are treated as formulas too on East Asian systems.
    let is_formula = text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let text = format!("{}{}", if is_formula { "'" } else { "" }, Clean(text));
    if text.contains([',', '"']) {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

pub(super) fn json_rows(
    row: &CounterRow,
    process: Option<u32>,
    interval_s: f64,
    has_rows: &mut bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    for FileRow { name, percentile, kind, value } in rows(row, interval_s) {
        out.extend_from_slice(if std::mem::replace(has_rows, true) { b",\n    {" } else { b"\n    {" });
        let counter = &row.counter;
        let members = [
            ("timestamp", time(row.utc_ns)),
            ("provider", counter.provider.clone()),
            ("name", name),
            ("tags", joined(process, &[&counter.tags], percentile.as_deref(), ",")),
            ("counterType", kind.to_owned()),
            ("meterTags", joined(None, &[&counter.provider_tags], None, ",")),
            ("instrumentTags", joined(None, &[&counter.counter_tags], None, ",")),
        ];
        for (name, text) in &members {
            write!(out, " \"{name}\": ")?;
            string(out, text)?;
            out.push(b',');
        }
        out.extend_from_slice(b" \"value\": ");
        match value {
            None => out.extend_from_slice(b"null"),
            Some(value) if value.is_finite() => write!(out, "{}", Number { value, infinities: DOTNET })?,
            Some(value) => string(out, &Number { value, infinities: DOTNET })?,
        }
        out.extend_from_slice(b" }");
    }
    Ok(())
}

/// Returns a time as dotnet-counters writes it in JSON. Empty if unknown.
fn time(utc_ns: Option<i64>) -> String {
    utc_ns.map_or_else(String::new, |ns| {
        let text = UtcNs(ns).to_string();
        format!("{} {}Z", text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default())
    })
}
