//! JUnit XML, in the flat dialect of Jenkins and Surefire.
//!
//! | JUnit | from |
//! |---|---|
//! | `testsuites` | the run: `name` is the runner's, `time` the elapsed time |
//! | `testsuite` | a class of a module; tests without a class are in one named like the module |
//! | `testsuite/properties` | `module`, `framework`, `architecture` |
//! | `testcase` `name`, `classname`, `time` | display name, class (else the module's name), seconds of the last attempt |
//! | `testcase` `file`, `line` | location, if known |
//! | `properties` | `uid`, `trait.KEY`, `attempts` if more than one, `quarantined` |
//! | `skipped` | skipped, with the reason; a failure in quarantine, with its message |
//! | `failure` | failed: `message`, `type`; the body has exceptions with stacks, expected and actual |
//! | `error` | error, timeout, cancelled: likewise |
//! | `flakyFailure`, `flakyError` | earlier attempts of a test that passed (Surefire) |
//! | `rerunFailure`, `rerunError` | earlier attempts of a test that did not (Surefire) |
//! | `system-out` | standard output; and `[[ATTACHMENT\|PATH]]` for each artifact (Jenkins, GitLab) |
//! | `system-err` | standard error |
//!
//! A broken module has a suite with one `error`, because most readers support only test cases. Therefore `tests` and
//! `errors` may exceed the runner's own numbers by one for each such module, or for a broken run without broken
//! modules. Children of `testcase` are in the order properties, skipped, error, failure, earlier attempts, system-out,
//! system-err (testfx RFC 016).
//!
//! Jenkins' xUnit plugin rejects files that do not conform to its schema, `junit-10.xsd`. [`write_by_schema`] omits
//! what is not in that schema: `skipped` and `timestamp` of `testsuites`, and `file`, `line` and `properties` of a
//! `testcase`. If all tests of a suite are in one file, it is the suite's `file`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::time::SystemTime;

use crate::source::{self, Broken};
use crate::xml::{Pair, Xml};
use crate::{Artifact, Attempt, Module, Run, Source, TestOutcome, TestResult, text, time};

/// Writes the run as JUnit XML.
///
/// Returns errors of the writer and of the source.
pub fn write(source: &impl Source, w: impl Write) -> io::Result<()> {
    write_as(Dialect::Surefire, source, w)
}

/// Writes the run as JUnit XML that the schema `junit-10.xsd` of Jenkins' xUnit plugin allows.
///
/// Returns errors of the writer and of the source.
pub fn write_by_schema(source: &impl Source, w: impl Write) -> io::Result<()> {
    write_as(Dialect::Schema10, source, w)
}

/// A dialect of JUnit XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Surefire,
    Schema10,
}

fn write_as(dialect: Dialect, source: &impl Source, w: impl Write) -> io::Result<()> {
    let mut modules = Vec::with_capacity(source.modules().len());
    let mut all = Counts::default();
    for (number, module) in source.modules().iter().enumerate() {
        let suites = suites(source, number, module)?;
        for suite in &suites {
            all.add(&suite.counts);
        }
        modules.push(suites);
    }
    let broken = source::broken(source)?;
    for _ in &broken {
        all.add(&Counts::BROKEN);
    }
    let run = source.run();
    let mut xml = Xml::new(w)?;
    let [tests, failures, errors, skipped] = all.texts();
    let (seconds, started) = (time::seconds(run.duration_ns), time::timestamp(run.started));
    let mut attributes = vec![
        ("name", run.runner.as_str()),
        ("tests", &tests),
        ("failures", &failures),
        ("errors", &errors),
        ("skipped", &skipped),
        ("time", &seconds),
        ("timestamp", &started),
    ];
    if dialect == Dialect::Schema10 {
        attributes.retain(|(name, _)| !["skipped", "timestamp"].contains(name));
    }
    xml.open("testsuites", &attributes)?;
    for one in broken.iter().filter(|one| one.number.is_none()) {
        write_broken(&mut xml, run, one)?;
    }
    for (number, (module, suites)) in source.modules().iter().zip(&modules).enumerate() {
        for one in broken.iter().filter(|one| one.number == Some(number)) {
            write_broken(&mut xml, run, one)?;
        }
        for (place, suite) in suites.iter().enumerate() {
            let errors: Vec<_> = module.errors().filter(|_| place == 0).collect();
            write_suite(&mut xml, dialect, source, number, suite, &errors.join("\n"))?;
        }
    }
    xml.close("testsuites")?;
    xml.finish()
}

/// The tests of one class.
struct Suite {
    class: String,
    counts: Counts,
    time_ns: u64,
    started: Option<SystemTime>,
    /// The file of all its tests; `None` if unknown or if there are several files.
    file: Option<String>,
    /// The indexes of its results in the module.
    results: Vec<usize>,
}

