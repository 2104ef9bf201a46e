//! `runtap doctor`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use runtap_diag::doctor::{self, Answer, Diagnosis, Examination, Finding, Severity};
use runtap_discover::{Facts, System};
use runtap_record::{allow_many_files, in_a_thread};
use runtap_transport::Folder;
use serde::Serialize;

use super::named::{Whose, not_unique};
use super::target::{choose, name_of, user_without_name};
use crate::cli::{Doctor, Target};
use crate::exit::{self, expected};
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

/// A process that was looked at.
struct Patient {
    pid: u32,
    name: String,
    diagnosis: Diagnosis,
}

impl Patient {
    fn new(examination: &Examination) -> Self {
        Self { pid: examination.facts.pid, name: name(examination), diagnosis: examination.diagnose() }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            pid: Some(self.pid),
            name: (!self.name.is_empty()).then_some(&*self.name),
            reachable: Some(self.diagnosis.reachable),
            findings: rows(&self.diagnosis.findings),
        }
    }
}

pub(super) async fn run(options: &Doctor, output: Output) -> anyhow::Result<u8> {
    let system = System::current();
    let Target { word, options: target } = &options.target;
    if target.diagnostic_port.is_some() {
        let (pid, _) = choose(&options.target, output).await?.pids().await?;
        return one(&doctor::examine(&system, pid).await, output);
    }
    match (target.process_id, &target.name, word) {
        (Some(pid), ..) => one(&doctor::examine(&system, pid).await, output),
        (_, Some(name), _) => named(&system, name, target.user.as_deref(), options.all.all, output).await,
        // A number is a pid, anything else a name.
        (_, _, Some(word)) => match word.parse() {
            Ok(_pid) if target.user.is_some() => Err(user_without_name()),
            Ok(pid) => one(&doctor::examine(&system, pid).await, output),
            Err(_no_number) => named(&system, word, target.user.as_deref(), options.all.all, output).await,
        },
        _ if target.user.is_some() => Err(user_without_name()),
        _ => all(&system, output).await,
    }
}

/// Those of a name; the first that can't be reached decides on the exit code.
async fn named(
    system: &System,
    name: &str,
    user: Option<&str>,
    all: bool,
    output: Output,
) -> anyhow::Result<u8> {
    let found = by_name(system, name, user, all, output).await?;
    let output = if found.len() > 1 { output.one_of_several() } else { output };
    let codes =
        found.iter().map(|examination| one(examination, output)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(codes.into_iter().find(|code| *code != exit::OK).unwrap_or(exit::OK))
}

fn one(examination: &Examination, output: Output) -> anyhow::Result<u8> {
    for step in examination.facts.steps() {
        output.detail(format_args!("looked at {step}"));
    }
    let patient = Patient::new(examination);
    if output.json() {
        let subject = patient.subject();
        output.document(&Document { schema: "runtap.doctor/1", subject, processes: None })?;
    } else {
        output.text(text(&patient))?;
    }
    Ok(if patient.diagnosis.reachable { exit::OK } else { exit::NO_TARGET })
}

/// Every process that looks like .NET, and the machine.
async fn all(system: &System, output: Output) -> anyhow::Result<u8> {
    let patients: Vec<Patient> = examine_all(system, output).await?.iter().map(Patient::new).collect();
    let looking = system.clone();
    let (machine, leftovers) = in_a_thread(move || {
        let machine = looking.machine();
        let leftovers: Vec<PathBuf> =
            machine.leftovers.iter().filter(|path| is_dead(path)).cloned().collect();
        (machine, leftovers)
    })
    .await?;
    let findings = doctor::machine(&machine, &leftovers);
    if output.json() {
        let subject = Subject { pid: None, name: None, reachable: None, findings: rows(&findings) };
        let processes = Some(patients.iter().map(Patient::subject).collect());
        output.document(&Document { schema: "runtap.doctor/1", subject, processes })?;
    } else {
        output.text(overview(&patients, &findings))?;
    }
    Ok(exit::OK)
}

/// All of them, by name, then by pid. How long it takes to look at them is theirs to choose: signals are heard meanwhile.
async fn examine_all(system: &System, output: Output) -> anyhow::Result<Vec<Examination>> {
    let looking = system.clone();
    let found = in_a_thread(move || looking.dotnet_facts()).await?;
    if found.not_looked_at > 0 {
        output.warning(format_args!(
            "whether {} processes are .NET is not known: they, or others of their users, have more memory mappings than \
             are read; 'runtap doctor PID' looks at one alone",
            found.not_looked_at
        ));
    }
    // Each may have many sockets that look like its own.
    allow_many_files();
    let asked = doctor::ask_all(found.processes).await;
    let looking = system.clone();
    let mut examinations = in_a_thread(move || doctor::examine_asked(&looking, asked)).await?;
    examinations.sort_by_cached_key(|examination| (name(examination), examination.facts.pid));
    Ok(examinations)
}

/// The process that is called so, or all: by the kernel, by its files, or by the entry assembly that its runtime tells.
/// Nothing is changed here, and every user's are looked at unless one is given.
async fn by_name(
    system: &System,
    wanted: &str,
    user: Option<&str>,
    all: bool,
    output: Output,
) -> anyhow::Result<Vec<Examination>> {
    Whose(user).check()?;
    let mut found = examine_all(system, output).await?;
    if user.is_some() {
        found.retain(|it| Whose(user).is_meant(it.facts.uid, &it.facts.user));
    }
    let has_not_said =
        |it: &&Examination| it.facts.endpoint().is_some() && !matches!(it.answer, Answer::Answered(_));
    let silent: Vec<String> = found.iter().filter(has_not_said).map(|it| it.facts.pid.to_string()).collect();
    found.retain(|it| it.facts.comm == wanted || file_name(&it.facts) == wanted || name(it) == wanted);
    match found.len() {
        0 => {
            let mut message = format!("no process that looks like .NET is called '{wanted}'");
            if !silent.is_empty() {
                let _ = write!(message, "; not known, because they did not answer: {}", silent.join(", "));
            }
            let hint = "'runtap doctor' lists those that do; upper and lower case matter";
            Err(expected(exit::NO_TARGET, message, hint.to_owned()))
        }
        n if n == 1 || all => Ok(found),
        _ => {
            let row =
                |it: &Examination| (it.facts.pid, it.facts.user.clone(), it.facts.command_line.join(" "));
            let rows = found.iter().map(row);
            Err(not_unique(wanted, rows, "choose one with -p, or take them all with --all"))
        }
    }
}

/// Whether truly nobody listens on a socket: only then its file may be deleted. What a link leads to is not dialled.
fn is_dead(path: &Path) -> bool {
    let (folder, name) = (path.parent().map(Folder::open), path.file_name());
    matches!((folder, name), (Some(Ok(folder)), Some(name)) if folder.is_dead_socket(name))
}

/// What people call the process: its entry assembly, else the name of its file.
fn name(examination: &Examination) -> String {
    let told = match &examination.answer {
        Answer::Answered(Some(info)) => info.entry_assembly.clone().filter(|name| !name.is_empty()),
        _ => None,
    };
    told.unwrap_or_else(|| file_name(&examination.facts))
}

fn file_name(facts: &Facts) -> String {
    name_of(&facts.command_line, &facts.comm)
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
    let mut text = format!("{HEADING}process {}", patient.pid);
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
            let _ = write!(text, "{:>8}  {name:<width$}  ", patient.pid);
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
