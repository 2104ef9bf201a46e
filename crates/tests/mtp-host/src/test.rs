//! Tests and their outcomes, and their encoding.

use std::fmt;
use std::time::Duration;

use runtap_mtp_proto::{DiscoveredTest, FailedTest, SuccessfulTest, TestException, TestState, TestTrait};

use crate::queue::Entry;
use crate::wire::ticks;

/// A test. Only the uid is required. Other details are sent to servers that request them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestNode {
    pub(crate) uid: String,
    pub(crate) display_name: String,
    file: Option<String>,
    line: Option<u32>,
    namespace: Option<String>,
    type_name: Option<String>,
    method: Option<String>,
    parameter_types: Vec<String>,
    traits: Vec<(String, String)>,
}

impl TestNode {
    /// Creates a test. The uid is the id that filters use: stable across runs, and unique. The uid is also the display
    /// name unless [another](Self::display_name) is set.
    pub fn new(uid: impl Into<String>) -> Self {
        let uid = uid.into();
        Self {
            display_name: uid.clone(),
            uid,
            file: None,
            line: None,
            namespace: None,
            type_name: None,
            method: None,
            parameter_types: Vec::new(),
            traits: Vec::new(),
        }
    }

    /// Returns the uid.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the display name.
    pub fn name(&self) -> &str {
        &self.display_name
    }

    /// Sets the display name.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = name.into();
        self
    }

    /// Sets the location in the source. `line` starts at 1.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32) -> Self {
        self.file = Some(file.into());
        self.line = Some(line);
        self
    }

    /// Sets the namespace or module, which servers can filter by.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the class.
    #[must_use]
    pub fn type_name(mut self, name: impl Into<String>) -> Self {
        self.type_name = Some(name.into());
        self
    }

    /// Sets the method or function.
    #[must_use]
    pub fn method(mut self, name: impl Into<String>) -> Self {
        self.method = Some(name.into());
        self
    }

    /// Adds the type of a parameter of the method.
    #[must_use]
    pub fn parameter_type(mut self, name: impl Into<String>) -> Self {
        self.parameter_types.push(name.into());
        self
    }

    /// Adds a trait, such as a category with an empty value.
    #[must_use]
    pub fn with_trait(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.traits.push((key.into(), value.into()));
        self
    }

    /// Creates a test from a Rust path: `crate::module::name` is split into namespace and method.
    #[must_use]
    pub fn from_rust_path(path: &str) -> Self {
        let node = Self::new(path);
        match path.rsplit_once("::") {
            Some((namespace, method)) => node.namespace(namespace).method(method),
            None => node.method(path),
        }
    }

    /// Converts to a message of discovery. Fields 3 to 9 are included only on request.
    pub(crate) fn discovered(&self, is_ide: bool) -> DiscoveredTest {
        let short = DiscoveredTest {
            uid: Some(self.uid.clone()),
            display_name: Some(self.display_name.clone()),
            ..DiscoveredTest::default()
        };
        if !is_ide {
            return short;
        }
        let traits: Vec<_> = self
            .traits
            .iter()
            .map(|(key, value)| TestTrait { key: Some(key.clone()), value: Some(value.clone()) })
            .collect();
        DiscoveredTest {
            file_path: self.file.clone(),
            line_number: self.line.map(|line| i32::try_from(line).unwrap_or(i32::MAX)),
            namespace: self.namespace.clone(),
            type_name: self.type_name.clone(),
            method_name: self.method.clone(),
            parameter_types: Some(self.parameter_types.clone()).filter(|types| !types.is_empty()),
            traits: Some(traits).filter(|traits| !traits.is_empty()),
            ..short
        }
    }
}

impl From<&str> for TestNode {
    fn from(uid: &str) -> Self {
        Self::new(uid)
    }
}

impl From<String> for TestNode {
    fn from(uid: String) -> Self {
        Self::new(uid)
    }
}

/// The reason why a test did not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    exceptions: Vec<TestException>,
    reason: Option<String>,
    expected: Option<String>,
    actual: Option<String>,
}

impl Failure {
    /// Creates a failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        let exception = TestException { message: Some(message.into()), ..TestException::default() };
        Self { exceptions: vec![exception], ..Self::default() }
    }

    /// Sets the type of the exception or error.
    #[must_use]
    pub fn type_name(mut self, name: impl Into<String>) -> Self {
        if let Some(exception) = self.exceptions.last_mut() {
            exception.type_name = Some(name.into());
        }
        self
    }

    /// Sets the stack trace. `dotnet test` shows lines unchanged, except `   at FUNCTION in FILE:line NUMBER`, which is
    /// shown as a link; [`frame`](Self::frame) writes such a line.
    #[must_use]
    pub fn stack(mut self, stack: impl Into<String>) -> Self {
        if let Some(exception) = self.exceptions.last_mut() {
            exception.stack_trace = Some(stack.into());
        }
        self
    }

    /// Adds a line with a source location to the stack trace. Results have no other field for locations.
    #[must_use]
    pub fn frame(mut self, function: &str, file: &str, line: u32) -> Self {
        if let Some(exception) = self.exceptions.last_mut() {
            let stack = exception.stack_trace.get_or_insert_default();
            if !stack.is_empty() {
                stack.push('\n');
            }
            stack.extend(["   at ", function, " in ", file, ":line ", &line.to_string()]);
        }
        self
    }

    /// Adds an inner exception with this message. Later calls of [`type_name`](Self::type_name), [`stack`](Self::stack)
    /// and [`frame`](Self::frame) apply to the inner exception.
    #[must_use]
    pub fn caused_by(mut self, message: impl Into<String>) -> Self {
        let message = Some(message.into());
        self.exceptions.push(TestException { message, ..TestException::default() });
        self
    }

    /// Sets an explanation in addition to the exception.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets the value that the assertion expected. Shown by servers of MTP 2.4.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Sets the value that the assertion got.
    #[must_use]
    pub fn actual(mut self, actual: impl Into<String>) -> Self {
        self.actual = Some(actual.into());
        self
    }
}

