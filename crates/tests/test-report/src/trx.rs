//! TRX, the test results file of Visual Studio (schema `http://microsoft.com/schemas/VisualStudio/TeamTest/2010`).
//!
//! | TRX | from |
//! |---|---|
//! | `TestRun` `id`, `name` | the run: an id of its start, machine and command line |
//! | `Times` | start and end of the run |
//! | `UnitTestResult` | a test, by its last attempt; a broken module, or else a broken run: one failed row each |
//! | `testId` | derived from the module's name, framework, architecture and the uid: stable across runs |
//! | `executionId` | derived from the run and the result's position in it |
//! | `outcome` | `Passed`; `NotExecuted` for skipped and for failures in quarantine; `Failed` for all others |
//! | `Output/StdOut`, `StdErr` | output; a skipped test's reason is the message of its `ErrorInfo` |
//! | `Output/ErrorInfo` | message with expected and actual; the stacks of all exceptions |
//! | `Output/TextMessages` | earlier attempts, one message each |
//! | `ResultFiles` | artifacts, with the paths they have |
//! | `UnitTest` `storage`, `TestMethod` | the module's path; class and method (else module name and display name) |
//! | `TestCategory` | traits; one with a value as `KEY=VALUE` |
//! | `Counters` | the rows; `timeout` is not in `failed`, as the platform counts; `notExecuted` is what has that outcome |
//! | `ResultSummary` `outcome` | `Aborted` for an interrupted run; `Failed` after any failure; otherwise `Completed` |
//! | `RunInfos` | problems of the run or a module, and warnings and errors of platform and framework |
//!
//! The outcome of an error, a time-out or a canceled test is `Failed`, as in the platform's own extension, because
//! readers support few other outcomes. The message contains the cause. Several modules are in one file: results with
//! definitions of different `storage`.
//!
//! A module that crashed may have no failed test, and many readers only look at rows and `Counters`. Therefore it has a
//! failed row named after it, as in JUnit and CTRF, and `total`, `executed` and `failed` exceed the runner's own
//! numbers by one for each such row. The `outcome` and a `RunInfo` are written too, as by VSTest for an aborted run.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use uuid::Uuid;

use crate::source;
use crate::xml::Xml;
use crate::{
    Attempt, Exception, Level, Module, Run, Source, TestOutcome, TestResult, Trait, id, text, time, trouble,
};

const NAMESPACE: &str = "http://microsoft.com/schemas/VisualStudio/TeamTest/2010";
/// The type of unit tests in VSTest.
const UNIT_TEST: &str = "13cdc9d9-ddb5-4fa4-a97d-d965ccfc6d4b";
/// VSTest's list of tests that belong to no list.
const NO_LIST: &str = "8c84fa94-04c1-424b-9868-57a2d4851a1d";
/// VSTest's list of all tests.
const ALL_LIST: &str = "19431567-8539-422a-85d7-44ee4e166bda";

/// Writes the run as TRX.
///
/// Returns errors of the writer and of the source.
pub fn write(source: &impl Source, w: impl Write) -> io::Result<()> {
    let run = source.run();
    let run_id = id::run(run);
    let mut xml = Xml::new(w)?;
    let started = time::timestamp(run.started);
    let name = format!("{} {started}", run.runner);
    xml.open("TestRun", &[("id", &run_id.to_string()), ("name", &name), ("xmlns", NAMESPACE)])?;
    let finished = time::timestamp(time::after(run.started, run.duration_ns));
    let times = [("creation", &*started), ("queuing", &started), ("start", &started), ("finish", &finished)];
    xml.empty("Times", &times)?;
    let settings = id::execution(run_id, usize::MAX, 0).to_string();
    xml.open("TestSettings", &[("name", "default"), ("id", &settings)])?;
    xml.empty("Deployment", &[("runDeploymentRoot", &run_id.to_string())])?;
    xml.close("TestSettings")?;

    let broken: Vec<_> = source::broken(source)?.into_iter().map(|it| Broken::new(it, run, run_id)).collect();
    let ids = results(&mut xml, source, run_id, &broken)?;
    definitions(&mut xml, source, run_id, &ids, &broken)?;
    entries(&mut xml, run_id, &ids, &broken)?;
    xml.open("TestLists", &[])?;
    xml.empty("TestList", &[("name", "Results Not in a List"), ("id", NO_LIST)])?;
    xml.empty("TestList", &[("name", "All Loaded Results"), ("id", ALL_LIST)])?;
    xml.close("TestLists")?;
    summary(&mut xml, source, broken.len() as u64)?;
    xml.close("TestRun")?;
    xml.finish()
}