#[derive(Default)]
struct Counts {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl Counts {
    const BROKEN: Self = Self { tests: 1, failures: 0, errors: 1, skipped: 0 };

    fn of(result: &TestResult) -> Self {
        let mut counts = Self { tests: 1, ..Self::default() };
        match Category::of(result) {
            Category::Passed => {}
            Category::Skipped => counts.skipped = 1,
            Category::Failure => counts.failures = 1,
            Category::Error => counts.errors = 1,
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
    }

    fn texts(&self) -> [String; 4] {
        [self.tests, self.failures, self.errors, self.skipped].map(|count| count.to_string())
    }
}

/// The JUnit category of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Category {
    Passed,
    Skipped,
    Failure,
    Error,
}

impl Category {
    fn of(result: &TestResult) -> Self {
        if result.is_forgiven() { Self::Skipped } else { Self::of_state(result.state()) }
    }

    fn of_state(state: TestOutcome) -> Self {
        match state {
            TestOutcome::Passed => Self::Passed,
            TestOutcome::Skipped => Self::Skipped,
            TestOutcome::Failed => Self::Failure,
            TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => Self::Error,
        }
    }
}

/// Returns the classes of a module in the order of first use.
fn suites(source: &impl Source, number: usize, module: &Module) -> io::Result<Vec<Suite>> {
    let mut suites: Vec<Suite> = Vec::new();
    let mut known = HashMap::new();
    for index in 0..source.count(number) {
        let result = source.result(number, index)?;
        let class = class(module, &result);
        let file = result.location.as_ref().map(|at| at.file.as_str());
        let at = match known.entry(class) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let class = entry.key().clone();
                let counts = Counts::default();
                let file = file.map(str::to_owned);
                suites.push(Suite { class, counts, time_ns: 0, started: None, file, results: Vec::new() });
                *entry.insert(suites.len() - 1)
            }
        };
        if let Some(suite) = suites.get_mut(at) {
            suite.counts.add(&Counts::of(&result));
            suite.time_ns = suite.time_ns.saturating_add(result.last.time_ns());
            suite.started = [suite.started, result.last.started].into_iter().flatten().min();
            suite.file.take_if(|of_suite| Some(of_suite.as_str()) != file);
            suite.results.push(index);
        }
    }
    Ok(suites)
}

fn class(module: &Module, result: &TestResult) -> String {
    let class = result.class().unwrap_or_else(|| module.name.clone());
    text::line(&class).into_owned()
}

fn write_suite<W: Write>(
    xml: &mut Xml<W>,
    dialect: Dialect,
    source: &impl Source,
    number: usize,
    suite: &Suite,
    errors: &str,
) -> io::Result<()> {
    let Some(module) = source.modules().get(number) else { return Ok(()) };
    let started = suite.started.or(module.started).unwrap_or_else(|| source.run().started);
    let file = suite.file.as_deref().filter(|_| dialect == Dialect::Schema10);
    open_suite(xml, module, &suite.class, &suite.counts, suite.time_ns, started, file)?;
    for &index in &suite.results {
        write_case(xml, dialect, &*source.result(number, index)?, &suite.class)?;
    }
    outputs(xml, "", errors, &[])?;
    xml.close("testsuite")
}

fn open_suite<W: Write>(
    xml: &mut Xml<W>,
    module: &Module,
    name: &str,
    counts: &Counts,
    time_ns: u64,
    started: SystemTime,
    file: Option<&str>,
) -> io::Result<()> {
    let [tests, failures, errors, skipped] = counts.texts();
    let (seconds, started) = (time::seconds(time_ns), time::timestamp(started));
    let mut attributes = vec![
        ("name", name),
        ("tests", tests.as_str()),
        ("failures", &failures),
        ("errors", &errors),
        ("skipped", &skipped),
        ("time", &seconds),
        ("timestamp", &started),
    ];
    attributes.extend(file.map(|file| ("file", file)));
    xml.open("testsuite", &attributes)?;
    let told =
        [("module", &module.path), ("framework", &module.framework), ("architecture", &module.architecture)];
    properties(xml, told.into_iter().filter(|(_, value)| !value.is_empty()))
}

/// Writes the suite of a broken module or run.
fn write_broken<W: Write>(xml: &mut Xml<W>, run: &Run, broken: &Broken<'_>) -> io::Result<()> {
    let module = &*broken.module;
    let started = broken.started(run);
    open_suite(xml, module, &module.name, &Counts::BROKEN, module.duration_ns, started, None)?;
    let seconds = time::seconds(module.duration_ns);
    xml.open("testcase", &[("name", &broken.name), ("classname", &module.name), ("time", &seconds)])?;
    let body = module.exit_code.map_or_else(String::new, |code| format!("Exit code: {code}"));
    xml.text("error", &[("message", &broken.error), ("type", TestOutcome::Error.name())], &body)?;
    outputs(xml, &module.stdout, &module.stderr, &[])?;
    xml.close("testcase")?;
    xml.close("testsuite")
}

