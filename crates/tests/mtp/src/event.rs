//! What happens in a run, as it happens: the one stream that terminals, files and reports are made of.

use std::path::PathBuf;
use std::time::Duration;

use crate::child::Exit;
use crate::module::Module;
use crate::totals::Totals;

/// Number of a module within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub usize);

/// Number of a process that was started within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// As expected.
    Passed,
    /// An assertion did not hold.
    Failed,
    /// Not run on purpose.
    Skipped,
    /// It failed by something else than an assertion, or broke with its process.
    Error,
    /// It took too long.
    Timeout,
    /// It was stopped.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Skipped, Self::Error, Self::Timeout, Self::Cancelled];

    /// The word for it in results and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the run has failed by it.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error | Self::Timeout | Self::Cancelled)
    }
}

/// An exception that a test has thrown, or what takes its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exception {
    /// What it says.
    pub message: Option<String>,
    /// Its type.
    pub type_name: Option<String>,
    /// Where it was thrown.
    pub stack: Option<String>,
}

/// What is known of a test before it is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestInfo {
    /// Its id within the module.
    pub uid: String,
    /// Its name for people.
    pub name: String,
    /// Where its source is.
    pub file: Option<String>,
    /// The line in that file, from 1 on.
    pub line: Option<i32>,
    /// The namespace of its type.
    pub namespace: Option<String>,
    /// Its type.
    pub type_name: Option<String>,
    /// Its method.
    pub method: Option<String>,
    /// Keys and values, as its framework gives them.
    pub traits: Vec<(String, String)>,
    /// Types of the method's parameters.
    pub parameter_types: Vec<String>,
}

impl TestInfo {
    /// Whether the application runs the test only if no other tests are chosen with it. `NUnit`'s adapter marks such tests by
    /// this trait: it reports nothing of them if others are chosen too.
    pub fn is_explicit(&self) -> bool {
        self.traits.iter().any(|(key, value)| key == "Explicit" && value.is_empty())
    }
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub struct TestResult {
    /// The test's id within the module.
    pub uid: String,
    /// Its name for people.
    pub name: String,
    /// What became of it.
    pub state: State,
    /// How long it took, as its framework says; `None` for skipped ones. Never negative.
    pub duration: Option<Duration>,
    /// Which attempt this was, from 1 on.
    pub attempt: u32,
    /// The number that the application gave the attempt of this test host. `None` if the application does not count attempts.
    pub host_attempt: Option<u32>,
    /// It has passed after it had failed.
    pub flaky: bool,
    /// If it has failed, that does not count.
    pub quarantined: bool,
    /// A later attempt within the same process has replaced it.
    pub superseded: bool,
    /// The number of its row within the module, from 0 on. A result replaces the one before it of the same row; a test has
    /// several rows if it has several results in one attempt.
    pub row: usize,
    /// Another attempt of the row counts: a later one that is there already, or a failure before an attempt that was skipped.
    pub outdated: bool,
    /// Why it was skipped, or failed without an exception.
    pub reason: Option<String>,
    /// The exception, and those within it.
    pub exceptions: Vec<Exception>,
    /// What an assertion expected.
    pub expected: Option<String>,
    /// What it found.
    pub actual: Option<String>,
    /// What the test has printed.
    pub stdout: String,
    /// What it has printed as errors.
    pub stderr: String,
}

/// An option of an application's command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppOption {
    /// Its name, without dashes.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Not to be shown.
    pub hidden: bool,
    /// It is the platform's, not an extension's.
    pub built_in: bool,
}

impl Default for TestResult {
    /// Of nothing yet: a passed test, to be filled in.
    fn default() -> Self {
        Self {
            uid: String::new(),
            name: String::new(),
            state: State::Passed,
            duration: None,
            attempt: 1,
            host_attempt: None,
            flaky: false,
            quarantined: false,
            superseded: false,
            row: 0,
            outdated: false,
            reason: None,
            exceptions: Vec::new(),
            expected: None,
            actual: None,
            stdout: String::new(),
            stderr: String::new(),
        }
    }
}

/// A file that a test or a module has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Artifact {
    /// Where it is.
    pub path: PathBuf,
    /// Its name for people.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The test that it belongs to.
    pub test_uid: Option<String>,
    /// The name of that test.
    pub test_name: Option<String>,
    /// What kind of file it is, such as `microsoft.testing.trx`.
    pub kind: Option<String>,
}

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// To be known.
    Information,
    /// To be looked at.
    Warning,
    /// Something failed.
    Error,
}

/// Which of a program's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Who a process of a module is, as it has introduced itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Its process id.
    pub pid: Option<u32>,
    /// `X64`, `Arm64`, …
    pub architecture: String,
    /// `.NET 10.0.12`; whatever a program without .NET calls its own.
    pub framework: String,
    /// `TestHost`, `TestHostController`, `TestHostOrchestrator`.
    pub host_type: String,
    /// Which attempt a test host is, where it says so: an application may have attempts of its own.
    pub attempt: Option<u32>,
    /// The version of the protocol that was agreed on.
    pub protocol: String,
}

impl Introduction {
    /// The framework as projects name it: `net10.0` for `.NET 10.0.12`; anything else as it was told.
    pub fn target_framework(&self) -> String {
        let version = self.framework.strip_prefix(".NET ").map(|version| version.splitn(3, '.').take(2));
        match version.map(Iterator::collect::<Vec<_>>) {
            Some(parts) if parts.len() == 2 && parts.iter().all(|part| part.parse::<u16>().is_ok()) => {
                format!("net{}", parts.join("."))
            }
            _ => self.framework.clone(),
        }
    }
}

