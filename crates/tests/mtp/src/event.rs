//! The events of a run: one stream, from which terminal output, files and reports are made.

use std::path::PathBuf;
use std::time::Duration;

pub use runtap_test_report::events::Stream;
pub use runtap_test_report::{Attempt, Exception, Level, TestOutcome, Totals};

use crate::child::Exit;
use crate::module::Module;

/// The number of a module within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub usize);

/// The number of a process within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// The properties of a discovered test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestInfo {
    /// The id of the test within its module.
    pub uid: String,
    /// The display name.
    pub name: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in the source file, starting at 1.
    pub line: Option<i32>,
    /// The namespace of the test's class.
    pub namespace: Option<String>,
    /// The name of the test's class.
    pub type_name: Option<String>,
    /// The name of the test's method.
    pub method: Option<String>,
    /// The traits as keys and values, in the order of the framework.
    pub traits: Vec<(String, String)>,
    /// The types of the method's parameters.
    pub parameter_types: Vec<String>,
}

impl TestInfo {
    /// Returns whether the application runs the test only if no other tests are selected. `NUnit`'s adapter marks such
    /// tests with this trait, and reports nothing for them if other tests are selected.
    pub fn is_explicit(&self) -> bool {
        self.traits.iter().any(|(key, value)| key == "Explicit" && value.is_empty())
    }
}

/// A result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub struct TestResult {
    /// The id of the test within its module.
    pub uid: String,
    /// The display name.
    pub name: String,
    /// The number of the attempt, starting at 1.
    pub attempt: u32,
    /// The number that the application assigned to the attempt of this test host. `None` if the application does not
    /// count attempts.
    pub host_attempt: Option<u32>,
    /// Whether the test passed after it had failed.
    pub flaky: bool,
    /// Whether a failure of the test is ignored.
    pub quarantined: bool,
    /// Whether a later attempt in the same process replaced this result.
    pub superseded: bool,
    /// The number of the result's row within the module, starting at 0. A result replaces the previous result of its
    /// row. A test has several rows if it has several results in one attempt.
    pub row: usize,
    /// Whether another attempt of the row takes precedence: a later attempt that was reported earlier, or a failure
    /// before a skipped attempt.
    pub outdated: bool,
    /// The outcome and the texts. The duration is that which the framework reported, and never negative.
    pub execution: Attempt,
}

/// A command-line option of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppOption {
    /// The name, without dashes.
    pub name: String,
    /// The description.
    pub description: String,
    /// Whether the option is hidden.
    pub hidden: bool,
    /// Whether the option belongs to the platform, not to an extension.
    pub built_in: bool,
}

impl Default for TestResult {
    /// Returns an empty result of a passed test, to be filled in.
    fn default() -> Self {
        Self {
            uid: String::new(),
            name: String::new(),
            attempt: 1,
            host_attempt: None,
            flaky: false,
            quarantined: false,
            superseded: false,
            row: 0,
            outdated: false,
            execution: Attempt::default(),
        }
    }
}

/// A file that a test or a module produced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Artifact {
    /// The path of the file.
    pub path: PathBuf,
    /// The display name.
    pub name: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The id of the file's test, if any.
    pub test_uid: Option<String>,
    /// The display name of the file's test, if any.
    pub test_name: Option<String>,
    /// The kind of the file, such as `microsoft.testing.trx`.
    pub kind: Option<String>,
}

/// The identity that a process of a module sent in its handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// The process id.
    pub pid: Option<u32>,
    /// The processor architecture: `X64`, `Arm64` and others.
    pub architecture: String,
    /// The framework, for example `.NET 10.0.12`. Programs without .NET send any text.
    pub framework: String,
    /// The role of the process: `TestHost`, `TestHostController` or `TestHostOrchestrator`.
    pub host_type: String,
    /// The attempt of a test host, if known. Applications may count attempts of their own.
    pub attempt: Option<u32>,
    /// The negotiated version of the protocol.
    pub protocol: String,
}

impl Introduction {
    /// Returns the framework in the notation of projects: `net10.0` for `.NET 10.0.12`. Other texts are returned
    /// unchanged.
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

/// A failure of a module as a whole, not of a single test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleFailure {
    /// The module could not be started.
    NotStarted(String),
    /// The module exited before its handshake. Holds the exit code, or `None` if the process was killed.
    NoHandshake(Option<i32>),
    /// The .NET host could not start the module.
    NotHosted {
        /// The exit code of the host.
        exit: i32,
        /// The reason that the host printed.
        why: HostError,
    },
    /// The module supports no known version of the protocol. Holds a description.
    Incompatible(String),
    /// The module violated the protocol. Holds a description.
    Protocol(String),
    /// The module exited in the middle of a session.
    Died {
        /// The names of the tests that were running.
        running: Vec<String>,
        /// The exit code, as shells report it.
        exit: i32,
    },
    /// The module exited with a code that its results do not explain.
    ExitCode(i32),
    /// The module was killed because it did not respond in time. Holds a description.
    Unresponsive(String),
    /// A process exited before it had run all of its tests, and no other process ran them. Holds the tests or the
    /// reason.
    NotRun(String),
}