/// The row of a broken module or run.
struct Broken<'a> {
    module: Cow<'a, Module>,
    result: TestResult,
    test: Uuid,
    execution: Uuid,
}

impl<'a> Broken<'a> {
    fn new(broken: source::Broken<'a>, run: &Run, run_id: Uuid) -> Self {
        let started = broken.started(run);
        let source::Broken { number, module, name, error } = broken;
        let last = Attempt {
            state: TestOutcome::Failed,
            started: Some(started),
            duration_ns: Some(i64::try_from(module.duration_ns).unwrap_or(i64::MAX)),
            exceptions: vec![Exception { message: error, ..Exception::default() }],
            stdout: module.stdout.clone(),
            stderr: module.stderr.clone(),
            ..Attempt::default()
        };
        Self {
            test: id::test(&module, &TestResult::default()),
            // No result has this index.
            execution: id::execution(run_id, number.unwrap_or(usize::MAX), usize::MAX),
            result: TestResult { name, last, ..TestResult::default() },
            module,
        }
    }
}

/// Writes the results, and returns the ids of the tests of each module.
fn results<W: Write>(
    xml: &mut Xml<W>,
    source: &impl Source,
    run_id: Uuid,
    broken: &[Broken<'_>],
) -> io::Result<Vec<Vec<Uuid>>> {
    let mut ids = Vec::with_capacity(source.modules().len());
    xml.open("Results", &[])?;
    for Broken { module, result, test, execution } in broken {
        write_result(xml, source.run(), module, result, *test, *execution)?;
    }
    for (number, module) in source.modules().iter().enumerate() {
        let mut of_module = Vec::with_capacity(source.count(number));
        for index in 0..source.count(number) {
            let result = source.result(number, index)?;
            let test = id::test(module, &result);
            of_module.push(test);
            write_result(xml, source.run(), module, &result, test, id::execution(run_id, number, index))?;
        }
        ids.push(of_module);
    }
    xml.close("Results")?;
    Ok(ids)
}

fn write_result<W: Write>(
    xml: &mut Xml<W>,
    run: &Run,
    module: &Module,
    result: &TestResult,
    test: Uuid,
    execution: Uuid,
) -> io::Result<()> {
    let last = &result.last;
    let started = last.started.or(module.started).unwrap_or(run.started);
    let execution = execution.to_string();
    let attributes = [
        ("executionId", execution.as_str()),
        ("testId", &test.to_string()),
        ("testName", &text::name(result)),
        ("computerName", machine(run)),
        ("duration", &time::clock(last.time_ns())),
        ("startTime", &time::timestamp(started)),
        ("endTime", &time::timestamp(time::after(started, last.time_ns()))),
        ("testType", UNIT_TEST),
        ("outcome", outcome(result)),
        ("testListId", NO_LIST),
        ("relativeResultsDirectory", &execution),
    ];
    xml.open("UnitTestResult", &attributes)?;
    xml.open("Output", &[])?;
    for (name, output) in [("StdOut", &last.stdout), ("StdErr", &last.stderr)] {
        if !output.is_empty() {
            xml.text(name, &[], output)?;
        }
    }
    if let Some(message) = message(result) {
        xml.open("ErrorInfo", &[])?;
        xml.text("Message", &[], &message)?;
        let stacks = last.stacks();
        if !stacks.is_empty() {
            xml.text("StackTrace", &[], &stacks)?;
        }
        xml.close("ErrorInfo")?;
    }
    if !result.earlier.is_empty() {
        xml.open("TextMessages", &[])?;
        for (number, attempt) in (1..).zip(&result.earlier) {
            xml.text("Message", &[], &earlier(number, attempt))?;
        }
        xml.close("TextMessages")?;
    }
    xml.close("Output")?;
    if !result.artifacts.is_empty() {
        xml.open("ResultFiles", &[])?;
        for artifact in &result.artifacts {
            xml.empty("ResultFile", &[("path", &artifact.path)])?;
        }
        xml.close("ResultFiles")?;
    }
    xml.close("UnitTestResult")
}

fn machine(run: &Run) -> &str {
    if run.machine.is_empty() { "unknown" } else { &run.machine }
}

fn outcome(result: &TestResult) -> &'static str {
    match result.state() {
        TestOutcome::Passed => "Passed",
        TestOutcome::Skipped => "NotExecuted",
        _ if result.quarantined => "NotExecuted",
        TestOutcome::Failed | TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => "Failed",
    }
}

