//! The event stream: a line of JSON for each event of a run, written while the run is running.
//!
//! | type | members |
//! |---|---|
//! | `run-start` | `command`, `runner`, `version`, `started` |
//! | `module-start` | `module`, `name`, `framework`, `architecture` |
//! | `test-start` | `module`, `uid`, `name`, `attempt` |
//! | `test-result` | `module`, `uid`, `name`, `state`, `duration_ns`, `attempt`, `flaky`, `quarantined`, `exceptions[]` {`message`, `type`, `stack`}, `expected`, `actual`, `reason`, `stdout`, `stderr`, `class`, `method`, `location` {`file`, `line`}, `traits[]` {`key`, `value`} |
//! | `output` | `module`, `stream` (`stdout`, `stderr`), `text` |
//! | `artifact` | `module`, `path`, `name`, `description`, `uid` |
//! | `message` | `module`, `level` (`info`, `warning`, `error`), `text` |
//! | `module-end` | `module`, `name`, `framework`, `architecture`, `exit_code`, `error_message`, `duration_ns`, and the totals |
//! | `run-end` | the totals, `duration_ns`, `exit_code`, `interrupted`, `modules[]` like `module-end` |
//!
//! Every line has `type` and `ts_ns`, nanoseconds since the start of the run. Unknown values are `null`; all members
//! are always present. `error_message` is the reason why a module is broken; `error` is a number, as in all totals.
//! `module` is the path. A test has a `test-result` for each attempt; a later one replaces the earlier ones. Texts are
//! written unchanged, because JSON can represent them. The numbers of [`summary`] are those of `run-end`.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    Artifact, Exception, Level, Location, Message, Module, Run, TestOutcome, TestResult, Totals, Trait, json,
    time,
};

/// The buffer capacity that is kept for the next line, in bytes.
const MAX_KEPT_CAPACITY: usize = 1 << 20;

/// A writer of events as lines. Each line is one write, so that programs that follow a file never see partial lines.
#[derive(Debug)]
pub struct Events<W: Write> {
    w: W,
    line: Vec<u8>,
}

/// An output stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Each method writes one line and returns errors of the writer. `ts_ns` is the time since the start of the run in
/// nanoseconds.
impl<W: Write> Events<W> {
    /// Creates a writer of events to `w`.
    pub fn new(w: W) -> Self {
        Self { w, line: Vec::new() }
    }

    /// Writes the start of the run, with the properties that are known then.
    pub fn run_start(&mut self, ts_ns: u64, run: &Run) -> io::Result<()> {
        let (runner, version) = (run.runner.as_str(), run.version.as_str());
        let started = time::timestamp(run.started);
        self.write(ts_ns, &Body::RunStart { command: &run.command, runner, version, started })
    }

    /// Writes the start of a module.
    pub fn module_start(&mut self, ts_ns: u64, module: &Module) -> io::Result<()> {
        let Module { path, name, framework, architecture, .. } = module;
        self.write(ts_ns, &Body::ModuleStart { module: path, name, framework, architecture })
    }

    /// Writes the start of a test. `attempt` starts at 1.
    pub fn test_start(
        &mut self,
        ts_ns: u64,
        module: &Module,
        uid: &str,
        name: &str,
        attempt: usize,
    ) -> io::Result<()> {
        self.write(ts_ns, &Body::TestStart { module: &module.path, uid, name, attempt })
    }

    /// Writes the end of an attempt: `result.last`, which follows the attempts in `result.earlier`.
    pub fn test_result(&mut self, ts_ns: u64, module: &Module, result: &TestResult) -> io::Result<()> {
        let last = &result.last;
        let body = ResultBody {
            module: &module.path,
            uid: &result.uid,
            name: &result.name,
            state: last.state,
            duration_ns: last.duration_ns,
            attempt: result.earlier.len() + 1,
            flaky: result.is_flaky(),
            quarantined: result.quarantined,
            exceptions: &last.exceptions,
            expected: last.expected.as_deref(),
            actual: last.actual.as_deref(),
            reason: last.reason.as_deref(),
            stdout: &last.stdout,
            stderr: &last.stderr,
            class: result.class(),
            method: result.method.as_deref(),
            location: result.location.as_ref(),
            traits: &result.traits,
        };
        self.write(ts_ns, &Body::TestResult(body))
    }

    /// Writes output of a module's process.
    pub fn output(&mut self, ts_ns: u64, module: &Module, stream: Stream, text: &str) -> io::Result<()> {
        self.write(ts_ns, &Body::Output { module: &module.path, stream, text })
    }

    /// Writes a file that was produced by the test `uid` or by the module.
    pub fn artifact(
        &mut self,
        ts_ns: u64,
        module: &Module,
        artifact: &Artifact,
        uid: Option<&str>,
    ) -> io::Result<()> {
        let Artifact { path, name, description } = artifact;
        self.write(ts_ns, &Body::Artifact { module: &module.path, path, name, description, uid })
    }

