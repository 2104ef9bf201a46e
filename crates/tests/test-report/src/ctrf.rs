//! CTRF 1.0, the Common Test Report Format: JSON (<https://ctrf.io>).
//!
//! | CTRF | from |
//! |---|---|
//! | `summary` | the totals; `flaky`; a module that did not complete successfully counts as a failed test, and is one, or else the run |
//! | `tests[].id` | derived from the module's name, framework, architecture and the uid: stable across runs |
//! | `status` | `passed`, `skipped`; `other` for failures in quarantine; `failed` for all others |
//! | `rawStatus` | the state: passed, failed, skipped, error, timeout, cancelled |
//! | `duration`, `start`, `stop` | milliseconds, of the last attempt; start and stop if known |
//! | `suite` | module with framework and architecture, then the class |
//! | `message`, `trace` | reason or first message; exceptions with stacks, expected and actual |
//! | `retries`, `retryAttempts`, `flaky` | the attempts before the last one, from 1 |
//! | `tags`, `labels` | traits without and with a value |
//! | `stdout`, `stderr` | a line an item |
//! | `attachments` | artifacts |
//! | `filePath`, `line` | location, if known |
//! | `extra` | `uid`; `quarantined`; of the results: command line, exit code, interruption, modules |

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use crate::source::{self, Broken};
use crate::{Artifact, Attempt, Module, Source, TestOutcome, TestResult, id, json, text, time};

/// Writes the run as CTRF.
///
/// Returns errors of the writer and of the source.
pub fn write(source: &impl Source, mut w: impl Write) -> io::Result<()> {
    let run = source.run();
    let finished = time::after(run.started, run.duration_ns);
    let head = Head {
        report_format: "CTRF",
        spec_version: "1.0.0",
        report_id: id::run(run).to_string(),
        timestamp: time::timestamp(finished),
        generated_by: format!("{} {}", run.runner, run.version),
    };
    let totals = source.all_totals()?;
    let broken = source::broken(source)?;
    let more = broken.len() as u64;
    let summary = Summary {
        tests: totals.total() + more,
        passed: totals.passed,
        failed: totals.failures() + more,
        skipped: totals.skipped,
        pending: 0,
        other: totals.quarantined,
        flaky: totals.flaky,
        start: time::millis(run.started),
        stop: time::millis(finished),
        duration: time::whole_millis(run.duration_ns),
    };
    let runner = if run.runner.is_empty() { text::UNNAMED } else { &run.runner };
    let tool = Tool { name: runner, version: &run.version };

    // There may be too many tests for one value, so the surrounding JSON is written manually.
    let mut bytes = Vec::new();
    json::write(&mut bytes, &head)?;
    w.write_all(bytes.strip_suffix(b"}").unwrap_or(&bytes))?;
    w.write_all(b",\"results\":{\"tool\":")?;
    json::write(&mut w, &tool)?;
    w.write_all(b",\"summary\":")?;
    json::write(&mut w, &summary)?;
    w.write_all(b",\"tests\":[")?;
    let mut separator = "\n";
    let mut write = |w: &mut dyn Write, test: &Test<'_>| {
        w.write_all(std::mem::replace(&mut separator, ",\n").as_bytes())?;
        json::write(w, test)
    };
    for one in broken.iter().filter(|one| one.number.is_none()) {
        write(&mut w, &broken_one(one))?;
    }
    for (number, module) in source.modules().iter().enumerate() {
        for one in broken.iter().filter(|one| one.number == Some(number)) {
            write(&mut w, &broken_one(one))?;
        }
        for index in 0..source.count(number) {
            write(&mut w, &test(module, &*source.result(number, index)?))?;
        }
    }
    w.write_all(b"\n],\"extra\":")?;
    let extra = RunExtra {
        command: &run.command,
        exit_code: run.exit_code,
        interrupted: run.interrupted.as_deref(),
        modules: source.modules().iter().map(ModuleExtra::of).collect(),
    };
    json::write(&mut w, &extra)?;
    w.write_all(b"}}\n")?;
    w.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    report_format: &'static str,
    spec_version: &'static str,
    report_id: String,
    timestamp: String,
    generated_by: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct Summary {
    tests: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
    other: u64,
    flaky: u64,
    start: i64,
    stop: i64,
    duration: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunExtra<'a> {
    command: &'a [String],
    exit_code: i32,
    interrupted: Option<&'a str>,
    modules: Vec<ModuleExtra<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModuleExtra<'a> {
    path: &'a str,
    framework: &'a str,
    architecture: &'a str,
    duration: u64,
    exit_code: Option<i32>,
    messages: Vec<String>,
    attachments: Vec<Attachment<'a>>,
}

impl<'a> ModuleExtra<'a> {
    fn of(module: &'a Module) -> Self {
        let message = |m: &crate::Message| format!("{}: {}", m.level.name(), text::plain(&m.text));
        Self {
            path: &module.path,
            framework: &module.framework,
            architecture: &module.architecture,
            duration: time::whole_millis(module.duration_ns),
            exit_code: module.exit_code,
            messages: module.messages.iter().map(message).collect(),
            attachments: attachments(&module.artifacts),
        }
    }
}

