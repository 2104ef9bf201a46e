//! The model of a test run, finished or interrupted, for reports.
//!
//! Defines the run, its modules, results and attempts as plain values, and properties derived from a single value.
//! Counting is done by [`crate::Totals`]. Texts are not checked, and contain anything that a test wrote.

use std::time::{Duration, SystemTime};

use runtap_test::TestOutcome;
use serde::{Deserialize, Serialize};

/// A run of one or more test modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The start of the run.
    pub started: SystemTime,
    /// The duration in nanoseconds.
    pub duration_ns: u64,
    /// The command line, program first.
    pub command: Vec<String>,
    /// The runner's name: `runtap`.
    pub runner: String,
    /// The runner's version.
    pub version: String,
    /// The exit code of the runner.
    pub exit_code: i32,
    /// The reason why the run ended early, if it did.
    pub interrupted: Option<String>,
    /// A problem of the run that neither a test nor a module shows, if the runner reported one.
    pub error: Option<String>,
    /// The name of the machine, for formats that include it; may be empty.
    pub machine: String,
}

/// A test application: one assembly or executable, for one framework.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The path of the file.
    pub path: String,
    /// The display name, usually the file name without the extension.
    pub name: String,
    /// The target framework, such as `net10.0`; empty if unknown.
    pub framework: String,
    /// The architecture, such as `x64`; empty if unknown.
    pub architecture: String,
    /// The start of its first process; `None` if it was never started.
    pub started: Option<SystemTime>,
    /// The time from the start of its first process to the exit of its last one, in nanoseconds.
    pub duration_ns: u64,
    /// The exit code of its last process, if there was one.
    pub exit_code: Option<i32>,
    /// The reason why the module itself is broken, other than failed tests, for example a crash or a missing handshake.
    pub error: Option<String>,
    /// The end of the standard output of its processes; empty unless it explains something.
    pub stdout: String,
    /// The end of the standard error of its processes.
    pub stderr: String,
    /// The files that belong to no test.
    pub artifacts: Vec<Artifact>,
    /// The messages of the platform or the framework.
    pub messages: Vec<Message>,
}

impl Module {
    /// Creates a module with only a path. The name is the file name without an extension `.dll` or `.exe`.
    pub fn new(path: impl Into<String>) -> Self {
        let path = path.into();
        let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = file.strip_suffix(".dll").or_else(|| file.strip_suffix(".exe")).unwrap_or(file).to_owned();
        Self {
            path,
            name,
            framework: String::new(),
            architecture: String::new(),
            started: None,
            duration_ns: 0,
            exit_code: None,
            error: None,
            stdout: String::new(),
            stderr: String::new(),
            artifacts: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Returns the errors that the platform or the framework reported beside results, such as a failed clean-up of a
    /// class.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter(|it| it.level == Level::Error).map(|it| it.text.trim_end())
    }

    /// Returns the name with framework and architecture, as the platform shows it: `orchard (net10.0|x64)`.
    pub fn title(&self) -> String {
        match (self.framework.as_str(), self.architecture.as_str()) {
            ("", "") => self.name.clone(),
            (one, "") | ("", one) => format!("{} ({one})", self.name),
            (framework, architecture) => format!("{} ({framework}|{architecture})", self.name),
        }
    }
}

/// The result of a test after its last attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// The id of the test within its module. Not unique: data rows may share one.
    pub uid: String,
    /// The display name.
    pub name: String,
    /// The namespace of the test's class, if known.
    pub namespace: Option<String>,
    /// The name of the test's class without the namespace, if known.
    pub type_name: Option<String>,
    /// The name of the test's method, if known.
    pub method: Option<String>,
    /// The location of the declaration, if known.
    pub location: Option<Location>,
    /// The categories and properties.
    pub traits: Vec<Trait>,
    /// Whether failures of the test do not count.
    pub quarantined: bool,
    /// The last attempt, which counts.
    pub last: Attempt,
    /// The earlier attempts, the first one first.
    pub earlier: Vec<Attempt>,
    /// The files that the test produced.
    pub artifacts: Vec<Artifact>,
}

impl TestResult {
    /// Returns the state of the last attempt.
    pub fn state(&self) -> TestOutcome {
        self.last.state
    }

    /// Returns whether the test passed after a failed attempt.
    pub fn is_flaky(&self) -> bool {
        self.last.state == TestOutcome::Passed
            && self.earlier.iter().any(|attempt| attempt.state.is_failure())
    }

    /// Returns whether the test failed and is not in quarantine.
    pub fn is_failure(&self) -> bool {
        self.last.state.is_failure() && !self.quarantined
    }

    /// Returns whether the test failed and is in quarantine.
    pub fn is_forgiven(&self) -> bool {
        self.last.state.is_failure() && self.quarantined
    }

    /// Returns the full name of the class, or `None` if it is unknown.
    pub fn class(&self) -> Option<String> {
        let name = self.type_name.as_deref().filter(|name| !name.is_empty())?;
        Some(match self.namespace.as_deref() {
            None | Some("") => name.to_owned(),
            Some(namespace) => format!("{namespace}.{name}"),
        })
    }

