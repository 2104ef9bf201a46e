//! A test run, finished or interrupted, as reports see it.
//!
//! Owns: the run, its modules, their results and attempts, as plain values, and what can be said of one of them alone
//! (is it flaky, what is its class). Refuses to: count ([`crate::Totals`] does); know where a value came from; check texts,
//! which are whatever a test wrote.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// A run of one or more test modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// When it began.
    pub started: SystemTime,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// The command line, program first.
    pub command: Vec<String>,
    /// The runner's name: `runtap`.
    pub runner: String,
    /// The runner's version.
    pub version: String,
    /// What the runner exits with.
    pub exit_code: i32,
    /// Why the run ended before all tests had, if it did.
    pub interrupted: Option<String>,
    /// What is wrong with the run that neither a test nor a module shows, if the runner has said it.
    pub error: Option<String>,
    /// The name of the machine, for the formats that have a place for it; may be empty.
    pub machine: String,
}

/// A test application: one assembly or executable, for one framework.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The path of its file.
    pub path: String,
    /// Its name for people, usually the file's name without the extension.
    pub name: String,
    /// The target framework, such as `net10.0`; empty if unknown.
    pub framework: String,
    /// The architecture, such as `x64`; empty if unknown.
    pub architecture: String,
    /// When its first process was started; `None` if it never was.
    pub started: Option<SystemTime>,
    /// From the start of its first process to the end of its last, in nanoseconds.
    pub duration_ns: u64,
    /// The exit code of its last process, if there was one.
    pub exit_code: Option<i32>,
    /// Why the module itself is broken, beside any tests that failed: it crashed, it never said hello.
    pub error: Option<String>,
    /// The end of what its processes wrote to standard output; empty unless it explains something.
    pub stdout: String,
    /// The end of what its processes wrote to standard error.
    pub stderr: String,
    /// Files that belong to no test.
    pub artifacts: Vec<Artifact>,
    /// What the platform or the framework had to say.
    pub messages: Vec<Message>,
}

impl Module {
    /// A module of which only the path is known. The name is the file's, without an extension `.dll` or `.exe`.
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

    /// The errors that its platform or framework reported beside results, such as a failed clean-up of a class.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter(|it| it.level == Level::Error).map(|it| it.text.trim_end())
    }

    /// The name with framework and architecture, as the platform shows it: `orchard (net10.0|x64)`.
    pub fn title(&self) -> String {
        match (self.framework.as_str(), self.architecture.as_str()) {
            ("", "") => self.name.clone(),
            (one, "") | ("", one) => format!("{} ({one})", self.name),
            (framework, architecture) => format!("{} ({framework}|{architecture})", self.name),
        }
    }
}

/// What became of a test, after its last attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// The test's identity within its module. Not unique: folded data rows share one.
    pub uid: String,
    /// The display name.
    pub name: String,
    /// The namespace of its type, if told.
    pub namespace: Option<String>,
    /// The name of its type without the namespace, if told.
    pub type_name: Option<String>,
    /// The name of its method, if told.
    pub method: Option<String>,
    /// Where it is declared, if told.
    pub location: Option<Location>,
    /// Categories and properties.
    pub traits: Vec<Trait>,
    /// Whether a failure of it does not count.
    pub quarantined: bool,
    /// The last attempt: what counts.
    pub last: Attempt,
    /// The attempts before it, the first one first.
    pub earlier: Vec<Attempt>,
    /// Files that the test left.
    pub artifacts: Vec<Artifact>,
}

impl TestResult {
    /// What became of it.
    pub fn state(&self) -> State {
        self.last.state
    }

    /// Whether it passed after an attempt that did not.
    pub fn is_flaky(&self) -> bool {
        self.last.state == State::Passed && self.earlier.iter().any(|attempt| attempt.state.is_failure())
    }

    /// Whether it failed and that counts: it is not in quarantine.
    pub fn is_failure(&self) -> bool {
        self.last.state.is_failure() && !self.quarantined
    }

    /// Whether it failed and that does not count.
    pub fn is_forgiven(&self) -> bool {
        self.last.state.is_failure() && self.quarantined
    }

