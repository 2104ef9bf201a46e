//! Id 6: test results and, on request, started tests.

use crate::envelope::{code, envelope};

code! {
    /// The state of a test.
    pub struct TestState {
        /// The test was found, or ended without an outcome. Not sent in results.
        0 "Discovered" => DISCOVERED,
        /// The test passed.
        1 "Passed" => PASSED,
        /// The test was skipped.
        2 "Skipped" => SKIPPED,
        /// The test failed.
        3 "Failed" => FAILED,
        /// The test ended with an exception that is not a failed assertion.
        4 "Error" => ERROR,
        /// The test timed out.
        5 "Timeout" => TIMEOUT,
        /// The test was canceled.
        6 "Cancelled" => CANCELLED,
        /// The test started. Sent only on request ([`IS_IDE`](crate::HandshakeKey::IS_IDE)).
        7 "InProgress" => IN_PROGRESS,
    }
}

impl TestState {
    /// Returns whether hosts send a test with this state in the list of [failed tests](TestResults::failed) (3 to 6).
    pub fn is_failed(self) -> bool {
        (Self::FAILED..=Self::CANCELLED).contains(&self)
    }

    /// Returns whether hosts send a test with this state in the list of [successful tests](TestResults::successful) (1,
    /// 2, 7).
    pub fn is_successful(self) -> bool {
        matches!(self, Self::PASSED | Self::SKIPPED | Self::IN_PROGRESS)
    }
}

envelope! {
    /// Results of tests, and started tests.
    pub struct TestResults {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// Passed, skipped and started tests. Hosts send one at a time.
        3 "SuccessfulTestMessageList" => successful: Vec<SuccessfulTest>,
        /// All other tests.
        4 "FailedTestMessageList" => failed: Vec<FailedTest>,
    }
}

envelope! {
    /// A test that passed, was skipped, or started.
    pub struct SuccessfulTest {
        /// The framework's id of the test. May occur twice in one session, with different display names.
        1 "Uid" => uid: String,
        /// The display name.
        2 "DisplayName" => display_name: String,
        /// The state.
        3 "State" => state: TestState,
        /// The duration in units of 100 ns. Hosts forward what the framework reports, including negative numbers.
        /// Absent for skipped and started tests.
        4 "Duration" => duration: i64,
        /// The reason why the test was skipped.
        5 "Reason" => reason: String,
        /// The standard output of the test.
        6 "StandardOutput" => standard_output: String,
        /// The standard error of the test.
        7 "ErrorOutput" => error_output: String,
        /// The id of the test's session.
        8 "SessionUid" => session_uid: String,
        /// The attempt within the process, starting at 1. Since MTP 2.4, together with the next field, and only if the
        /// framework repeats tests.
        9 "RetryAttemptNumber" => retry_attempt_number: i32,
        /// Whether a later attempt in the same process replaces this result.
        10 "IsSuperseded" => is_superseded: bool,
    }
}

envelope! {
    /// A test that did not pass.
    pub struct FailedTest {
        /// The framework's id of the test; see [`SuccessfulTest::uid`].
        1 "Uid" => uid: String,
        /// The display name.
        2 "DisplayName" => display_name: String,
        /// The state.
        3 "State" => state: TestState,
        /// The duration in units of 100 ns.
        4 "Duration" => duration: i64,
        /// The framework's explanation. Up to MTP 2.0 the message of the exception; since MTP 2.3 often empty.
        5 "Reason" => reason: String,
        /// The exception and its inner exceptions, the outermost first. Absent if there is neither a message nor an
        /// exception.
        6 "ExceptionMessageList" => exceptions: Vec<TestException>,
        /// The standard output of the test.
        7 "StandardOutput" => standard_output: String,
        /// The standard error of the test.
        8 "ErrorOutput" => error_output: String,
        /// The id of the test's session.
        9 "SessionUid" => session_uid: String,
        /// The value that the assertion expected. Since MTP 2.4; may be present without `actual`.
        10 "Expected" => expected: String,
        /// The value that the assertion got. Since MTP 2.4; may be present without `expected`.
        11 "Actual" => actual: String,
        /// The attempt within the process; see [`SuccessfulTest::retry_attempt_number`].
        12 "RetryAttemptNumber" => retry_attempt_number: i32,
        /// Whether a later attempt replaces this result; see [`SuccessfulTest::is_superseded`].
        13 "IsSuperseded" => is_superseded: bool,
    }
}

impl From<SuccessfulTest> for FailedTest {
    /// Converts the test; fields that only failed tests have are `None`.
    fn from(test: SuccessfulTest) -> Self {
        let SuccessfulTest {
            uid,
            display_name,
            state,
            duration,
            reason,
            standard_output,
            error_output,
            session_uid,
            retry_attempt_number,
            is_superseded,
        } = test;
        Self {
            uid,
            display_name,
            state,
            duration,
            reason,
            standard_output,
            error_output,
            session_uid,
            retry_attempt_number,
            is_superseded,
            ..Self::default()
        }
    }
}

impl From<FailedTest> for SuccessfulTest {
    /// Converts the test; fields that only failed tests have are dropped.
    fn from(test: FailedTest) -> Self {
        let FailedTest {
            uid,
            display_name,
            state,
            duration,
            reason,
            exceptions: _,
            standard_output,
            error_output,
            session_uid,
            expected: _,
            actual: _,
            retry_attempt_number,
            is_superseded,
        } = test;
        Self {
            uid,
            display_name,
            state,
            duration,
            reason,
            standard_output,
            error_output,
            session_uid,
            retry_attempt_number,
            is_superseded,
        }
    }
}

envelope! {
    /// An exception. Any of its fields may be missing.
    pub struct TestException {
        /// The message. For the first exception of a test, the framework's explanation, if there is one.
        1 "ErrorMessage" => message: String,
        /// The full name of the exception's type.
        2 "ErrorType" => type_name: String,
        /// The stack trace, in .NET's format.
        3 "StackTrace" => stack_trace: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_both_kinds_of_tests_survive_conversion() {
        let text = |text: &str| Some(text.to_owned());
        let test = SuccessfulTest {
            uid: text("u"),
            display_name: text("d"),
            state: Some(TestState::SKIPPED),
            duration: Some(1),
            reason: text("r"),
            standard_output: text("o"),
            error_output: text("e"),
            session_uid: text("s"),
            retry_attempt_number: Some(2),
            is_superseded: Some(true),
        };
        let failed = FailedTest::from(test.clone());
        assert_eq!((&failed.exceptions, &failed.expected, &failed.actual), (&None, &None, &None));
        let with_more = FailedTest { expected: text("1"), actual: text("2"), ..failed };
        assert_eq!(SuccessfulTest::from(with_more), test);
    }
}