    /// Writes a message of the platform or the framework.
    pub fn message(&mut self, ts_ns: u64, module: &Module, message: &Message) -> io::Result<()> {
        let Message { level, text } = message;
        self.write(ts_ns, &Body::Message { module: &module.path, level: *level, text })
    }

    /// Writes the end of a module that has finished or will not run.
    pub fn module_end(&mut self, ts_ns: u64, module: &Module, totals: &Totals) -> io::Result<()> {
        self.write(ts_ns, &Body::ModuleEnd(ModuleEnd::of(module, totals)))
    }

    /// Writes the end of the run. `totals` are the totals of the modules, in order.
    pub fn run_end(
        &mut self,
        ts_ns: u64,
        run: &Run,
        modules: &[Module],
        totals: &[Totals],
    ) -> io::Result<()> {
        self.write(ts_ns, &Body::RunEnd(RunEnd::of(run, modules, totals)))
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.w
    }

    fn write(&mut self, ts_ns: u64, body: &Body<'_>) -> io::Result<()> {
        self.line.clear();
        json::write(&mut self.line, &Line { ts_ns, body })?;
        self.line.push(b'\n');
        self.w.write_all(&self.line)?;
        // Keep the capacity for an ordinary line, but not for megabytes of output.
        self.line.truncate(0);
        self.line.shrink_to(MAX_KEPT_CAPACITY);
        self.w.flush()
    }
}

/// Writes the document `runtap.test/1`: the members of `run-end` as one value, for programs that do not read a stream.
///
/// Returns errors of the writer.
pub fn summary(mut w: impl Write, run: &Run, modules: &[Module], totals: &[Totals]) -> io::Result<()> {
    let summary = Summary { schema: "runtap.test/1", end: RunEnd::of(run, modules, totals) };
    json::write_pretty(&mut w, &summary)?;
    w.write_all(b"\n")?;
    w.flush()
}

#[derive(Serialize)]
struct Summary<'a> {
    schema: &'static str,
    #[serde(flatten)]
    end: RunEnd<'a>,
}

#[derive(Serialize)]
struct Line<'a> {
    ts_ns: u64,
    #[serde(flatten)]
    body: &'a Body<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Body<'a> {
    RunStart { command: &'a [String], runner: &'a str, version: &'a str, started: String },
    ModuleStart { module: &'a str, name: &'a str, framework: &'a str, architecture: &'a str },
    TestStart { module: &'a str, uid: &'a str, name: &'a str, attempt: usize },
    TestResult(ResultBody<'a>),
    Output { module: &'a str, stream: Stream, text: &'a str },
    Artifact { module: &'a str, path: &'a str, name: &'a str, description: &'a str, uid: Option<&'a str> },
    Message { module: &'a str, level: Level, text: &'a str },
    ModuleEnd(ModuleEnd<'a>),
    RunEnd(RunEnd<'a>),
}

#[derive(Serialize)]
struct ResultBody<'a> {
    module: &'a str,
    uid: &'a str,
    name: &'a str,
    state: TestOutcome,
    duration_ns: Option<i64>,
    attempt: usize,
    flaky: bool,
    quarantined: bool,
    exceptions: &'a [Exception],
    expected: Option<&'a str>,
    actual: Option<&'a str>,
    reason: Option<&'a str>,
    stdout: &'a str,
    stderr: &'a str,
    class: Option<String>,
    method: Option<&'a str>,
    location: Option<&'a Location>,
    traits: &'a [Trait],
}

#[derive(Serialize)]
struct ModuleEnd<'a> {
    module: &'a str,
    name: &'a str,
    framework: &'a str,
    architecture: &'a str,
    exit_code: Option<i32>,
    error_message: Option<&'a str>,
    duration_ns: u64,
    #[serde(flatten)]
    totals: Totals,
}

impl<'a> ModuleEnd<'a> {
    fn of(module: &'a Module, totals: &Totals) -> Self {
        Self {
            module: &module.path,
            name: &module.name,
            framework: &module.framework,
            architecture: &module.architecture,
            exit_code: module.exit_code,
            error_message: module.error.as_deref(),
            duration_ns: module.duration_ns,
            totals: *totals,
        }
    }
}

#[derive(Serialize)]
struct RunEnd<'a> {
    #[serde(flatten)]
    totals: Totals,
    duration_ns: u64,
    exit_code: i32,
    interrupted: Option<&'a str>,
    modules: Vec<ModuleEnd<'a>>,
}

impl<'a> RunEnd<'a> {
    fn of(run: &'a Run, modules: &'a [Module], totals: &[Totals]) -> Self {
        Self {
            totals: totals.iter().fold(Totals::default(), Totals::plus),
            duration_ns: run.duration_ns,
            exit_code: run.exit_code,
            interrupted: run.interrupted.as_deref(),
            modules: modules
                .iter()
                .zip(totals)
                .map(|(module, totals)| ModuleEnd::of(module, totals))
                .collect(),
        }
    }
}
