//! The data of the page: an index of all tests for the list, then the details in chunks.
//!
//! Defines the format that `page.js` reads. Names are short and tests are arrays, because there may be 100,000 tests:
//! each element of `index.tests` is `[name, state, class, module, microseconds, flags]`, where `state` is an index in
//! [`TestOutcome::ALL`], `class` and `module` are indexes in `classes` and `modules`, and `flags` is 1 for flaky and 2 for
//! quarantined.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{Options, TESTS_PER_CHUNK};
use crate::{Artifact, Attempt, Module, Source, TestOutcome, TestResult, Totals, json, text, time, trouble};

const FLAKY: u8 = 1;
const QUARANTINED: u8 = 2;

pub(super) fn write(source: &impl Source, w: &mut impl Write, options: &Options) -> io::Result<()> {
    let places = in_order(source)?;
    write_index(source, w, &places)?;
    let mut budget = Budget { left: options.total, options: *options };
    for (chunk, places) in places.chunks(TESTS_PER_CHUNK).enumerate() {
        write!(w, "<script type=\"application/json\" id=\"details-{chunk}\">[")?;
        for (i, &(_, number, index)) in places.iter().enumerate() {
            let result = source.result(number, index)?;
            w.write_all(if i == 0 { b"\n" } else { b",\n" })?;
            embed(w, &Details::of(&result, &mut budget))?;
        }
        w.write_all(b"]</script>\n")?;
    }
    Ok(())
}

/// Returns all results as (rank, module, number), the most important first.
fn in_order(source: &impl Source) -> io::Result<Vec<(u8, usize, usize)>> {
    let mut places = Vec::new();
    for number in 0..source.modules().len() {
        for index in 0..source.count(number) {
            places.push((rank(&*source.result(number, index)?), number, index));
        }
    }
    places.sort_unstable();
    Ok(places)
}

fn rank(result: &TestResult) -> u8 {
    match result.state() {
        TestOutcome::Passed if result.is_flaky() => 2,
        TestOutcome::Passed => 4,
        TestOutcome::Skipped => 3,
        _ => u8::from(result.quarantined),
    }
}

fn write_index(source: &impl Source, w: &mut impl Write, places: &[(u8, usize, usize)]) -> io::Result<()> {
    let run = source.run();
    let totals: Vec<Totals> =
        (0..source.modules().len()).map(|number| source.totals(number)).collect::<io::Result<_>>()?;
    let head = Head {
        started: time::timestamp(run.started),
        duration: time::human(run.duration_ns),
        command: run.command.iter().map(|word| text::line(word).into_owned()).collect(),
        runner: format!("{} {}", run.runner, run.version),
        machine: text::line(&run.machine),
        exit_code: run.exit_code,
        interrupted: run.interrupted.as_deref().map(|why| text::plain(why).into_owned()),
        trouble: trouble(source)?.map(|why| text::plain(&why).into_owned()),
        totals: totals.iter().fold(Totals::default(), Totals::plus),
        chunk: TESTS_PER_CHUNK,
        modules: source
            .modules()
            .iter()
            .zip(&totals)
            .map(|(module, totals)| ModuleData::of(module, *totals))
            .collect(),
    };
    w.write_all(b"<script type=\"application/json\" id=\"head\">")?;
    embed(w, &head)?;
    w.write_all(b"</script>\n<script type=\"application/json\" id=\"index\">{\"tests\":[")?;
    let mut classes = Classes::default();
    for (i, &(_, number, index)) in places.iter().enumerate() {
        let result = source.result(number, index)?;
        let state = TestOutcome::ALL.iter().position(|state| *state == result.state()).unwrap_or_default();
        let class = classes.number(result.class().map(|class| text::line(&class).into_owned()));
        let flags =
            if result.is_flaky() { FLAKY } else { 0 } | if result.quarantined { QUARANTINED } else { 0 };
        w.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        let micros = result.last.time_ns() / 1000;
        embed(w, &(text::name(&result), state, class, number, micros, flags))?;
    }
    w.write_all(b"],\"classes\":")?;
    embed(w, &classes.names)?;
    w.write_all(b"}</script>\n")
}

/// Writes JSON with escaped `<`, which occurs only in strings.
fn embed(w: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut bytes = Vec::new();
    json::write(&mut bytes, value)?;
    for (i, part) in bytes.split(|byte| *byte == b'<').enumerate() {
        if i > 0 {
            w.write_all(b"\\u003c")?;
        }
        w.write_all(part)?;
    }
    Ok(())
}

/// The names of classes without duplicates. Number 0 is for tests without a class.
struct Classes {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Default for Classes {
    fn default() -> Self {
        Self { names: vec![String::new()], numbers: HashMap::new() }
    }
}

impl Classes {
    fn number(&mut self, name: Option<String>) -> usize {
        let Some(name) = name else { return 0 };
        let next = self.names.len();
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        })
    }
}

