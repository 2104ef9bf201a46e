//! `runtap ps`: who runs, as one table. `watch` goes on and tells the changes.

mod watch;

use std::fmt;

use runtap_diag::ProcessInfo;
use runtap_diag::doctor::{self, Answer};
use runtap_record::{allow_many_files, in_a_thread};
use runtap_text::document::ProcessesDocument;
use runtap_text::{ProcessRow as Row, TextOptions};
use runtap_transport::discover::{self, Code, Kind, Options, Process, System};
use rustix::process::geteuid;
use tokio::task::JoinSet;

use super::info::suspended;
use super::target::{DEADLINE, ask, local_name};
use crate::cli::Ps;
use crate::exit::{self, expected};
use crate::output::Output;

const NOTHING: &str = "no .NET or JVM process can be seen; 'runtap demo' has a program built in\n";

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    let search = Search::new(options);
    if options.watch {
        return watch::run(&search, output).await;
    }
    let Found { processes, of_others } = search.look()();
    let mut processes = rows(processes).await;
    processes.retain(|row| search.is_meant(row));
    if let (true, Some(wanted)) = (processes.is_empty(), &search.wanted) {
        let hint = of_others.map_or_else(|| "'runtap ps' lists all".to_owned(), |n| OfOthers(n).to_string());
        return Err(expected(exit::NO_TARGET, format!("no .NET or JVM process is called '{wanted}'"), hint));
    }
    if output.json() {
        output.document(&ProcessesDocument::new(processes, of_others.unwrap_or(0)))?;
        return Ok(exit::OK);
    }
    if processes.is_empty() {
        output.text(NOTHING)?;
    } else {
        output.print(&processes[..], &search.options(output))?;
    }
    if let Some(n) = of_others {
        output.note(OfOthers(n));
    }
    if System::current().hides_others() {
        output.note("/proc shows us no process of other users (hidepid): root sees them");
    }
    Ok(exit::OK)
}

/// What is looked for.
#[derive(Debug)]
struct Search {
    /// A name, or a process id.
    wanted: Option<String>,
    all_users: bool,
    wide: bool,
}

/// What there is.
#[derive(Debug)]
struct Found {
    processes: Vec<Process>,
    /// How many there are besides, of users whose processes we may not reach; `None` for none.
    of_others: Option<usize>,
}

impl Search {
    fn new(options: &Ps) -> Self {
        Self { wanted: options.name.clone(), all_users: options.all_users, wide: options.wide }
    }

    /// Looks for processes, wherever it is called.
    fn look(&self) -> impl FnOnce() -> Found + Send + 'static {
        let all_users = self.all_users;
        move || {
            let mut processes = discover::processes(Options::default().all_users(true));
            let (all, me) = (processes.len(), geteuid());
            if !all_users && !me.is_root() {
                processes.retain(|process| process.uid == me.as_raw());
            }
            let of_others = all.saturating_sub(processes.len());
            Found { processes, of_others: (of_others > 0).then_some(of_others) }
        }
    }

    fn is_meant(&self, row: &Row) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        row.name == *wanted || row.aliases.contains(wanted) || row.pid.to_string() == *wanted
    }

    /// How wide lines may be.
    fn options(&self, output: Output) -> TextOptions<'static> {
        TextOptions { width: output.columns().filter(|_| !self.wide), ..output.options() }
    }
}

/// What is not shown.
struct OfOthers(usize);

impl fmt::Display for OfOthers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of other users: --all-users, or as root", self.0)
    }
}

/// By name, then by pid. Every runtime is asked at the same time: a busy one costs the others nothing.
async fn rows(found: Vec<Process>) -> Vec<Row> {
    // Each may have many sockets that look like its own.
    allow_many_files();
    let mut asking = JoinSet::new();
    for process in found {
        asking.spawn(row(process));
    }
    let asked = asking.join_all().await;
    // When all are asked: nobody waits for what is looked at now.
    let unreachable: Vec<(u32, Answer)> =
        asked.iter().filter_map(|(row, answer)| Some((row.pid, answer.clone()?))).collect();
    // How long that takes is for the processes to choose. Without a thread nothing is known.
    let look = in_a_thread(move || doctor::reasons(&System::current(), unreachable));
    let mut reasons = look.await.unwrap_or_default().into_iter();
    let mut rows = Vec::with_capacity(asked.len());
    for (mut row, answer) in asked {
        if let Some(answer) = answer {
            // In the words of `doctor`.
            let reason = reasons.next().flatten();
            let is_foreign = matches!(answer, Answer::Foreign(_));
            // It has ended while it was asked, or is no runtime: somebody else has made a socket with its name.
            if reason == Some(Code::NoSuchProcess) || is_foreign && reason == Some(Code::NotDotnet) {
                continue;
            }
            row.reason = reason.map(Code::name);
        }
        rows.push(row);
    }
    sort(&mut rows);
    rows
}

fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
}

/// A process, and what it answered instead of who it is.
async fn row(process: Process) -> (Row, Option<Answer>) {
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
        aliases: [process.comm.clone(), local_name(&process)],
    };
    if process.kind != Kind::Dotnet {
        return (row, None);
    }
    let answer = match ask(process.endpoint(), DEADLINE).await {
        Ok(info) => {
            row.suspended = suspended(&process, &info);
            row.reachable = true;
            describe(&mut row, info);
            return (row, None);
        }
        // .NET Core 3 answers, but can't say who it is.
        Err(Some(error)) if error.is_unknown_command() => {
            row.reachable = true;
            return (row, None);
        }
        Err(Some(error)) => Answer::of_error(&error),
        Err(None) => Answer::Silent,
    };
    (row, Some(answer))
}

fn describe(row: &mut Row, info: ProcessInfo) {
    if let Some(name) = info.entry_assembly.filter(|name| !name.is_empty()) {
        row.name = name;
    }
    row.arch = Some(info.arch);
    row.runtime_version = info.runtime_version;
}
