//! Recordings of the `dotnet test` pipe: what is in them, the rules that they break, and the results of recording and replaying
//! them.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use runtap_mtp::transcript::{ApplicationOutcome, Finding, Played, Severity, Summary, Tally};
use runtap_transcript::{Inspector, Protocol, Row};
use serde::Serialize;
use serde_json::{Value, json};

use crate::document::Partial;
use crate::rows::RowPrinter;
use crate::units::{Bytes, Count, Things};
use crate::{Clean, DIM, Output, cut};

/// The maximum number of characters of a row's summary and error.
const MAX_CHARS: usize = 200;

/// The document `runtap.mtp-record/1`.
#[derive(Debug, Serialize)]
pub struct RecordedDocument {
    schema: &'static str,
    path: String,
    connections: u64,
    frames: u64,
    bytes: u64,
    exit_code: u8,
    /// The test results, if the recorder was the server.
    tests: Option<RecordedTests>,
    partial: bool,
}

#[derive(Debug, Serialize)]
struct RecordedTests {
    total: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    error: u64,
    timeout: u64,
    cancelled: u64,
    discovered: u64,
    protocol_errors: u64,
    protocol_warnings: u64,
}

impl RecordedDocument {
    /// Creates the document for a recording in this file.
    pub fn new(path: String, exit_code: u8, outcome: &ApplicationOutcome) -> Self {
        let ApplicationOutcome { totals, tally, .. } = outcome;
        let tests = |tally: &Tally| RecordedTests {
            total: tally.totals.total(),
            passed: tally.totals.passed,
            failed: tally.totals.failed,
            skipped: tally.totals.skipped,
            error: tally.totals.error,
            timeout: tally.totals.timeout,
            cancelled: tally.totals.cancelled,
            discovered: tally.discovered,
            protocol_errors: tally.broken(Severity::Error),
            protocol_warnings: tally.broken(Severity::Warning),
        };
        Self {
            schema: "runtap.mtp-record/1",
            path,
            connections: totals.connections,
            frames: totals.frames,
            bytes: totals.bytes,
            exit_code,
            tests: tally.as_ref().map(tests),
            partial: totals.is_truncated,
        }
    }

    /// Summarizes the recording in one line.
    pub fn remark(&self) -> String {
        let Self { path, connections, frames, bytes, .. } = self;
        let (connections, frames) = (Things(*connections, "connection"), Things(*frames, "message"));
        format!("{path}: {connections}, {frames}, {}", Bytes(*bytes))
    }
}