#[derive(Serialize)]
struct Head<'a> {
    started: String,
    duration: String,
    command: Vec<String>,
    runner: String,
    machine: Cow<'a, str>,
    exit_code: i32,
    interrupted: Option<String>,
    /// A problem that neither a test nor a module shows.
    trouble: Option<String>,
    totals: Totals,
    chunk: usize,
    modules: Vec<ModuleData<'a>>,
}

/// A module.
#[derive(Serialize)]
struct ModuleData<'a> {
    title: String,
    path: Cow<'a, str>,
    duration: String,
    exit_code: Option<i32>,
    error: Option<String>,
    stdout: String,
    stderr: String,
    messages: Vec<(&'static str, String)>,
    artifacts: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    failures: u64,
    totals: Totals,
}

impl<'a> ModuleData<'a> {
    fn of(module: &'a Module, totals: Totals) -> Self {
        // The end of the output explains a crash; the runner has kept only this part.
        let output = |output: &str| text::plain(output).into_owned();
        let messages = module.messages.iter();
        Self {
            title: text::line(&module.title()).into_owned(),
            path: text::line(&module.path),
            duration: time::human(module.duration_ns),
            exit_code: module.exit_code,
            error: module.error.as_deref().map(output),
            stdout: output(&module.stdout),
            stderr: output(&module.stderr),
            messages: messages.map(|m| (m.level.name(), output(&m.text))).collect(),
            artifacts: artifacts(&module.artifacts),
            failures: totals.failures(),
            totals,
        }
    }
}

fn artifacts(artifacts: &[Artifact]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    artifacts.iter().map(|it| (text::line(it.title()), text::line(&it.path))).collect()
}

/// The remaining budget for texts, in bytes.
struct Budget {
    left: usize,
    options: Options,
}

impl Budget {
    /// Truncates a text to `most` bytes and to the remaining budget. A truncated text ends with the number of missing
    /// bytes.
    fn take(&mut self, value: &str, most: usize) -> String {
        let value = text::plain(value);
        let end = value.floor_char_boundary(most.min(self.left));
        self.left -= end;
        let (kept, missing) = (value.get(..end).unwrap_or_default(), value.len() - end);
        if missing == 0 {
            return value.into_owned();
        }
        format!("{kept}\n[{missing} more bytes are not in this page]")
    }
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(rename = "u")]
    uid: Cow<'a, str>,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(rename = "t", skip_serializing_if = "Vec::is_empty")]
    traits: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(rename = "f", skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(flatten)]
    last: Execution,
    #[serde(rename = "h", skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Execution>,
}

/// An attempt.
#[derive(Serialize)]
struct Execution {
    #[serde(rename = "s")]
    state: usize,
    #[serde(rename = "d")]
    duration: String,
    #[serde(rename = "r", skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Type, message, stack.
    #[serde(rename = "x", skip_serializing_if = "Vec::is_empty")]
    exceptions: Vec<(String, String, String)>,
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
    #[serde(rename = "o", skip_serializing_if = "String::is_empty")]
    stdout: String,
    #[serde(rename = "w", skip_serializing_if = "String::is_empty")]
    stderr: String,
}

impl<'a> Details<'a> {
    fn of(result: &'a TestResult, budget: &mut Budget) -> Self {
        let place = result.location.as_ref();
        let line = |at: &crate::Location| at.line.map_or_else(String::new, |line| format!(":{line}"));
        Self {
            uid: text::line(&result.uid),
            place: place.map(|at| format!("{}{}", text::line(&at.file), line(at))),
            traits: result.traits.iter().map(|t| (text::line(&t.key), text::line(&t.value))).collect(),
            artifacts: artifacts(&result.artifacts),
            last: Execution::of(&result.last, budget),
            earlier: result.earlier.iter().map(|attempt| Execution::of(attempt, budget)).collect(),
        }
    }
}

impl Execution {
    fn of(attempt: &Attempt, budget: &mut Budget) -> Self {
        let most = if attempt.state.is_failure() { budget.options.failed } else { budget.options.passed };
        let exceptions = attempt.exceptions.iter().map(|exception| {
            let kind = text::line(&exception.type_name).into_owned();
            (kind, budget.take(&exception.message, most), budget.take(&exception.stack, most))
        });
        Self {
            state: TestOutcome::ALL.iter().position(|state| *state == attempt.state).unwrap_or_default(),
            duration: time::human(attempt.time_ns()),
            exceptions: exceptions.collect(),
            reason: budget.take(attempt.reason.as_deref().unwrap_or_default(), most),
            expected: attempt.expected.as_deref().map(|value| budget.take(value, most)),
            actual: attempt.actual.as_deref().map(|value| budget.take(value, most)),
            stdout: budget.take(&attempt.stdout, most),
            stderr: budget.take(&attempt.stderr, most),
        }
    }
}