/// A test; missing properties are omitted.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    id: String,
    name: String,
    status: &'static str,
    duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<i64>,
    suite: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    trace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    raw_status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, Label<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<&'a str>,
    retries: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_attempts: Vec<Retry<'a>>,
    flaky: bool,
    #[serde(skip_serializing_if = "Lines::is_empty")]
    stdout: Lines<'a>,
    #[serde(skip_serializing_if = "Lines::is_empty")]
    stderr: Lines<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment<'a>>,
    extra: Extra<'a>,
}

#[derive(Default, Serialize)]
struct Extra<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quarantined: bool,
}

/// The values of a trait. Usually there is one.
#[derive(Serialize)]
#[serde(untagged)]
enum Label<'a> {
    One(&'a str),
    Several(Vec<&'a str>),
}

#[derive(Serialize)]
struct Retry<'a> {
    attempt: usize,
    status: &'static str,
    duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    trace: String,
    #[serde(skip_serializing_if = "Lines::is_empty")]
    stdout: Lines<'a>,
    #[serde(skip_serializing_if = "Lines::is_empty")]
    stderr: Lines<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attachment<'a> {
    name: &'a str,
    content_type: &'static str,
    path: &'a str,
}

fn test<'a>(module: &Module, result: &'a TestResult) -> Test<'a> {
    let last = &result.last;
    let mut labels = BTreeMap::new();
    for t in result.traits.iter().filter(|t| !t.value.is_empty()) {
        labels
            .entry(t.key.as_str())
            .and_modify(|label| match label {
                Label::One(first) => *label = Label::Several(vec![*first, &t.value]),
                Label::Several(values) => values.push(&t.value),
            })
            .or_insert(Label::One(t.value.as_str()));
    }
    let location = result.location.as_ref();
    Test {
        id: id::test(module, result).to_string(),
        name: text::name(result).into_owned(),
        status: if result.is_forgiven() { "other" } else { status(last.state) },
        duration: time::whole_millis(last.time_ns()),
        start: last.started.map(time::millis),
        stop: last.started.map(|at| time::millis(time::after(at, last.time_ns()))),
        suite: std::iter::once(module.title()).chain(result.class()).collect(),
        message: last.message().map(|message| text::plain(message).into_owned()),
        trace: trace(last),
        line: location.and_then(|at| at.line),
        raw_status: last.state.name(),
        tags: result.traits.iter().filter(|t| t.value.is_empty()).map(|t| t.key.as_str()).collect(),
        labels,
        file_path: location.map(|at| at.file.as_str()),
        retries: result.earlier.len(),
        retry_attempts: (1..).zip(&result.earlier).map(|(number, attempt)| retry(number, attempt)).collect(),
        flaky: result.is_flaky(),
        stdout: Lines(&last.stdout),
        stderr: Lines(&last.stderr),
        attachments: attachments(&result.artifacts),
        extra: Extra { uid: Some(&result.uid), quarantined: result.quarantined },
    }
}

/// Converts a broken module or run to a failed test.
fn broken_one<'a>(broken: &'a Broken<'_>) -> Test<'a> {
    let module = &*broken.module;
    let started = module.started;
    Test {
        id: id::test(module, &TestResult::default()).to_string(),
        name: broken.name.clone(),
        status: "failed",
        raw_status: "error",
        duration: time::whole_millis(module.duration_ns),
        start: started.map(time::millis),
        stop: started.map(|at| time::millis(time::after(at, module.duration_ns))),
        suite: vec![module.title()],
        message: Some(text::plain(&broken.error).into_owned()),
        stdout: Lines(&module.stdout),
        stderr: Lines(&module.stderr),
        ..Test::default()
    }
}

fn retry(number: usize, attempt: &Attempt) -> Retry<'_> {
    Retry {
        attempt: number,
        status: status(attempt.state),
        duration: time::whole_millis(attempt.time_ns()),
        message: attempt.message().map(|message| text::plain(message).into_owned()),
        trace: trace(attempt),
        stdout: Lines(&attempt.stdout),
        stderr: Lines(&attempt.stderr),
    }
}

fn status(state: TestOutcome) -> &'static str {
    match state {
        TestOutcome::Passed => "passed",
        TestOutcome::Skipped => "skipped",
        TestOutcome::Failed | TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => "failed",
    }
}

fn trace(attempt: &Attempt) -> String {
    text::plain(&attempt.details()).trim_end().to_owned()
}

/// A text that is serialized as a list of its lines, without copies.
#[derive(Default)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut lines = serializer.serialize_seq(None)?;
        for line in self.0.lines() {
            let line = text::plain(line);
            if line.contains('\n') {
                // A single carriage return ends a line too.
                line.lines().try_for_each(|part| lines.serialize_element(part))?;
            } else {
                lines.serialize_element(&line)?;
            }
        }
        lines.end()
    }
}

fn attachments(artifacts: &[Artifact]) -> Vec<Attachment<'_>> {
    let attachment = |artifact| {
        let artifact: &Artifact = artifact;
        Attachment { name: artifact.title(), content_type: artifact.content_type(), path: &artifact.path }
    };
    artifacts.iter().map(attachment).collect()
}
