//! `runtap doctor`

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use runtap_diag::doctor::{Finding, Severity};
use runtap_target::{Examined, Patient};
use serde::Serialize;

use super::target::examine;
use crate::cli::Doctor;
use crate::exit;
use crate::output::{Clean, DIM, HEADING, Output};

const BAD: Style = AnsiColor::Red.on_default().bold();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const FIX: Style = AnsiColor::Cyan.on_default();

/// `runtap.doctor/1`. Without a process `pid` and `reachable` are null, `findings` are the machine's.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    subject: Subject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Vec<Subject<'a>>>,
}

#[derive(Serialize)]
struct Subject<'a> {
    pid: Option<u32>,
    name: Option<&'a str>,
    reachable: Option<bool>,
    findings: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    code: &'static str,
    severity: &'static str,
    detail: &'a str,
    fix: &'a str,
}

fn subject(patient: &Patient) -> Subject<'_> {
    Subject {
        pid: Some(patient.examination.facts.pid),
        name: (!patient.name.is_empty()).then_some(&*patient.name),
        reachable: Some(patient.diagnosis.reachable),
        findings: rows(&patient.diagnosis.findings),
    }
}

pub(super) async fn run(options: &Doctor, output: Output) -> anyhow::Result<u8> {
    match examine(&options.target, options.all.all, output).await? {
        Examined::Named(patients) => {
            let output = if patients.len() > 1 { output.one_of_several() } else { output };
            let codes =
                patients.iter().map(|patient| one(patient, output)).collect::<anyhow::Result<Vec<_>>>()?;
            // The first that can't be reached decides.
            Ok(codes.into_iter().find(|code| *code != exit::OK).unwrap_or(exit::OK))
        }
        Examined::All(patients, machine) => all(&patients, &machine, output),
    }
}

fn one(patient: &Patient, output: Output) -> anyhow::Result<u8> {
    for step in patient.examination.facts.steps() {
        output.detail(format_args!("looked at {step}"));
    }
    if output.json() {
        let subject = subject(patient);
        output.document(&Document { schema: "runtap.doctor/1", subject, processes: None })?;
    } else {
        output.text(text(patient))?;
    }
    Ok(if patient.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

/// Every process that looks like .NET, and the machine.
fn all(patients: &[Patient], machine: &[Finding], output: Output) -> anyhow::Result<u8> {
    if output.json() {
        let processes = Some(patients.iter().map(subject).collect());
        let subject = Subject { pid: None, name: None, reachable: None, findings: rows(machine) };
        output.document(&Document { schema: "runtap.doctor/1", subject, processes })?;
    } else {
        output.text(overview(patients, machine))?;
    }
    Ok(exit::OK)
}

fn rows(findings: &[Finding]) -> Vec<Row<'_>> {
    findings
        .iter()
        .map(|finding| Row {
            code: finding.code.name(),
            severity: finding.severity.name(),
            detail: &finding.detail,
            fix: &finding.fix,
        })
        .collect()
}

fn text(patient: &Patient) -> String {
    let mut text = format!("{HEADING}process {}", patient.examination.facts.pid);
    // Writing to a String can't fail.
    if !patient.name.is_empty() {
        let _ = write!(text, " ({})", Clean(&patient.name));
    }
    let state = if patient.diagnosis.reachable { "answers" } else { "can't be reached" };
    let _ = writeln!(text, " {state}{HEADING:#}");
    write_findings(&mut text, &patient.diagnosis.findings);
    if patient.diagnosis.findings.is_empty() {
        let _ = writeln!(text, "  {GOOD}nothing is wrong with it{GOOD:#}");
    }
    text
}

fn overview(patients: &[Patient], findings: &[Finding]) -> String {
    let mut text = String::new();
    if patients.is_empty() {
        text.push_str("no process looks like .NET; 'runtap demo' has a program built in\n");
    } else {
        let width = patients.iter().map(|it| Clean(&it.name).to_string().chars().count()).max().unwrap_or(0);
        let width = width.max(4);
        let _ = writeln!(text, "{HEADING}{:>8}  {:<width$}  STATE{HEADING:#}", "PID", "NAME");
        for patient in patients {
            let name = Clean(&patient.name).to_string();
            let _ = write!(text, "{:>8}  {name:<width$}  ", patient.examination.facts.pid);
            let told = patient.diagnosis.findings.iter().filter(|it| it.severity != Severity::Info);
            let told: Vec<&Finding> = told.collect();
            match (told.first(), patient.diagnosis.reachable) {
                (None, true) => {
                    let _ = writeln!(text, "{GOOD}answers{GOOD:#}");
                }
                (None, false) => {
                    let _ = writeln!(text, "{BAD}does not answer{BAD:#}");
                }
                (Some(first), _) => {
                    let style = style(first.severity);
                    let codes: Vec<&str> = told.iter().map(|finding| finding.code.name()).collect();
                    let detail = Clean(&first.detail);
                    let _ = writeln!(text, "{style}{}{style:#}: {detail}", codes.join(", "));
                }
            }
        }
        let _ = writeln!(text, "{DIM}'runtap doctor PID' shows details and fixes{DIM:#}");
    }
    let _ = writeln!(text, "\n{HEADING}this machine{HEADING:#}");
    write_findings(&mut text, findings);
    if findings.is_empty() {
        let _ = writeln!(text, "  {GOOD}nothing is wrong with it{GOOD:#}");
    }
    text
}

fn write_findings(text: &mut String, findings: &[Finding]) {
    for finding in findings {
        let style = style(finding.severity);
        let (code, detail, fix) = (finding.code, Clean(&finding.detail), Clean(&finding.fix));
        let _ = writeln!(text, "  {style}{code}{style:#}  {detail}");
        let _ = writeln!(text, "    {FIX}fix:{FIX:#} {fix}");
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => DOUBTFUL,
        Severity::Info => DIM,
    }
}
