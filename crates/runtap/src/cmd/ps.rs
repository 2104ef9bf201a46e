//! `runtap ps`

use std::fmt::Write as _;
use std::time::Duration;

use runtap_diag::{Client, Error, ProcessInfo, Timeouts};
use runtap_transport::discover::{self, Kind, Options, Process};
use serde::Serialize;
use tokio::task::JoinSet;

use super::info::suspended;
use super::target::local_name;
use crate::cli::Ps;
use crate::output::{DIM, HEADING, Output};

/// How long a runtime may take to say who it is.
const DEADLINE: Duration = Duration::from_millis(250);

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    processes: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    pid: u32,
    kind: &'static str,
    name: String,
    command_line: String,
    runtime_version: Option<String>,
    arch: Option<String>,
    user: String,
    container: Option<String>,
    suspended: Option<bool>,
    reachable: bool,
    reason: Option<&'static str>,
    socket: Option<String>,
}

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    let found = discover::processes(Options::default().all_users(options.all_users));
    // Every runtime is asked at the same time: a busy one costs the others nothing.
    let mut asking = JoinSet::new();
    for process in found {
        asking.spawn(ask(process));
    }
    let mut processes = asking.join_all().await;
    processes.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
    if output.json() {
        output.document(&Document { schema: "runtap.ps/1", processes })?;
    } else {
        output.text(text(&processes))?;
    }
    Ok(crate::exit::OK)
}

async fn ask(process: Process) -> Row {
    let mut row = Row {
        pid: process.pid,
        kind: process.kind.name(),
        name: local_name(&process),
        command_line: process.command_line.join(" "),
        runtime_version: None,
        arch: None,
        user: process.user.clone(),
        container: process.container.clone(),
        suspended: None,
        reachable: false,
        reason: None,
        socket: process.endpoint().map(|endpoint| endpoint.to_string()),
    };
    let Some(endpoint) = process.endpoint().filter(|_| process.kind == Kind::Dotnet) else {
        return row;
    };
    let client = Client::new(endpoint).with_timeouts(Timeouts::all(DEADLINE));
    let answer = tokio::time::timeout(DEADLINE, client.process_info()).await;
    match answer {
        Ok(Ok(info)) => {
            row.suspended = suspended(&process, &info);
            row.reachable = true;
            describe(&mut row, info);
        }
        // .NET Core 3 answers, but can't say who it is.
        Ok(Err(error)) if error.is_unknown_command() => row.reachable = true,
        Ok(Err(error)) => row.reason = Some(reason(&error)),
        Err(_deadline) => row.reason = Some("busy"),
    }
    row
}

/// In the words of `doctor`.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::NotThere { stale: true, .. } => "stale-socket",
        Error::NotThere { .. } => "no-such-process",
        Error::NotPermitted { .. } => "other-user",
        Error::Busy { .. } | Error::TimedOut { .. } => "busy",
        _ => "no-answer",
    }
}

fn describe(row: &mut Row, info: ProcessInfo) {
    if let Some(name) = info.entry_assembly.filter(|name| !name.is_empty()) {
        row.name = name;
    }
    row.arch = Some(info.arch);
    row.runtime_version = info.runtime_version;
}

fn text(processes: &[Row]) -> String {
    if processes.is_empty() {
        return "no .NET or JVM process can be seen; 'runtap demo' has a program built in\n".to_owned();
    }
    let width = processes.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{HEADING}{:>8}  {:<width$}  {:<12}  {:<10}  COMMAND LINE{HEADING:#}\n",
        "PID", "NAME", "RUNTIME", "USER"
    );
    // Writing to a String can't fail.
    for row in processes {
        let runtime = match (&row.runtime_version, row.kind) {
            (Some(version), _) => version.clone(),
            (None, kind) => kind.to_owned(),
        };
        let _ = write!(
            text,
            "{:>8}  {:<width$}  {runtime:<12}  {:<10}  {}",
            row.pid, row.name, row.user, row.command_line
        );
        let mut marks = Vec::new();
        if row.suspended == Some(true) {
            marks.push("suspended".to_owned());
        }
        marks.extend(row.reason.map(str::to_owned));
        marks.extend(row.container.as_ref().map(|id| format!("container {}", id.get(..12).unwrap_or(id))));
        if !marks.is_empty() {
            let _ = write!(text, "  {DIM}[{}]{DIM:#}", marks.join(", "));
        }
        text.push('\n');
    }
    text
}
