//! The table of `ps`: its columns are as wide as what is in them, and its lines fit the terminal.

use std::iter;

use super::Row;
use crate::output::{Clean, HEADING, cut};

/// A name or a user that is longer moves the columns behind it.
const LONGEST: usize = 32;

/// How wide the columns are.
#[derive(Debug)]
pub(super) struct Table {
    pid: usize,
    name: usize,
    state: usize,
    runtime: usize,
    user: usize,
    /// Nothing without containers.
    container: Option<usize>,
    /// Of the terminal.
    columns: Option<usize>,
}

impl Table {
    /// For these rows; `columns`: where lines have to end.
    pub(super) fn of(rows: &[Row<'_>], columns: Option<usize>) -> Self {
        let width = |title: &str, of: &dyn Fn(&Row<'_>) -> String| {
            let cells = rows.iter().map(|row| of(row).chars().count());
            cells.chain(iter::once(title.len())).max().unwrap_or(0).min(LONGEST)
        };
        let in_container = rows.iter().any(|row| row.container.is_some());
        Self {
            pid: width("PID", &|row| row.pid.to_string()),
            name: width("NAME", &name),
            state: width("STATE", &|row| state(row).to_owned()),
            runtime: width("RUNTIME", &runtime),
            user: width("USER", &user),
            container: in_container.then(|| width("CONTAINER", &container)),
            columns,
        }
    }

    /// For rows of which most are still to come.
    pub(super) fn of_unknown(columns: Option<usize>) -> Self {
        Self { pid: 8, name: 20, state: 9, runtime: 9, user: 8, container: None, columns }
    }

    /// The first line. `lead`: what stands before every line.
    pub(super) fn heading(&self, lead: &str) -> String {
        let titles = ["PID", "NAME", "STATE", "RUNTIME", "USER", "CONTAINER", "COMMAND LINE"];
        let line = cut(format!("{lead}{}", self.cells(titles)), self.columns);
        format!("{HEADING}{line}{HEADING:#}\n")
    }

    pub(super) fn line(&self, lead: &str, row: &Row<'_>) -> String {
        let (name, runtime, user, container) = (name(row), runtime(row), user(row), container(row));
        let command_line = Clean(row.command_line).to_string();
        let pid = row.pid.to_string();
        let cells = [&*pid, &name, state(row), &runtime, &user, &container, &command_line];
        let mut line = cut(format!("{lead}{}", self.cells(cells)), self.columns);
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }

    fn cells(&self, [pid, name, state, runtime, user, container, command_line]: [&str; 7]) -> String {
        let container = match self.container {
            Some(width) => format!("{container:<width$}  "),
            None => String::new(),
        };
        format!(
            "{pid:>p$}  {name:<n$}  {state:<s$}  {runtime:<r$}  {user:<u$}  {container}{command_line}",
            p = self.pid,
            n = self.name,
            s = self.state,
            r = self.runtime,
            u = self.user,
        )
    }
}

fn name(row: &Row<'_>) -> String {
    Clean(row.name).to_string()
}

/// In one word; in those of `doctor` where it can't be reached.
fn state(row: &Row<'_>) -> &'static str {
    match (row.reason, row.suspended) {
        (Some(reason), _) => reason,
        (None, Some(true)) => "suspended",
        (None, _) if row.reachable => "running",
        (None, _) => "-",
    }
}

fn runtime(row: &Row<'_>) -> String {
    Clean(row.runtime_version.unwrap_or(row.kind)).to_string()
}

fn user(row: &Row<'_>) -> String {
    Clean(row.user).to_string()
}

fn container(row: &Row<'_>) -> String {
    row.container.map_or_else(String::new, |id| id.get(..12).unwrap_or(id).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(pid: u32, name: &'a str, command_line: &'a str) -> Row<'a> {
        Row {
            pid,
            kind: "dotnet",
            name,
            command_line,
            runtime_version: Some("10.0.12"),
            arch: Some("x64"),
            user: "www-data",
            container: None,
            suspended: Some(false),
            reachable: true,
            reason: None,
            socket: None,
        }
    }

    fn shown(rows: &[Row<'_>], columns: Option<usize>) -> String {
        let table = Table::of(rows, columns);
        rows.iter().fold(table.heading(""), |text, row| text + &table.line("", row))
    }

    #[test]
    fn a_table_is_as_wide_as_what_is_in_it() {
        let mut rows = [
            row(7, "web", "dotnet web.dll --urls http://localhost"),
            row(12_345, "wörker\x1b", "/srv/worker/worker --queue mail --verbose"),
            row(99, "java", "java -jar x.jar"),
            row(100, "MyService", ""),
        ];
        rows[1].suspended = Some(true);
        (rows[2].kind, rows[2].runtime_version, rows[2].reachable) = ("jvm", None, false);
        let container = "0123456789abcdef".repeat(4);
        (rows[3].reachable, rows[3].reason, rows[3].container) = (false, Some("busy"), Some(&*container));
        let text = anstream::adapter::strip_str(&shown(&rows, None)).to_string();
        insta::assert_snapshot!(text, @r"
          PID  NAME          STATE      RUNTIME  USER      CONTAINER     COMMAND LINE
            7  web           running    10.0.12  www-data                dotnet web.dll --urls http://localhost
        12345  wörker\u{1b}  suspended  10.0.12  www-data                /srv/worker/worker --queue mail --verbose
           99  java          -          jvm      www-data                java -jar x.jar
          100  MyService     busy       10.0.12  www-data  0123456789ab
        ");
        let text = anstream::adapter::strip_str(&shown(&rows[..3], Some(60))).to_string();
        insta::assert_snapshot!(text, @r"
          PID  NAME          STATE      RUNTIME  USER      COMMAND …
            7  web           running    10.0.12  www-data  dotnet w…
        12345  wörker\u{1b}  suspended  10.0.12  www-data  /srv/wor…
           99  java          -          jvm      www-data  java -ja…
        ");
        assert!(text.lines().all(|line| line.chars().count() <= 60));
    }
}
