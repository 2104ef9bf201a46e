//! Process tables, which can also be printed line by line.

use std::io;
use std::iter;
use std::time::Duration;

use serde::Serialize;

use crate::units::{Bytes, Span};
use crate::{Clean, Print, TextOptions, cut};

/// A process: a row of a table and an object of `runtap.ps/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// `dotnet` or `jvm`.
    pub kind: &'static str,
    /// Name of the entry assembly or of the process.
    pub name: String,
    /// Command line.
    pub command_line: String,
    /// Version of the runtime; `None` if unknown.
    pub runtime_version: Option<String>,
    /// Processor architecture; `None` if unknown.
    pub arch: Option<String>,
    /// Name of the user.
    pub user: String,
    /// Id of the container, if any.
    pub container: Option<String>,
    /// Whether the process is suspended at startup; `None` if unknown.
    pub suspended: Option<bool>,
    /// Whether the runtime responds.
    pub reachable: bool,
    /// Code of the reason why it cannot be reached.
    pub reason: Option<&'static str>,
    /// Path of its diagnostics socket.
    pub socket: Option<String>,
    /// Process id of the parent; `None` if unknown.
    pub parent_pid: Option<u32>,
    /// Average use of processors since the start, where 100 is one processor; `None` if unknown.
    pub cpu_percent: Option<f64>,
    /// Resident memory; `None` if unknown.
    pub rss_bytes: Option<u64>,
    /// Time since the start; `None` if unknown.
    pub uptime_ns: Option<u64>,
}

/// A change of the process list, as one line of JSON.
#[derive(Debug, Serialize)]
pub struct ChangeRow<'a> {
    /// Type of the change.
    pub r#type: &'static str,
    /// The process.
    #[serde(flatten)]
    pub row: &'a ProcessRow,
}

/// Maximum width of a column. Longer texts shift the following columns.
const MAX_COLUMN_WIDTH: usize = 32;

/// The column widths of a process table.
#[derive(Debug)]
pub struct ProcessTable<'a> {
    pid: usize,
    name: usize,
    state: usize,
    runtime: usize,
    user: usize,
    /// `None` if no process is in a container.
    container: Option<usize>,
    /// Whether to show the parent and what a process uses.
    wide: bool,
    options: TextOptions<'a>,
}

impl<'a> ProcessTable<'a> {
    /// Creates a table for all of its rows.
    pub fn of(rows: &[ProcessRow], wide: bool, options: TextOptions<'a>) -> Self {
        let width = |title: &str, of: &dyn Fn(&ProcessRow) -> String| {
            let cells = rows.iter().map(|row| of(row).chars().count());
            cells.chain(iter::once(title.len())).max().unwrap_or(0).min(MAX_COLUMN_WIDTH)
        };
        let in_container = rows.iter().any(|row| row.container.is_some());
        Self {
            pid: width("PID", &|row| row.pid.to_string()),
            name: width("NAME", &name),
            state: width("STATE", &|row| state(row).to_owned()),
            runtime: width("RUNTIME", &runtime),
            user: width("USER", &user),
            container: in_container.then(|| width("CONTAINER", &container)),
            wide,
            options,
        }
    }

    /// Creates a table for rows that are not known in advance.
    pub fn of_unknown(wide: bool, options: TextOptions<'a>) -> Self {
        Self { pid: 8, name: 20, state: 9, runtime: 9, user: 8, container: None, wide, options }
    }

    /// Returns the heading line, preceded by `lead`.
    pub fn heading(&self, lead: &str) -> String {
        let titles = ["PID", "NAME", "STATE", "RUNTIME", "USER", "CONTAINER", "COMMAND LINE"];
        let usage = ["PARENT", "CPU", "MEMORY", "UPTIME"].map(str::to_owned);
        let line = cut(format!("{lead}{}", self.cells(titles, &usage)), self.options.width);
        let heading = self.options.heading();
        format!("{heading}{line}{heading:#}\n")
    }

    /// Returns a row, preceded by `lead`.
    pub fn line(&self, lead: &str, row: &ProcessRow) -> String {
        let (name, runtime, user, container) = (name(row), runtime(row), user(row), container(row));
        let command_line = Clean(&row.command_line).to_string();
        let pid = row.pid.to_string();
        let cells = [&*pid, &name, state(row), &runtime, &user, &container, &command_line];
        let mut line = cut(format!("{lead}{}", self.cells(cells, &usage(row))), self.options.width);
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }

    fn cells(
        &self,
        [pid, name, state, runtime, user, container, command_line]: [&str; 7],
        [parent, cpu, memory, uptime]: &[String; 4],
    ) -> String {
        let usage = if self.wide {
            format!("{parent:>p$}  {cpu:>6}  {memory:>8}  {uptime:>8}  ", p = self.pid.max(6))
        } else {
            String::new()
        };
        let container = match self.container {
            Some(width) => format!("{container:<width$}  "),
            None => String::new(),
        };
        format!(
            "{pid:>p$}  {name:<n$}  {state:<s$}  {runtime:<r$}  {user:<u$}  {usage}{container}{command_line}",
            p = self.pid,
            n = self.name,
            s = self.state,
            r = self.runtime,
            u = self.user,
        )
    }
}