/// Returns the text of `ErrorInfo/Message`, or `None` if the test passed.
fn message(result: &TestResult) -> Option<String> {
    let last = &result.last;
    let mut text = String::new();
    if result.is_forgiven() {
        text.extend(["in quarantine, ", last.state.name(), ": "]);
    }
    text.push_str(last.message()?);
    match last.state {
        TestOutcome::Timeout | TestOutcome::Cancelled | TestOutcome::Error
            if !text.contains(last.state.words()) =>
        {
            text = format!("{}: {text}", last.state.words());
        }
        _ => {}
    }
    for exception in last.exceptions.iter().skip(1) {
        text.extend(["\n---> ", &exception.type_name, ": ", &exception.message]);
    }
    for (label, value) in [("\nExpected: ", &last.expected), ("\nActual:   ", &last.actual)] {
        if let Some(value) = value {
            text.extend([label, value]);
        }
    }
    Some(text)
}

/// Formats an earlier attempt as one text.
fn earlier(number: usize, attempt: &Attempt) -> String {
    let took = time::human(attempt.time_ns());
    let mut out = format!("Attempt {number}: {} after {took}\n", attempt.state.words());
    let details = attempt.details();
    out.push_str(if details.is_empty() { attempt.message().unwrap_or_default() } else { &details });
    for (label, output) in [("\nStandard output\n", &attempt.stdout), ("\nStandard error\n", &attempt.stderr)]
    {
        if !output.is_empty() {
            out.extend([label, output]);
        }
    }
    out
}