fn write_case<W: Write>(
    xml: &mut Xml<W>,
    dialect: Dialect,
    result: &TestResult,
    class: &str,
) -> io::Result<()> {
    let is_full = dialect == Dialect::Surefire;
    let name = text::name(result);
    let seconds = time::seconds(result.last.time_ns());
    let line = result.location.as_ref().and_then(|at| at.line).map(|line| line.to_string());
    let mut attributes: Vec<Pair<'_>> = vec![("name", &name), ("classname", class), ("time", &seconds)];
    if is_full {
        attributes.extend(result.location.as_ref().map(|at| ("file", at.file.as_str())));
        attributes.extend(line.as_deref().map(|line| ("line", line)));
    }
    xml.open("testcase", &attributes)?;
    if is_full {
        let mut told = vec![("uid".to_owned(), result.uid.clone())];
        told.extend(result.traits.iter().map(|t| (format!("trait.{}", t.key), t.value.clone())));
        if !result.earlier.is_empty() {
            told.push(("attempts".to_owned(), (result.earlier.len() + 1).to_string()));
        }
        if result.quarantined {
            told.push(("quarantined".to_owned(), "true".to_owned()));
        }
        properties(xml, told.iter().map(|(key, value)| (key.as_str(), value)))?;
    }

    let last = &result.last;
    match Category::of(result) {
        Category::Passed => {}
        Category::Skipped if result.is_forgiven() => {
            let message = format!("in quarantine, {}: {}", last.state, last.message().unwrap_or_default());
            xml.text("skipped", &[("message", &message)], &last.details())?;
        }
        // Written only if there is a reason.
        Category::Skipped => match last.reason.as_deref().filter(|reason| !reason.is_empty()) {
            Some(reason) => xml.empty("skipped", &[("message", reason)])?,
            None => xml.empty("skipped", &[])?,
        },
        Category::Failure => xml.text("failure", &why(last), &last.details())?,
        Category::Error => xml.text("error", &why(last), &last.details())?,
    }
    for attempt in &result.earlier {
        earlier(xml, attempt, last.state == TestOutcome::Passed)?;
    }
    outputs(xml, &last.stdout, &last.stderr, &result.artifacts)?;
    xml.close("testcase")
}

/// Writes an earlier attempt. Attempts that passed are omitted.
fn earlier<W: Write>(xml: &mut Xml<W>, attempt: &Attempt, flaky: bool) -> io::Result<()> {
    let name = match (Category::of_state(attempt.state), flaky) {
        (Category::Passed | Category::Skipped, _) => return Ok(()),
        (Category::Failure, true) => "flakyFailure",
        (Category::Error, true) => "flakyError",
        (Category::Failure, false) => "rerunFailure",
        (Category::Error, false) => "rerunError",
    };
    xml.open(name, &why(attempt))?;
    xml.text("stackTrace", &[], &attempt.details())?;
    outputs(xml, &attempt.stdout, &attempt.stderr, &[])?;
    xml.close(name)
}

fn why(attempt: &Attempt) -> Vec<Pair<'_>> {
    let mut attributes = vec![("message", attempt.message().unwrap_or_default())];
    // Some readers require a type, which a test that timed out does not have.
    attributes.push(("type", attempt.exception_type().unwrap_or_else(|| attempt.state.name())));
    attributes
}

fn properties<'a, W: Write>(
    xml: &mut Xml<W>,
    properties: impl Iterator<Item = (&'a str, &'a String)>,
) -> io::Result<()> {
    xml.open("properties", &[])?;
    for (name, value) in properties {
        xml.empty("property", &[("name", name), ("value", value)])?;
    }
    xml.close("properties")
}

fn outputs<W: Write>(xml: &mut Xml<W>, stdout: &str, stderr: &str, artifacts: &[Artifact]) -> io::Result<()> {
    let mut attachments = String::new();
    for artifact in artifacts {
        // Each attachment needs its own line.
        if attachments.is_empty() && !stdout.is_empty() && !stdout.ends_with('\n') {
            attachments.push('\n');
        }
        attachments.extend(["[[ATTACHMENT|", &*text::line(&artifact.path), "]]\n"]);
    }
    for (name, output) in [("system-out", [stdout, &attachments]), ("system-err", [stderr, ""])] {
        if output.iter().any(|text| !text.is_empty()) {
            xml.texts(name, &[], &output)?;
        }
    }
    Ok(())
}