/// Writes the explanation and the messages, the outermost first, one per line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self.exceptions.iter().filter_map(|exception| exception.message.as_deref());
        let all: Vec<_> = self.reason.as_deref().into_iter().chain(messages).collect();
        f.write_str(&all.join("\n"))
    }
}

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The test passed.
    Passed,
    /// The test was skipped, for this reason.
    Skipped(String),
    /// An assertion failed.
    Failed(Failure),
    /// The test failed with another error.
    Error(Failure),
    /// The test timed out.
    TimedOut(Failure),
    /// The test was canceled.
    Cancelled(Failure),
}

impl Outcome {
    /// Returns the state on the wire.
    pub fn state(&self) -> TestState {
        match self {
            Self::Passed => TestState::PASSED,
            Self::Skipped(_) => TestState::SKIPPED,
            Self::Failed(_) => TestState::FAILED,
            Self::Error(_) => TestState::ERROR,
            Self::TimedOut(_) => TestState::TIMEOUT,
            Self::Cancelled(_) => TestState::CANCELLED,
        }
    }
}

/// A result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub(crate) outcome: Outcome,
    duration: Option<Duration>,
    stdout: String,
    stderr: String,
    pub(crate) attempt: Option<(u32, bool)>,
}

impl From<Outcome> for TestResult {
    fn from(outcome: Outcome) -> Self {
        Self::new(outcome)
    }
}

impl TestResult {
    /// Creates a result without duration and output.
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome, duration: None, stdout: String::new(), stderr: String::new(), attempt: None }
    }

    /// Creates the result of a test that passed.
    pub fn passed() -> Self {
        Self::new(Outcome::Passed)
    }

    /// Creates the result of a skipped test, with the reason.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Skipped(reason.into()))
    }

    /// Creates the result of a failed test.
    pub fn failed(failure: Failure) -> Self {
        Self::new(Outcome::Failed(failure))
    }

    /// Returns whether the result makes the run fail.
    pub fn is_failure(&self) -> bool {
        self.outcome.state().is_failed() && !self.attempt.is_some_and(|(_, is_superseded)| is_superseded)
    }

    /// Sets the duration. It is sent in units of 100 ns, and not sent for skipped tests.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Sets the standard output of the test.
    #[must_use]
    pub fn stdout(mut self, text: impl Into<String>) -> Self {
        self.stdout = text.into();
        self
    }

    /// Sets the standard error of the test.
    #[must_use]
    pub fn stderr(mut self, text: impl Into<String>) -> Self {
        self.stderr = text.into();
        self
    }

    /// Sets the number of the attempt, starting at 1, and whether a later attempt replaces this result. For
    /// applications that repeat tests themselves. Servers before MTP 2.4 count each attempt as a test (measured with
    /// SDK 10.0.401).
    #[must_use]
    pub fn attempt(mut self, number: u32, is_superseded: bool) -> Self {
        self.attempt = Some((number, is_superseded));
        self
    }

    pub(crate) fn into_entry(self, test: TestNode, session: &str) -> Entry {
        let state = self.outcome.state();
        let (uid, display_name) = (Some(test.uid), Some(test.display_name));
        let session_uid = Some(session.to_owned());
        let duration = self.duration.filter(|_| state != TestState::SKIPPED).map(ticks);
        let (retry_attempt_number, is_superseded) = match self.attempt {
            Some((number, is_superseded)) => {
                (Some(i32::try_from(number).unwrap_or(i32::MAX)), Some(is_superseded))
            }
            None => (None, None),
        };
        let (standard_output, error_output) = (Some(self.stdout), Some(self.stderr));
        let failure = match self.outcome {
            Outcome::Passed | Outcome::Skipped(_) => {
                let reason = if let Outcome::Skipped(reason) = self.outcome { reason } else { String::new() };
                return Entry::Successful(SuccessfulTest {
                    uid,
                    display_name,
                    state: Some(state),
                    duration,
                    reason: Some(reason),
                    standard_output,
                    error_output,
                    session_uid,
                    retry_attempt_number,
                    is_superseded,
                });
            }
            Outcome::Failed(failure)
            | Outcome::Error(failure)
            | Outcome::TimedOut(failure)
            | Outcome::Cancelled(failure) => failure,
        };
        Entry::Failed(FailedTest {
            uid,
            display_name,
            state: Some(state),
            duration,
            reason: Some(failure.reason.unwrap_or_default()),
            exceptions: Some(failure.exceptions).filter(|exceptions| !exceptions.is_empty()),
            standard_output,
            error_output,
            session_uid,
            expected: failure.expected,
            actual: failure.actual,
            retry_attempt_number,
            is_superseded,
        })
    }
}