/// Why a module as a whole has failed, beside its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleFailure {
    /// It could not be started.
    NotStarted(String),
    /// It has ended with this code, or was ended, before it had introduced itself.
    NoHandshake(Option<i32>),
    /// The .NET host that was to start it has ended with this code, as it said for this reason.
    NotHosted {
        /// Its code.
        exit: i32,
        /// Its reason.
        why: HostError,
    },
    /// It speaks no version of the protocol that we know; which it does.
    Incompatible(String),
    /// It has broken the protocol; the diagnostic for people.
    Protocol(String),
    /// It has ended in the middle of a session.
    Died {
        /// The names of the tests that were running.
        running: Vec<String>,
        /// Its code, as a shell counts.
        exit: i32,
    },
    /// It ended with a code that its results do not explain.
    ExitCode(i32),
    /// It was ended since it did not answer in time.
    Unresponsive(String),
    /// A process ended before it had come to all of its tests, and no other one has run them; which, or why not.
    NotRun(String),
}

/// Why a .NET host starts no application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostError {
    /// The program only starts this file, which does not exist.
    NoApplication(String),
    /// There is no runtime that the application can use.
    NoRuntime,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchEnd {
    /// By a code or a signal; `None` if it never began.
    pub exit: Option<Exit>,
    /// What was wrong with it, beside its tests.
    pub failures: Vec<ModuleFailure>,
    /// What it has printed, beginning and end.
    pub stdout: String,
    /// The same of errors.
    pub stderr: String,
    /// How long it ran.
    pub duration: Duration,
    /// It was told to end, since the run is over or one of its tests took too long.
    pub stopped: bool,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run begins.
    RunStarted {
        /// All modules, by their ids.
        modules: Vec<Module>,
    },
    /// A process was started.
    LaunchStarted {
        /// Of which module.
        module: ModuleId,
        /// Its number.
        launch: LaunchId,
        /// 1, or more for tests that had failed.
        attempt: u32,
        /// Of how many parts of the module it is which one, from 1 on.
        part: (usize, usize),
        /// Its process id.
        pid: u32,
    },
    /// A process has introduced itself.
    Introduced {
        /// Of which module.
        module: ModuleId,
        /// Its number.
        launch: LaunchId,
        /// As what.
        introduction: Introduction,
    },
    /// A test was found.
    Discovered {
        /// In which module.
        module: ModuleId,
        /// What is known of it.
        test: TestInfo,
    },
    /// A test has begun.
    TestStarted {
        /// In which module.
        module: ModuleId,
        /// In which process.
        launch: LaunchId,
        /// Its id.
        uid: String,
        /// Its name.
        name: String,
        /// Which attempt.
        attempt: u32,
    },
    /// A test takes longer than is usual.
    TestSlow {
        /// In which module.
        module: ModuleId,
        /// Its id.
        uid: String,
        /// Its name.
        name: String,
        /// For how long it has been running.
        running: Duration,
    },
    /// A test has ended.
    TestEnded {
        /// In which module.
        module: ModuleId,
        /// In which process.
        launch: LaunchId,
        /// How.
        result: TestResult,
        /// All results of the run so far, with this one: each test once, by its last attempt.
        so_far: Totals,
    },
    /// An option that an application knows; only where they are asked for.
    Option {
        /// Which module.
        module: ModuleId,
        /// What it says of it.
        option: AppOption,
    },
    /// A file was left.
    Artifact {
        /// By which module.
        module: ModuleId,
        /// Which.
        artifact: Artifact,
    },
    /// A process says something to whoever runs the tests, or we say something about it.
    Message {
        /// Which module.
        module: ModuleId,
        /// How important it is.
        severity: Severity,
        /// What.
        text: String,
    },
    /// A process has printed something.
    Output {
        /// Of which module.
        module: ModuleId,
        /// Which process.
        launch: LaunchId,
        /// Where.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// A process has ended.
    LaunchEnded {
        /// Of which module.
        module: ModuleId,
        /// Which process.
        launch: LaunchId,
        /// How.
        end: LaunchEnd,
    },
    /// Rows of tests that have failed, and that the last attempt, which passed, does not have any more. Comes before the end
    /// of the module, if at all.
    RowsMerged {
        /// Of which module.
        module: ModuleId,
        /// Each with the row of which its results are earlier attempts.
        rows: Vec<(usize, usize)>,
    },
    /// All processes of a module have ended.
    ModuleEnded {
        /// Which.
        module: ModuleId,
        /// Its results.
        totals: Totals,
        /// The failures of the module as a whole, without crashes that a later attempt mended or that a failed test explains.
        failures: Vec<ModuleFailure>,
        /// The number of these failures, from the first on, that a [`LaunchEnded`](Self::LaunchEnded) event has reported already.
        told: usize,
        /// What the module's own verdict is, as an exit code of the platform.
        exit_code: i32,
        /// From the first process's start to the last one's end.
        duration: Duration,
    },
    /// The run is over.
    RunEnded {
        /// All results.
        totals: Totals,
        /// The verdict, as an exit code of the platform.
        exit_code: i32,
        /// Tests that were chosen for all modules, and that none of them has run, in a sentence.
        missing: Option<String>,
        /// How long it took.
        duration: Duration,
        /// It was stopped before its end.
        stopped: bool,
    },
}