/// Formats the non-zero counts of outcomes, and the broken rules.
pub fn tally(tally: &Tally) -> String {
    let counts = [
        (tally.discovered, "listed"),
        (tally.totals.passed, "passed"),
        (tally.totals.failed, "failed"),
        (tally.totals.error, "error"),
        (tally.totals.timeout, "timed out"),
        (tally.totals.cancelled, "cancelled"),
        (tally.totals.skipped, "skipped"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<_> = counts.map(|(count, what)| format!("{} {what}", Count(count))).collect();
    if parts.is_empty() {
        parts.push("no tests".to_owned());
    }
    if !tally.violations.is_empty() {
        let rules: Vec<_> = tally.violations.keys().map(ToString::to_string).collect();
        parts.push(format!("broken rules: {}", rules.join(", ")));
    }
    parts.join(", ")
}

/// The document `runtap.mtp-replay/1`.
#[derive(Debug, Serialize)]
pub struct ReplayedDocument {
    schema: &'static str,
    file: String,
    connections: u64,
    requests: u64,
    exit_code: u8,
}

impl ReplayedDocument {
    /// Creates the document for a recording that was played.
    pub fn new(file: String, exit_code: u8, played: &Played) -> Self {
        let Played { connections, requests, .. } = *played;
        Self { schema: "runtap.mtp-replay/1", file, connections, requests, exit_code }
    }

    /// Summarizes the replay in one line.
    pub fn remark(&self) -> String {
        format!("{}, {}", Things(self.connections, "connection"), Things(self.requests, "request"))
    }
}

/// The document `runtap.mtp-lint/1`.
#[derive(Debug, Serialize)]
pub struct LintDocument {
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

impl LintDocument {
    /// Creates the document for a recording with these violations.
    pub fn new(file: String, summary: &Summary, findings: &[Finding], partial: Option<Partial>) -> Self {
        let value = |Finding { rule, detail, conn, line, frame }: &Finding| {
            json!({
                "rule": rule.id(), "severity": rule.severity().to_string(), "conn": conn, "line": line, "frame": frame,
                "detail": detail, "summary": rule.summary(), "source": rule.source(),
            })
        };
        Self {
            schema: "runtap.mtp-lint/1",
            file,
            connections: summary.connections,
            frames: summary.frames,
            version: summary.version.map(|version| version.to_string()),
            errors: summary.errors,
            warnings: summary.warnings,
            findings: findings.iter().map(value).collect(),
            partial,
        }
    }
}

/// Formats a broken rule and its position.
pub fn finding(Finding { rule, detail, conn, line, frame }: &Finding) -> String {
    let conn = conn.as_ref().map(|conn| format!("{}, ", Clean(conn))).unwrap_or_default();
    let place = frame.map_or_else(|| format!("line {line}"), |frame| format!("frame {frame} (line {line})"));
    let severity = rule.severity();
    let (summary, source) = (rule.summary(), rule.source());
    format!("{severity} {rule} {conn}{place}: {}\n  rule: {summary}\n  source: {source}\n", Clean(detail))
}

/// Formats the result of checking a recording, of which this number of broken rules is listed.
pub fn lint_summary(summary: &Summary, listed: usize) -> String {
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

/// The members of `runtap.mtp-inspect/1` after the list `rows`.
#[derive(Serialize)]
struct FramesTail {
    connections: u64,
    frames: u64,
    undecoded: u64,
    partial: Option<Partial>,
}

/// Prints the rows of a recording: `runtap.mtp-inspect/1`, or a line for each frame.
#[derive(Debug)]
pub struct FramePrinter(RowPrinter);

impl FramePrinter {
    /// Creates the printer for a file.
    pub fn new(file: &Path, output: Output) -> io::Result<Self> {
        let style = output.options().heading();
        let (number, time) = ("FRAME", "TIME");
        let columns =
            format!("{number:>5}  {time:>10}  {:<8}  {:<3}  {:<24}  WHAT", "CONN", "DIR", "MESSAGE");
        let heading = format!("{style}{columns}{style:#}\n");
        RowPrinter::new("runtap.mtp-inspect/1", file, "rows", heading, output).map(Self)
    }

    /// Prints rows.
    pub fn rows(&mut self, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            if self.0.output.json() {
                self.0.element(&frame_document(row))?;
            } else {
                self.0.line(frame(row, self.0.output.is_verbose()))?;
            }
        }
        Ok(())
    }

    /// Ends the output of a recording that was read to its end.
    pub fn finish(self, inspector: &Inspector<impl Protocol>, partial: Option<Partial>) -> io::Result<()> {
        let (connections, frames) = (inspector.connections(), inspector.frames());
        self.0.finish(&FramesTail { connections, frames, undecoded: inspector.undecoded(), partial })
    }
}

/// Returns an element of the list `rows`.
fn frame_document(row: &Row) -> Value {
    json!({
        "line": row.line, "t": row.t, "conn": row.conn, "dir": row.dir, "what": row.kind, "frame": row.frame,
        "id": row.id, "name": row.name, "bytes": row.bytes, "summary": row.summary, "error": row.error,
        "fields": row.fields.as_ref().filter(|_| row.frame.is_some()),
    })
}

/// Formats a frame in one line, with `details` followed by its fields.
fn frame(row: &Row, details: bool) -> String {
    let frame = row.frame.map(|frame| frame.to_string()).unwrap_or_default();
    let time = row.t.map(|t| format!("{t:.6}")).unwrap_or_default();
    let short = |text: &Option<String>| Clean(text.as_deref().unwrap_or_default()).to_string();
    let single_line = |text: &str| cut(Clean(text).to_string(), Some(MAX_CHARS));
    let name = row.name.as_deref().filter(|_| row.kind == "frame").unwrap_or(&row.kind);
    let mut what = single_line(&row.summary);
    if let Some(error) = &row.error {
        let between = if what.is_empty() { "" } else { "; " };
        what = format!("{what}{between}error: {}", single_line(error));
    }
    let (conn, dir, name) = (short(&row.conn), short(&row.dir), Clean(name).to_string());
    let line = format!("{frame:>5}  {time:>10}  {conn:<8}  {dir:<3}  {name:<24}  {what}");
    let mut text = line.trim_end().to_owned();
    text.push('\n');
    if details {
        for field in &row.details {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{DIM}{}{DIM:#}", Clean(field));
        }
    }
    text
}
