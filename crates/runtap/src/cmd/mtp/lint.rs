//! `runtap mtp lint FILE`: checks a recording and prints the broken rules and their positions.

use std::fmt::Write as _;

use runtap_mtp::transcript::{Finding, Linter, Summary};
use runtap_text::Clean;
use runtap_text::document::Partial;
use serde::Serialize;
use serde_json::{Value, json};

use super::{each, warn_if_partial};
use crate::cli::MtpLint;
use crate::exit;
use crate::output::Output;
use crate::units::{Count, Things};

/// A document of the schema `runtap.mtp-lint/1`.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    connections: u64,
    frames: u64,
    version: Option<String>,
    errors: u64,
    warnings: u64,
    findings: Vec<Value>,
    partial: Option<Partial>,
}

pub(super) fn run(options: &MtpLint, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut linter = Linter::new();
    let partial = each(path, options.max_size.of(), |located| {
        linter.take(located);
        Ok(())
    })?;
    let (summary, findings) = linter.finish();
    let code = warn_if_partial(path, partial.as_ref(), output);
    if output.json() {
        output.document(&Document {
            schema: "runtap.mtp-lint/1",
            file: path.display().to_string(),
            connections: summary.connections,
            frames: summary.frames,
            version: summary.version.map(|version| version.to_string()),
            errors: summary.errors,
            warnings: summary.warnings,
            findings: findings.iter().map(value).collect(),
            partial,
        })?;
    } else {
        for finding in &findings {
            output.text(text(finding))?;
        }
        output.text(total(&summary, findings.len()))?;
    }
    Ok(if summary.errors > 0 { exit::FAILED } else { code })
}

fn value(Finding { rule, detail, conn, line, frame }: &Finding) -> Value {
    json!({
        "rule": rule.id(), "severity": rule.severity().to_string(), "conn": conn, "line": line, "frame": frame,
        "detail": detail, "summary": rule.summary(), "source": rule.source(),
    })
}

fn text(Finding { rule, detail, conn, line, frame }: &Finding) -> String {
    let conn = conn.as_ref().map(|conn| format!("{}, ", Clean(conn))).unwrap_or_default();
    let place = frame.map_or_else(|| format!("line {line}"), |frame| format!("frame {frame} (line {line})"));
    let severity = rule.severity();
    let (summary, source) = (rule.summary(), rule.source());
    format!("{severity} {rule} {conn}{place}: {}\n  rule: {summary}\n  source: {source}\n", Clean(detail))
}

fn total(summary: &Summary, listed: usize) -> String {
    let Summary { connections, frames, errors, warnings, version, has_end } = summary;
    let mut text = format!(
        "{}, {}, {}; {}, {}\n",
        Things(*connections, "connection"),
        Things(*frames, "frame"),
        version.map_or_else(|| "no version chosen".to_owned(), |version| format!("version {version}")),
        Things(*errors, "error"),
        Things(*warnings, "warning"),
    );
    let found = errors.saturating_add(*warnings);
    if found > listed as u64 {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "only the first {} are listed", Count(listed as u64));
    }
    if !has_end {
        text.push_str("the end of the application is not recorded: rules about it were not checked\n");
    }
    if found > 0 {
        text.push_str("the rules: docs/mtp-rules.md\n");
    }
    text
}