/// The reason why a .NET host cannot start an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostError {
    /// The program is a launcher for this file, which does not exist.
    NoApplication(String),
    /// No suitable runtime is installed.
    NoRuntime,
}

/// The end of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchEnd {
    /// The exit status; `None` if the process was never started.
    pub exit: Option<Exit>,
    /// The failures of the process, other than failed tests.
    pub failures: Vec<ModuleFailure>,
    /// The standard output, truncated in the middle if it is long.
    pub stdout: String,
    /// The standard error, truncated in the middle if it is long.
    pub stderr: String,
    /// The running time.
    pub duration: Duration,
    /// Whether the process was stopped, because the run was stopped or a test timed out.
    pub stopped: bool,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run started.
    RunStarted {
        /// All modules, in the order of their ids.
        modules: Vec<Module>,
    },
    /// A process was started.
    LaunchStarted {
        /// The module of the process.
        module: ModuleId,
        /// The number of the process.
        launch: LaunchId,
        /// The attempt: 1, or more for tests that are retried.
        attempt: u32,
        /// The part of the module that the process runs, starting at 1, and the number of parts.
        part: (usize, usize),
        /// The process id.
        pid: u32,
    },
    /// A process completed its handshake.
    Introduced {
        /// The module of the process.
        module: ModuleId,
        /// The number of the process.
        launch: LaunchId,
        /// The identity of the process.
        introduction: Introduction,
    },
    /// A test was discovered.
    Discovered {
        /// The module of the test.
        module: ModuleId,
        /// The properties of the test.
        test: TestInfo,
    },
    /// A test started.
    TestStarted {
        /// The module of the test.
        module: ModuleId,
        /// The process that runs the test.
        launch: LaunchId,
        /// The id of the test.
        uid: String,
        /// The display name of the test.
        name: String,
        /// The attempt.
        attempt: u32,
    },
    /// A test is running for longer than the slow-test limit.
    TestSlow {
        /// The module of the test.
        module: ModuleId,
        /// The id of the test.
        uid: String,
        /// The display name of the test.
        name: String,
        /// The running time so far.
        running: Duration,
    },
    /// A test ended.
    TestEnded {
        /// The module of the test.
        module: ModuleId,
        /// The process that runs the test.
        launch: LaunchId,
        /// The result.
        result: TestResult,
        /// The totals of the run so far, including this result. Each test is counted once, by its last attempt.
        so_far: Totals,
    },
    /// An option of an application. Only if options were requested.
    Option {
        /// The module.
        module: ModuleId,
        /// The option.
        option: AppOption,
    },
    /// A file was produced.
    Artifact {
        /// The module that produced the file.
        module: ModuleId,
        /// The file.
        artifact: Artifact,
    },
    /// A message of a process to the user, or a message of runtap about a process.
    Message {
        /// The module.
        module: ModuleId,
        /// The level.
        level: Level,
        /// The text.
        text: String,
    },
    /// A process wrote output.
    Output {
        /// The module of the process.
        module: ModuleId,
        /// The process.
        launch: LaunchId,
        /// The output stream.
        stream: Stream,
        /// The output.
        bytes: Vec<u8>,
    },
    /// A process exited.
    LaunchEnded {
        /// The module of the process.
        module: ModuleId,
        /// The process.
        launch: LaunchId,
        /// The end of the process.
        end: LaunchEnd,
    },
    /// Failed rows of tests that are missing in the last attempt, which passed. Sent before the end of the module, if
    /// at all.
    RowsMerged {
        /// The module of the process.
        module: ModuleId,
        /// Pairs of a failed row and the row of which its results are earlier attempts.
        rows: Vec<(usize, usize)>,
    },
    /// All processes of a module have exited.
    ModuleEnded {
        /// The module.
        module: ModuleId,
        /// The totals of the module.
        totals: Totals,
        /// The failures of the module as a whole, without crashes that a later attempt resolved or that a failed test
        /// explains.
        failures: Vec<ModuleFailure>,
        /// The number of these failures, from the first on, that a [`LaunchEnded`](Self::LaunchEnded) event has reported already.
        reported: usize,
        /// The verdict for the module, as an exit code of the platform.
        exit_code: i32,
        /// The time from the start of the first process to the exit of the last one.
        duration: Duration,
    },
    /// The run ended.
    RunEnded {
        /// The totals of the run.
        totals: Totals,
        /// The verdict, as an exit code of the platform.
        exit_code: i32,
        /// A message about tests that were selected for all modules, but run by none of them. `None` if there are none.
        missing: Option<String>,
        /// The duration of the run.
        duration: Duration,
        /// Whether the run was stopped early.
        stopped: bool,
    },
}
