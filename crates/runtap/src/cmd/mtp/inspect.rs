//! `runtap mtp inspect FILE`: prints one line per frame, or all of its fields.

use std::fmt::Write as _;

use runtap_mtp::transcript::TestPipe;
use runtap_text::document::Partial;
use runtap_text::{Clean, DIM};
use runtap_transcript::{Inspector, Row};
use serde::Serialize;
use serde_json::{Value, json};

use super::{each, single_line, warn_if_partial};
use crate::cli::MtpInspect;
use crate::output::Output;

/// The first members of `runtap.mtp-inspect/1`; the list `rows` and [`Tail`] follow.
#[derive(Debug, Serialize)]
struct Head {
    schema: &'static str,
    file: String,
}

/// The last members, which are known at the end.
#[derive(Debug, Serialize)]
struct Tail {
    connections: u64,
    frames: u64,
    undecoded: u64,
    partial: Option<Partial>,
}

pub(super) fn run(options: &MtpInspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut inspector = Inspector::new(TestPipe);
    let head = Head { schema: "runtap.mtp-inspect/1", file: path.display().to_string() };
    let mut document = output.list(head, "rows");
    let mut is_headed = false;
    let partial = each(path, options.max_size.of(), |located| {
        for row in inspector.rows(located) {
            if output.json() {
                document.element(&value(&row))?;
                continue;
            }
            if !std::mem::replace(&mut is_headed, true) {
                let heading = output.options().heading();
                output.text(format_args!(
                    "{heading}{:>5}  {:>10}  {:<8}  {:<3}  {:<24}  WHAT{heading:#}\n",
                    "FRAME", "TIME", "CONN", "DIR", "MESSAGE"
                ))?;
            }
            output.text(text(&row, output.is_verbose()))?;
        }
        Ok(())
    })?;
    let code = warn_if_partial(path, partial.as_ref(), output);
    if output.json() {
        let (connections, frames) = (inspector.connections(), inspector.frames());
        document.finish(&Tail { connections, frames, undecoded: inspector.undecoded(), partial })?;
    }
    Ok(code)
}

fn value(row: &Row) -> Value {
    json!({
        "line": row.line, "t": row.t, "conn": row.conn, "dir": row.dir, "what": row.what, "frame": row.frame,
        "id": row.id, "name": row.name, "bytes": row.bytes, "summary": row.summary, "error": row.error,
        "fields": row.fields.as_ref().filter(|_| row.frame.is_some()),
    })
}

fn text(row: &Row, is_verbose: bool) -> String {
    let frame = row.frame.map(|frame| frame.to_string()).unwrap_or_default();
    let time = row.t.map(|t| format!("{t:.6}")).unwrap_or_default();
    let short = |text: &Option<String>| Clean(text.as_deref().unwrap_or_default()).to_string();
    let name = row.name.as_deref().filter(|_| row.what == "frame").unwrap_or(&row.what);
    let mut what = single_line(&row.summary);
    if let Some(error) = &row.error {
        let between = if what.is_empty() { "" } else { "; " };
        what = format!("{what}{between}error: {}", single_line(error));
    }
    let (conn, dir, name) = (short(&row.conn), short(&row.dir), Clean(name).to_string());
    let line = format!("{frame:>5}  {time:>10}  {conn:<8}  {dir:<3}  {name:<24}  {what}");
    let mut text = line.trim_end().to_owned();
    text.push('\n');
    if is_verbose {
        for field in &row.details {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{DIM}{}{DIM:#}", Clean(field));
        }
    }
    text
}
