//! Problems of processes and of the machine: `runtap.doctor/1` (docs/troubleshooting.md) and its text.

use std::io;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::{Clean, Print, TextOptions};

const BAD: Style = AnsiColor::Red.on_default().bold();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const FIX: Style = AnsiColor::Cyan.on_default();
/// Severity of findings that are not problems.
const INFO: &str = "info";
/// State of a Java program without problems, which is not asked for a response unless it listens already.
const ATTACHABLE: &str = "is a Java program that can be attached to";

/// A finding.
#[derive(Debug, Clone, Serialize)]
pub struct FindingRow<'a> {
    /// Short identifier of the finding.
    pub code: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// Description in one sentence.
    pub detail: &'a str,
    /// What to do about it.
    pub fix: String,
}

/// An examined process, or the machine, for which all fields but the findings are `None`.
#[derive(Debug, Clone, Serialize)]
pub struct Examined<'a> {
    /// Process id.
    pub pid: Option<u32>,
    /// Name of the process.
    pub name: Option<&'a str>,
    /// `dotnet` or `jvm`; `None` if unknown.
    pub kind: Option<&'static str>,
    /// Whether its runtime responds; for a Java program, whether an agent can be attached.
    pub reachable: Option<bool>,
    /// Findings, the most severe first.
    pub findings: Vec<FindingRow<'a>>,
}

/// The document `runtap.doctor/1` for one process, or for all processes and the machine.
#[derive(Debug, Serialize)]
pub struct FindingsDocument<'a> {
    schema: &'static str,
    #[serde(flatten)]
    subject: Examined<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Vec<Examined<'a>>>,
    /// Text to print if there are no processes.
    #[serde(skip)]
    empty: &'a str,
}

impl<'a> FindingsDocument<'a> {
    /// Creates the document for one process.
    pub fn of(process: Examined<'a>) -> Self {
        Self { schema: "runtap.doctor/1", subject: process, processes: None, empty: "" }
    }

    /// Creates the document for all processes and the machine. `empty` is printed if there are no processes.
    pub fn of_all(processes: Vec<Examined<'a>>, machine: Vec<FindingRow<'a>>, empty: &'a str) -> Self {
        let machine = Examined { pid: None, name: None, kind: None, reachable: None, findings: machine };
        Self { schema: "runtap.doctor/1", subject: machine, processes: Some(processes), empty }
    }
}

impl Print for FindingsDocument<'_> {
    /// `options.more` tells how to get the details of a process.
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let heading = options.heading();
        let Some(processes) = &self.processes else {
            write!(out, "{heading}process {}", self.subject.pid.unwrap_or_default())?;
            if let Some(name) = self.subject.name {
                write!(out, " ({})", Clean(name))?;
            }
            let state = match (self.subject.reachable, self.subject.is_jvm()) {
                (Some(true), false) => "is responding",
                (_, false) => "cannot be reached",
                (Some(true), true) => ATTACHABLE,
                (_, true) => "cannot be attached to",
            };
            writeln!(out, " {state}{heading:#}")?;
            return self.subject.print_findings(out, options);
        };
        if processes.is_empty() {
            writeln!(out, "{}", self.empty)?;
        } else {
            let name = |it: &Examined<'_>| Clean(it.name.unwrap_or_default()).to_string();
            let width = processes.iter().map(|it| name(it).chars().count()).max().unwrap_or(0).max(4);
            writeln!(out, "{heading}{:>8}  {:<width$}  STATE{heading:#}", "PID", "NAME")?;
            for process in processes {
                write!(out, "{:>8}  {:<width$}  ", process.pid.unwrap_or_default(), name(process))?;
                process.print_state(out, options)?;
            }
            if let Some(more) = options.more {
                let dim = options.dim();
                writeln!(out, "{dim}{more}{dim:#}")?;
            }
        }
        writeln!(out, "\n{heading}this machine{heading:#}")?;
        self.subject.print_findings(out, options)
    }
}

impl Examined<'_> {
    fn is_jvm(&self) -> bool {
        self.kind == Some("jvm")
    }

    /// Prints one line with all codes and the first description.
    fn print_state(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let troubles: Vec<_> = self.findings.iter().filter(|finding| finding.severity != INFO).collect();
        let (style, text) = match (troubles.first(), self.reachable) {
            (None, Some(true)) if self.is_jvm() => (GOOD, ATTACHABLE.to_owned()),
            (None, Some(true)) => (GOOD, "is responding".to_owned()),
            (None, _) => (BAD, "is not responding".to_owned()),
            (Some(first), _) => {
                let codes: Vec<&str> = troubles.iter().map(|finding| finding.code).collect();
                let style = styled(options, severity_style(first.severity, options));
                return writeln!(out, "{style}{}{style:#}: {}", codes.join(", "), Clean(first.detail));
            }
        };
        let style = styled(options, style);
        writeln!(out, "{style}{text}{style:#}")
    }

    fn print_findings(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        if self.findings.is_empty() {
            let good = styled(options, GOOD);
            return writeln!(out, "  {good}No problems found.{good:#}");
        }
        for FindingRow { code, severity, detail, fix } in &self.findings {
            let (style, label) = (severity_style(severity, options), styled(options, FIX));
            writeln!(out, "  {style}{code}{style:#}  {}", Clean(detail))?;
            writeln!(out, "    {label}fix:{label:#} {}", Clean(fix))?;
        }
        Ok(())
    }
}

fn severity_style(severity: &str, options: &TextOptions<'_>) -> Style {
    match severity {
        "error" => styled(options, BAD),
        "warning" => styled(options, DOUBTFUL),
        _ => options.dim(),
    }
}

fn styled(options: &TextOptions<'_>, style: Style) -> Style {
    if options.styled { style } else { Style::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(document: &FindingsDocument<'_>) -> String {
        let mut text = Vec::new();
        let options = TextOptions { more: Some("'doctor PID' has details"), ..TextOptions::default() };
        document.print(&mut text, &options).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn process<'a>(pid: u32, name: &'a str, reachable: bool, findings: &[FindingRow<'a>]) -> Examined<'a> {
        let kind = Some(if name == "shop.Main" { "jvm" } else { "dotnet" });
        Examined {
            pid: Some(pid),
            name: Some(name),
            kind,
            reachable: Some(reachable),
            findings: findings.to_vec(),
        }
    }

    #[test]
    fn a_list_shows_the_worst_finding_and_a_single_process_shows_all() {
        let stale = FindingRow {
            code: "socket-stale",
            severity: "error",
            detail: "no listener",
            fix: "restart it".to_owned(),
        };
        let info =
            FindingRow { code: "container", severity: INFO, detail: "in one", fix: "nothing".to_owned() };
        let findings = [stale.clone(), info.clone()];
        let java = process(15, "shop.Main", true, &[]);
        let all = [process(7, "web", true, &[]), process(12, "worker", false, &findings), java];
        insta::assert_snapshot!(shown(&FindingsDocument::of_all(all.to_vec(), vec![info], "none")), @r"
             PID  NAME       STATE
               7  web        is responding
              12  worker     socket-stale: no listener
              15  shop.Main  is a Java program that can be attached to
        'doctor PID' has details

        this machine
          container  in one
            fix: nothing
        ");
        insta::assert_snapshot!(shown(&FindingsDocument::of(all[1].clone())), @r"
        process 12 (worker) cannot be reached
          socket-stale  no listener
            fix: restart it
          container  in one
            fix: nothing
        ");
        assert!(shown(&FindingsDocument::of_all(Vec::new(), Vec::new(), "none")).starts_with("none\n\n"));
    }
}
