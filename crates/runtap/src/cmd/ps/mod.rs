//! `runtap ps`: who runs, as one table. `watch` goes on and tells the changes.

mod table;
mod watch;

use std::fmt;

use runtap_discover::{Code, System};
use runtap_target::{Listing, Seen};
use serde::Serialize;

use self::table::Table;
use crate::cli::Ps;
use crate::exit::{self, expected};
use crate::output::Output;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    processes: Vec<Row<'a>>,
    /// How many there are besides.
    of_other_users: usize,
}

/// A process as JSON has it.
#[derive(Serialize)]
struct Row<'a> {
    pid: u32,
    kind: &'static str,
    name: &'a str,
    command_line: &'a str,
    runtime_version: Option<&'a str>,
    arch: Option<&'a str>,
    user: &'a str,
    container: Option<&'a str>,
    suspended: Option<bool>,
    reachable: bool,
    reason: Option<&'static str>,
    socket: Option<&'a str>,
}

impl<'a> From<&'a Seen> for Row<'a> {
    fn from(seen: &'a Seen) -> Self {
        Self {
            pid: seen.pid,
            kind: seen.kind.name(),
            name: &seen.name,
            command_line: &seen.command_line,
            runtime_version: seen.runtime_version.as_deref(),
            arch: seen.arch.as_deref(),
            user: &seen.user,
            container: seen.container.as_deref(),
            suspended: seen.suspended,
            reachable: seen.reachable,
            reason: seen.reason.map(Code::name),
            socket: seen.socket.as_deref(),
        }
    }
}

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    if options.watch {
        return watch::run(options, output).await;
    }
    let Listing { processes, of_others } = Listing::now(options.all_users);
    let mut seen = Seen::all(processes).await;
    seen.retain(|seen| is_meant(options, seen));
    if let (true, Some(wanted)) = (seen.is_empty(), &options.name) {
        let hint =
            if of_others > 0 { OfOthers(of_others).to_string() } else { "'runtap ps' lists all".to_owned() };
        return Err(expected(exit::NO_TARGET, format!("no .NET or JVM process is called '{wanted}'"), hint));
    }
    let processes: Vec<Row<'_>> = seen.iter().map(Row::from).collect();
    if output.json() {
        output.document(&Document { schema: "runtap.ps/1", processes, of_other_users: of_others })?;
        return Ok(exit::OK);
    }
    output.text(text(&processes, columns(options, output)))?;
    if of_others > 0 {
        output.note(OfOthers(of_others));
    }
    if System::current().hides_others() {
        output.note("/proc shows us no process of other users (hidepid): root sees them");
    }
    Ok(exit::OK)
}

fn is_meant(options: &Ps, seen: &Seen) -> bool {
    options.name.as_ref().is_none_or(|wanted| seen.is_called(wanted))
}

/// How wide lines may be.
fn columns(options: &Ps, output: Output) -> Option<usize> {
    output.columns().filter(|_| !options.wide)
}

/// What is not shown.
struct OfOthers(usize);

impl fmt::Display for OfOthers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of other users: --all-users, or as root", self.0)
    }
}

fn text(processes: &[Row<'_>], columns: Option<usize>) -> String {
    if processes.is_empty() {
        return "no .NET or JVM process can be seen; 'runtap demo' has a program built in\n".to_owned();
    }
    let table = Table::of(processes, columns);
    processes.iter().fold(table.heading(""), |text, row| text + &table.line("", row))
}