/// Writes one definition for each test, even if it has several results.
fn definitions<W: Write>(
    xml: &mut Xml<W>,
    source: &impl Source,
    run_id: Uuid,
    ids: &[Vec<Uuid>],
    broken: &[Broken<'_>],
) -> io::Result<()> {
    let mut defined = HashSet::new();
    xml.open("TestDefinitions", &[])?;
    for Broken { module, result, test, execution } in broken {
        if defined.insert(*test) {
            define(xml, module, result, *test, *execution)?;
        }
    }
    for (number, (module, of_module)) in source.modules().iter().zip(ids).enumerate() {
        for (index, test) in of_module.iter().enumerate().filter(|(_, test)| defined.insert(**test)) {
            let result = source.result(number, index)?;
            define(xml, module, &result, *test, id::execution(run_id, number, index))?;
        }
    }
    xml.close("TestDefinitions")
}

fn define<W: Write>(
    xml: &mut Xml<W>,
    module: &Module,
    result: &TestResult,
    test: Uuid,
    execution: Uuid,
) -> io::Result<()> {
    let storage = text::line(&module.path);
    let name = text::name(result);
    xml.open("UnitTest", &[("name", &name), ("storage", &storage), ("id", &test.to_string())])?;
    traits(xml, result)?;
    xml.empty("Execution", &[("id", &execution.to_string())])?;
    let class = result.class().unwrap_or_else(|| module.name.clone());
    let method = result.method.as_deref().filter(|method| !method.is_empty());
    let attributes = [
        ("codeBase", &*storage),
        ("adapterTypeName", "executor://runtap"),
        ("className", &text::line(&class)),
        ("name", &text::line(method.unwrap_or(&name))),
    ];
    xml.empty("TestMethod", &attributes)?;
    xml.close("UnitTest")
}

/// Writes all traits as categories: VSTest writes no `Properties`, and some readers reject files with properties.
fn traits<W: Write>(xml: &mut Xml<W>, result: &TestResult) -> io::Result<()> {
    if result.traits.is_empty() {
        return Ok(());
    }
    xml.open("TestCategory", &[])?;
    for Trait { key, value } in &result.traits {
        let category = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
        xml.empty("TestCategoryItem", &[("TestCategory", &text::line(&category))])?;
    }
    xml.close("TestCategory")
}

fn entries<W: Write>(
    xml: &mut Xml<W>,
    run_id: Uuid,
    ids: &[Vec<Uuid>],
    broken: &[Broken<'_>],
) -> io::Result<()> {
    xml.open("TestEntries", &[])?;
    for Broken { test, execution, .. } in broken {
        entry(xml, *test, *execution)?;
    }
    for (number, of_module) in ids.iter().enumerate() {
        for (index, test) in of_module.iter().enumerate() {
            entry(xml, *test, id::execution(run_id, number, index))?;
        }
    }
    xml.close("TestEntries")
}

fn entry<W: Write>(xml: &mut Xml<W>, test: Uuid, execution: Uuid) -> io::Result<()> {
    let (test, execution) = (test.to_string(), execution.to_string());
    xml.empty("TestEntry", &[("testId", &test), ("executionId", &execution), ("testListId", NO_LIST)])
}

fn summary<W: Write>(xml: &mut Xml<W>, source: &impl Source, broken: u64) -> io::Result<()> {
    let (run, modules) = (source.run(), source.modules());
    let totals = source.all_totals()?;
    // The totals do not contain the number of time-outs in quarantine.
    let timeouts = if totals.quarantined == 0 { totals.timeout } else { count_timeouts(source)? };
    let failed = run.exit_code != 0 || totals.failures() > 0 || modules.iter().any(|m| m.error.is_some());
    let outcome = match failed {
        _ if run.interrupted.is_some() => "Aborted",
        true => "Failed",
        false => "Completed",
    };
    xml.open("ResultSummary", &[("outcome", outcome)])?;
    let not_executed = totals.skipped + totals.quarantined;
    let counters = [
        ("total", totals.total() + broken),
        ("executed", totals.total() - not_executed + broken),
        ("passed", totals.passed),
        ("failed", totals.failures() - timeouts + broken),
        ("error", 0),
        ("timeout", timeouts),
        ("aborted", 0),
        ("inconclusive", 0),
        ("passedButRunAborted", 0),
        ("notRunnable", 0),
        ("notExecuted", not_executed),
        ("disconnected", 0),
        ("warning", 0),
        ("completed", 0),
        ("inProgress", 0),
        ("pending", 0),
    ]
    .map(|(name, count)| (name, count.to_string()));
    xml.empty("Counters", &counters.each_ref().map(|(name, count)| (*name, count.as_str())))?;
    // An interruption is always reported.
    let interrupted = run.interrupted.as_ref().map(|why| format!("the run was interrupted: {why}"));
    run_infos(xml, run, modules, interrupted.or(trouble(source)?))?;
    if modules.iter().any(|module| !module.artifacts.is_empty()) {
        xml.open("ResultFiles", &[])?;
        for artifact in modules.iter().flat_map(|module| &module.artifacts) {
            xml.empty("ResultFile", &[("path", &artifact.path)])?;
        }
        xml.close("ResultFiles")?;
    }
    xml.close("ResultSummary")
}

/// Returns the number of tests that timed out, without those in quarantine.
fn count_timeouts(source: &impl Source) -> io::Result<u64> {
    let mut count = 0;
    for number in 0..source.modules().len() {
        for index in 0..source.count(number) {
            let result = source.result(number, index)?;
            count += u64::from(result.state() == TestOutcome::Timeout && result.is_failure());
        }
    }
    Ok(count)
}

fn run_infos<W: Write>(
    xml: &mut Xml<W>,
    run: &Run,
    modules: &[Module],
    trouble: Option<String>,
) -> io::Result<()> {
    let mut infos = Vec::new();
    infos.extend(trouble.map(|why| ("Error", run.started, why)));
    for module in modules {
        let at = module.started.unwrap_or(run.started);
        if let Some(error) = &module.error {
            let mut told = format!("{}: {error}", module.title());
            for (label, output) in [("standard output", &module.stdout), ("standard error", &module.stderr)] {
                if !output.is_empty() {
                    told.extend(["\n", label, ":\n", output]);
                }
            }
            infos.push(("Error", at, told));
        }
        for message in &module.messages {
            let outcome = match message.level {
                Level::Info => continue,
                Level::Warning => "Warning",
                Level::Error => "Error",
            };
            infos.push((outcome, at, format!("{}: {}", module.title(), message.text)));
        }
    }
    if infos.is_empty() {
        return Ok(());
    }
    xml.open("RunInfos", &[])?;
    for (outcome, at, told) in infos {
        let at = time::timestamp(at);
        xml.open("RunInfo", &[("computerName", machine(run)), ("outcome", outcome), ("timestamp", &at)])?;
        xml.text("Text", &[], &told)?;
        xml.close("RunInfo")?;
    }
    xml.close("RunInfos")
}