/// A table of all processes.
#[derive(Debug)]
pub struct ProcessList<'a> {
    /// The processes.
    pub rows: &'a [ProcessRow],
    /// Whether to show the parent and what a process uses.
    pub wide: bool,
}

impl Print for ProcessList<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let table = ProcessTable::of(self.rows, self.wide, *options);
        out.write_all(table.heading("").as_bytes())?;
        self.rows.iter().try_for_each(|row| out.write_all(table.line("", row).as_bytes()))
    }
}

fn name(row: &ProcessRow) -> String {
    Clean(&row.name).to_string()
}

/// Returns the state in one word, or the code of the reason why the process cannot be reached.
fn state(row: &ProcessRow) -> &str {
    match (row.reason, row.suspended) {
        (Some(reason), _) => reason,
        (None, Some(true)) => "suspended",
        (None, _) if row.reachable => "running",
        (None, _) => "-",
    }
}

fn runtime(row: &ProcessRow) -> String {
    match (row.kind, row.runtime_version.as_deref()) {
        (kind, None) => kind.to_owned(),
        ("dotnet", Some(version)) => Clean(version).to_string(),
        (kind, Some(version)) => format!("{kind} {}", Clean(version)),
    }
}

fn user(row: &ProcessRow) -> String {
    Clean(&row.user).to_string()
}

/// Formats the parent, and what the process uses.
fn usage(row: &ProcessRow) -> [String; 4] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        or_dash(row.parent_pid.map(|pid| pid.to_string())),
        or_dash(row.cpu_percent.map(|percent| format!("{percent:.1}%"))),
        or_dash(row.rss_bytes.map(|bytes| Bytes(bytes).to_string())),
        or_dash(row.uptime_ns.map(|ns| Span(Duration::from_nanos(ns)).to_string())),
    ]
}

fn container(row: &ProcessRow) -> String {
    row.container.as_ref().map_or_else(String::new, |id| id.get(..12).unwrap_or(id).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, name: &str, command_line: &str) -> ProcessRow {
        ProcessRow {
            pid,
            kind: "dotnet",
            name: name.to_owned(),
            command_line: command_line.to_owned(),
            runtime_version: Some("10.0.12".to_owned()),
            arch: Some("x64".to_owned()),
            user: "www-data".to_owned(),
            container: None,
            suspended: Some(false),
            reachable: true,
            reason: None,
            socket: None,
            parent_pid: None,
            cpu_percent: None,
            rss_bytes: None,
            uptime_ns: None,
        }
    }

    fn shown(rows: &[ProcessRow], wide: bool, width: Option<usize>) -> String {
        let mut text = Vec::new();
        let list = ProcessList { rows, wide };
        list.print(&mut text, &TextOptions { width, ..TextOptions::default() }).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_fit_their_contents() {
        let mut rows = [
            row(7, "web", "dotnet web.dll --urls http://localhost"),
            row(12_345, "wörker\x1b", "/srv/worker/worker --queue mail --verbose"),
            row(99, "java", "java -jar x.jar"),
            row(100, "MyService", ""),
            row(101, "shop.Main", "java shop.Main"),
        ];
        rows[1].suspended = Some(true);
        (rows[2].kind, rows[2].runtime_version, rows[2].reachable) = ("jvm", None, false);
        (rows[4].kind, rows[4].runtime_version, rows[4].reachable) = ("jvm", Some("17.0.15".into()), false);
        (rows[3].reachable, rows[3].reason, rows[3].container) =
            (false, Some("busy"), Some("0123456789abcdef".repeat(4)));
        let text = shown(&rows, false, None);
        insta::assert_snapshot!(text, @r"
          PID  NAME          STATE      RUNTIME      USER      CONTAINER     COMMAND LINE
            7  web           running    10.0.12      www-data                dotnet web.dll --urls http://localhost
        12345  wörker\u{1b}  suspended  10.0.12      www-data                /srv/worker/worker --queue mail --verbose
           99  java          -          jvm          www-data                java -jar x.jar
          100  MyService     busy       10.0.12      www-data  0123456789ab
          101  shop.Main     -          jvm 17.0.15  www-data                java shop.Main
        ");
        let text = shown(&rows[..3], false, Some(60));
        insta::assert_snapshot!(text, @r"
          PID  NAME          STATE      RUNTIME  USER      COMMAND …
            7  web           running    10.0.12  www-data  dotnet w…
        12345  wörker\u{1b}  suspended  10.0.12  www-data  /srv/wor…
           99  java          -          jvm      www-data  java -ja…
        ");
        assert!(text.lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn a_wide_table_shows_the_parent_and_what_a_process_uses() {
        let mut rows = [row(7, "web", "dotnet web.dll"), row(12_345, "worker", "worker")];
        (rows[0].parent_pid, rows[0].cpu_percent) = (Some(1), Some(12.34));
        (rows[0].rss_bytes, rows[0].uptime_ns) = (Some(123_456_789), Some(90_000_000_000));
        insta::assert_snapshot!(shown(&rows, true, None), @r"
          PID  NAME    STATE    RUNTIME  USER      PARENT     CPU    MEMORY    UPTIME  COMMAND LINE
            7  web     running  10.0.12  www-data       1   12.3%  123.5 MB  00:01:30  dotnet web.dll
        12345  worker  running  10.0.12  www-data       -       -         -         -  worker
        ");
    }
}