    /// Returns the total duration of all attempts, in nanoseconds.
    pub fn total_duration_ns(&self) -> u64 {
        self.earlier.iter().fold(self.last.time_ns(), |sum, attempt| sum.saturating_add(attempt.time_ns()))
    }
}

/// One execution of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The outcome.
    pub state: TestOutcome,
    /// The start, if known.
    pub started: Option<SystemTime>,
    /// The duration in nanoseconds as reported by the test application. Absent for skipped tests, and possibly wrong,
    /// even negative.
    pub duration_ns: Option<i64>,
    /// The reason for skipping, or an explanation of the failure.
    pub reason: Option<String>,
    /// The exceptions, the outermost first.
    pub exceptions: Vec<Exception>,
    /// The expected value of a failed assertion.
    pub expected: Option<String>,
    /// The actual value of a failed assertion.
    pub actual: Option<String>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl Attempt {
    /// Returns the duration. `None` if it is unknown or negative.
    pub fn duration(&self) -> Option<Duration> {
        self.duration_ns.and_then(|ns| u64::try_from(ns).ok()).map(Duration::from_nanos)
    }

    /// Moves the texts out; the outcome and the times stay.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let rest = Self {
            state: self.state,
            started: self.started,
            duration_ns: self.duration_ns,
            ..Self::default()
        };
        std::mem::replace(self, rest)
    }

    /// Returns the duration in nanoseconds; 0 if it is unknown or negative.
    pub fn time_ns(&self) -> u64 {
        self.duration_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0)
    }

    /// Returns the reason why the attempt did not pass: the explanation or the first exception's message, or else a
    /// text for the state. `None` if the attempt passed.
    pub fn message(&self) -> Option<&str> {
        if self.state == TestOutcome::Passed {
            return None;
        }
        let first = self.exceptions.first().map(|exception| exception.message.as_str());
        let told = [self.reason.as_deref(), first].into_iter().flatten().find(|text| !text.is_empty());
        Some(told.unwrap_or_else(|| self.state.words()))
    }

    /// Returns the type of the first exception, if known.
    pub fn exception_type(&self) -> Option<&str> {
        self.exceptions.first().map(|exception| exception.type_name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns everything that explains a failure: exceptions with their stacks, expected and actual value. Empty if
    /// nothing is known.
    pub fn details(&self) -> String {
        let mut text = String::new();
        for (i, exception) in self.exceptions.iter().enumerate() {
            if i > 0 {
                text.push_str("---> ");
            }
            let separator =
                if exception.type_name.is_empty() || exception.message.is_empty() { "" } else { ": " };
            text.extend([&exception.type_name, separator, &exception.message, "\n"]);
            if !exception.stack.is_empty() {
                text.extend([exception.stack.trim_end(), "\n"]);
            }
        }
        for (label, value) in [("Expected: ", &self.expected), ("Actual:   ", &self.actual)] {
            if let Some(value) = value {
                text.extend([label, value, "\n"]);
            }
        }
        text
    }

    /// Returns the stacks of all exceptions, separated by line breaks. Empty if there are none.
    pub fn stacks(&self) -> String {
        let stacks = self.exceptions.iter().map(|exception| exception.stack.trim_end());
        stacks.filter(|stack| !stack.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// An exception of a failed test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// The message.
    pub message: String,
    /// The full name of the type; empty if unknown.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The stack, one frame per line; empty if unknown.
    pub stack: String,
}

/// A category (no value) or a property of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trait {
    /// The category, or the name of the property.
    pub key: String,
    /// The value of the property; empty for a category.
    pub value: String,
}

/// A location in source code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The path of the file, as recorded by the compiler.
    pub file: String,
    /// The line, starting at 1, if known.
    pub line: Option<u32>,
}

/// A file that a test or a module produced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The path.
    pub path: String,
    /// The display name; may be empty.
    pub name: String,
    /// The description; may be empty.
    pub description: String,
}

impl Artifact {
    /// Returns the display name, or the file name if there is none.
    pub fn title(&self) -> &str {
        if self.name.is_empty() {
            self.path.rsplit(['/', '\\']).next().unwrap_or_default()
        } else {
            &self.name
        }
    }

    /// Returns the media type for the file's extension, or `application/octet-stream` if it is unknown.
    pub fn content_type(&self) -> &'static str {
        let extension = self.path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
        match extension.as_deref() {
            Some("txt" | "log") => "text/plain",
            Some("html" | "htm") => "text/html",
            Some("json") => "application/json",
            Some("xml" | "trx" | "coverage") => "application/xml",
            Some("png") => "image/png",
            Some("jpg" | "jpeg") => "image/jpeg",
            Some("zip") => "application/zip",
            _ => "application/octet-stream",
        }
    }
}

/// A message of the platform or a framework about a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The severity.
    pub level: Level,
    /// The text.
    pub text: String,
}

/// The level of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Information.
    Info,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

impl Level {
    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
