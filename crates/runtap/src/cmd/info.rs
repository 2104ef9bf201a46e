//! `runtap info`

use std::fmt::Write as _;

use runtap_target::is_suspended;
use serde::Serialize;

use super::failure::explain;
use super::target::choose_all;
use crate::cli::Info;
use crate::output::{Clean, DIM, Output};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pid: u64,
    runtime_cookie: String,
    command_line: &'a str,
    os: &'a str,
    arch: &'a str,
    entry_assembly: Option<&'a str>,
    runtime_version: Option<&'a str>,
    portable_rid: Option<&'a str>,
    suspended: Option<bool>,
}

pub(super) async fn run(options: &Info, output: Output) -> anyhow::Result<u8> {
    let all = choose_all(&options.target, options.all.all, output).await?;
    let several = all.len() > 1;
    for (n, chosen) in all.iter().enumerate() {
        let info = chosen.client.process_info().await.map_err(explain)?;
        let document = Document {
            schema: "runtap.info/1",
            pid: chosen.process.as_ref().map_or(info.process_id, |process| u64::from(process.pid)),
            runtime_cookie: info.runtime_cookie.to_string(),
            command_line: &info.command_line,
            os: &info.os,
            arch: &info.arch,
            entry_assembly: info.entry_assembly.as_deref(),
            runtime_version: info.runtime_version.as_deref(),
            portable_rid: info.portable_rid.as_deref(),
            suspended: chosen.process.as_ref().and_then(|process| is_suspended(process, &info)),
        };
        match (output.json(), several) {
            (true, true) => output.document_line(&document)?,
            (true, false) => output.document(&document)?,
            (false, _) => {
                let gap = if n > 0 { "\n" } else { "" };
                output.text(format_args!("{gap}{}", text(&document)))?;
            }
        }
    }
    Ok(crate::exit::OK)
}

fn text(document: &Document<'_>) -> String {
    let unknown = format!("{DIM}unknown{DIM:#}");
    let or_unknown = |value: Option<&str>| {
        value
            .filter(|value| !value.is_empty())
            .map_or_else(|| unknown.clone(), |value| Clean(value).to_string())
    };
    let suspended = match document.suspended {
        Some(true) => "yes, at its start",
        Some(false) => "no",
        None => &unknown,
    };
    let rows = [
        ("process id", document.pid.to_string()),
        ("entry assembly", or_unknown(document.entry_assembly)),
        ("command line", Clean(document.command_line).to_string()),
        ("runtime", or_unknown(document.runtime_version)),
        ("platform", or_unknown(document.portable_rid)),
        ("system", format!("{} {}", Clean(document.os), Clean(document.arch))),
        ("runtime cookie", document.runtime_cookie.clone()),
        ("suspended", suspended.to_owned()),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{name:<16}{value}");
    }
    text
}