    /// The full name of its class, `None` if the type is unknown.
    pub fn class(&self) -> Option<String> {
        let name = self.type_name.as_deref().filter(|name| !name.is_empty())?;
        Some(match self.namespace.as_deref() {
            None | Some("") => name.to_owned(),
            Some(namespace) => format!("{namespace}.{name}"),
        })
    }

    /// How long all attempts took together, in nanoseconds.
    pub fn total_duration_ns(&self) -> u64 {
        self.earlier.iter().fold(self.last.time_ns(), |sum, attempt| sum.saturating_add(attempt.time_ns()))
    }
}

/// One execution of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// How it ended.
    pub state: State,
    /// When it began, if known.
    pub started: Option<SystemTime>,
    /// How long it took in nanoseconds, as the test application said it: absent for skipped tests, and it may be
    /// nonsense, even negative.
    pub duration_ns: Option<i64>,
    /// Why it was skipped, or an explanation of the failure.
    pub reason: Option<String>,
    /// What was thrown, the outermost first.
    pub exceptions: Vec<Exception>,
    /// The expected value of a failed assertion.
    pub expected: Option<String>,
    /// The actual value of a failed assertion.
    pub actual: Option<String>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Attempt {
    /// How long it took in nanoseconds; 0 if unknown or negative.
    pub fn time_ns(&self) -> u64 {
        self.duration_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0)
    }

    /// Why it did not pass, in one text: the explanation or the first exception's message, else what the state says.
    /// Of an attempt that passed, nothing.
    pub fn message(&self) -> Option<&str> {
        if self.state == State::Passed {
            return None;
        }
        let first = self.exceptions.first().map(|exception| exception.message.as_str());
        let told = [self.reason.as_deref(), first].into_iter().flatten().find(|text| !text.is_empty());
        Some(told.unwrap_or_else(|| self.state.words()))
    }

    /// The type of the first exception, if it has one.
    pub fn exception_type(&self) -> Option<&str> {
        self.exceptions.first().map(|exception| exception.type_name.as_str()).filter(|name| !name.is_empty())
    }

    /// Everything that explains a failure, for people: exceptions with their stacks, expected and actual.
    /// Empty if nothing is known.
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

    /// The stacks of all exceptions, one below the other. Empty if there is none.
    pub fn stacks(&self) -> String {
        let stacks = self.exceptions.iter().map(|exception| exception.stack.trim_end());
        stacks.filter(|stack| !stack.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It did what it should.
    #[default]
    Passed,
    /// An assertion failed.
    Failed,
    /// It was not executed.
    Skipped,
    /// It could not be executed, or threw something unexpected.
    Error,
    /// It took too long.
    Timeout,
    /// It was stopped.
    Cancelled,
}

impl State {
    /// Every state there is.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Skipped, Self::Error, Self::Timeout, Self::Cancelled];

    /// Its name in every report that has names of ours.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// What to say of it in a sentence: `timed out`, and for the others the name.
    pub fn words(self) -> &'static str {
        if self == Self::Timeout { "timed out" } else { self.name() }
    }

    /// Whether it is neither passed nor skipped.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Passed | Self::Skipped)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An exception of a failed test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// What it says.
    pub message: String,
    /// The full name of its type; empty if unknown.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its stack, a frame a line; empty if unknown.
    pub stack: String,
}

/// A category (no value) or a property of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trait {
    /// The category or the property's name.
    pub key: String,
    /// The property's value; empty for a category.
    pub value: String,
}

/// A place in source code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The path of the file, as the compiler knew it.
    pub file: String,
    /// The line, from 1, if known.
    pub line: Option<u32>,
}

/// A file that a test or a module left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its path.
    pub path: String,
    /// Its name for people; may be empty.
    pub name: String,
    /// What it is; may be empty.
    pub description: String,
}

impl Artifact {
    /// The name, or the file's name if there is none.
    pub fn title(&self) -> &str {
        if self.name.is_empty() {
            self.path.rsplit(['/', '\\']).next().unwrap_or_default()
        } else {
            &self.name
        }
    }

    /// The media type by the file's extension; what is not known is `application/octet-stream`.
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

/// What the platform or a framework says about a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// How important it is.
    pub level: Level,
    /// What it says.
    pub text: String,
}

/// The level of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Something went wrong.
    Error,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
