//! `runtap ps`: who runs, as one table. `watch` goes on and tells the changes.

mod watch;

use std::fmt::Write as _;

use runtap_diag::ProcessInfo;
use runtap_diag::doctor::{self, Answer};
use runtap_transport::discover::{self, Code, Kind, Options, Process, System};
use serde::Serialize;
use tokio::task::JoinSet;

use super::info::suspended;
use super::target::{DEADLINE, ask, local_name};
use crate::cli::Ps;
use crate::output::{Clean, DIM, HEADING, Output};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    processes: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
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
    let search = Options::default().all_users(options.all_users);
    if options.watch {
        return watch::run(search, output).await;
    }
    let processes = rows(discover::processes(search)).await;
    if output.json() {
        output.document(&Document { schema: "runtap.ps/1", processes })?;
    } else {
        output.text(text(&processes))?;
    }
    Ok(crate::exit::OK)
}

/// By name, then by pid. Every runtime is asked at the same time: a busy one costs the others nothing.
async fn rows(found: Vec<Process>) -> Vec<Row> {
    let mut asking = JoinSet::new();
    for process in found {
        asking.spawn(row(process));
    }
    let mut rows = asking.join_all().await;
    // It ended while it was asked.
    rows.retain(|row| row.reason != Some(Code::NoSuchProcess.name()));
    sort(&mut rows);
    rows
}

fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
}

async fn row(process: Process) -> Row {
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
    if process.kind != Kind::Dotnet {
        return row;
    }
    match ask(process.endpoint(), DEADLINE).await {
        Ok(info) => {
            row.suspended = suspended(&process, &info);
            row.reachable = true;
            describe(&mut row, info);
        }
        // .NET Core 3 answers, but can't say who it is.
        Err(Some(error)) if error.is_unknown_command() => row.reachable = true,
        Err(Some(error)) => row.reason = reason(Answer::of_error(&error), process.pid),
        Err(None) => row.reason = reason(Answer::Silent, process.pid),
    }
    row
}

/// In the words of `doctor`.
fn reason(answer: Answer, pid: u32) -> Option<&'static str> {
    doctor::reason(&System::current(), pid, answer).map(Code::name)
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
    let names = processes.iter().map(|row| Clean(&row.name).to_string().chars().count());
    let width = names.max().unwrap_or(0).max(4);
    let mut text = heading(width);
    for row in processes {
        text.push_str(&line(row, width));
    }
    text
}

fn heading(width: usize) -> String {
    format!(
        "{HEADING}{:>8}  {:<width$}  {:<12}  {:<10}  COMMAND LINE{HEADING:#}\n",
        "PID", "NAME", "RUNTIME", "USER"
    )
}

fn line(row: &Row, width: usize) -> String {
    let runtime = Clean(row.runtime_version.as_deref().unwrap_or(row.kind));
    let (name, user, command_line) = (Clean(&row.name), Clean(&row.user), Clean(&row.command_line));
    let mut text = format!("{:>8}  {name:<width$}  {runtime:<12}  {user:<10}  {command_line}", row.pid);
    let mut marks = Vec::new();
    if row.suspended == Some(true) {
        marks.push("suspended".to_owned());
    }
    marks.extend(row.reason.map(str::to_owned));
    marks.extend(row.container.as_ref().map(|id| format!("container {}", id.get(..12).unwrap_or(id))));
    if !marks.is_empty() {
        // Writing to a String can't fail.
        let _ = write!(text, "  {DIM}[{}]{DIM:#}", marks.join(", "));
    }
    text.push('\n');
    text
}
