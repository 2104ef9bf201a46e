//! Id 6: tests that have ended, or, if the server has asked for it, begun.

use crate::envelope::{code, envelope};

code! {
    /// What became of a test.
    pub struct State {
        /// It was found, or has ended without an outcome. Not sent in results.
        0 "Discovered" => DISCOVERED,
        /// It has passed.
        1 "Passed" => PASSED,
        /// It was not run.
        2 "Skipped" => SKIPPED,
        /// It has failed.
        3 "Failed" => FAILED,
        /// It has ended with an exception that is no failed assertion.
        4 "Error" => ERROR,
        /// It took too long.
        5 "Timeout" => TIMEOUT,
        /// It was cancelled.
        6 "Cancelled" => CANCELLED,
        /// It has begun. Sent only if the server has asked for it ([`IS_IDE`](crate::HandshakeKey::IS_IDE)).
        7 "InProgress" => IN_PROGRESS,
    }
}

impl State {
    /// Whether hosts send it in the list of [failed tests](TestResults::failed) (3 to 6).
    pub fn is_failed(self) -> bool {
        (Self::FAILED..=Self::CANCELLED).contains(&self)
    }

    /// Whether hosts send it in the list of [successful tests](TestResults::successful) (1, 2, 7).
    pub fn is_successful(self) -> bool {
        matches!(self, Self::PASSED | Self::SKIPPED | Self::IN_PROGRESS)
    }
}

envelope! {
    /// Tests that have ended or begun.
    pub struct TestResults {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// Passed, skipped and begun tests; hosts send one at a time.
        3 "SuccessfulTestMessageList" => successful: Vec<SuccessfulTest>,
        /// All others.
        4 "FailedTestMessageList" => failed: Vec<FailedTest>,
    }
}

envelope! {
    /// A test that has passed, was skipped, or has begun.
    pub struct SuccessfulTest {
        /// What the framework calls the test. May come twice in one session, with different display names.
        1 "Uid" => uid: String,
        /// What people call it.
        2 "DisplayName" => display_name: String,
        /// What became of it.
        3 "State" => state: State,
        /// How long it took, in units of 100 ns. Hosts pass on whatever the framework says, negative numbers too. Absent for
        /// skipped tests and those that have begun.
        4 "Duration" => duration: i64,
        /// Why it was skipped.
        5 "Reason" => reason: String,
        /// What it wrote to its standard output.
        6 "StandardOutput" => standard_output: String,
        /// What it wrote to its standard error.
        7 "ErrorOutput" => error_output: String,
        /// The session it belongs to.
        8 "SessionUid" => session_uid: String,
        /// Which attempt within the process this was, from 1 on. From MTP 2.4 on, together with the next field, and only if
        /// the framework repeats tests.
        9 "RetryAttemptNumber" => retry_attempt_number: i32,
        /// Whether a later attempt in the same process counts instead.
        10 "IsSuperseded" => is_superseded: bool,
    }
}

envelope! {
    /// A test that has not passed.
    pub struct FailedTest {
        /// As that of [`SuccessfulTest`].
        1 "Uid" => uid: String,
        /// What people call it.
        2 "DisplayName" => display_name: String,
        /// In what way it failed.
        3 "State" => state: State,
        /// How long it took, in units of 100 ns.
        4 "Duration" => duration: i64,
        /// What the framework says beside the exception. Up to MTP 2.0 the exception's message, from 2.3 on often empty.
        5 "Reason" => reason: String,
        /// The exception, the outermost first, then those within it. Absent if there is neither message nor exception.
        6 "ExceptionMessageList" => exceptions: Vec<TestException>,
        /// What it wrote to its standard output.
        7 "StandardOutput" => standard_output: String,
        /// What it wrote to its standard error.
        8 "ErrorOutput" => error_output: String,
        /// The session it belongs to.
        9 "SessionUid" => session_uid: String,
        /// What the assertion wanted. From MTP 2.4 on; may come without the next one.
        10 "Expected" => expected: String,
        /// What it got. From MTP 2.4 on; may come without the one before.
        11 "Actual" => actual: String,
        /// As that of [`SuccessfulTest`].
        12 "RetryAttemptNumber" => retry_attempt_number: i32,
        /// As that of [`SuccessfulTest`].
        13 "IsSuperseded" => is_superseded: bool,
    }
}

impl From<SuccessfulTest> for FailedTest {
    /// The same test, without what only those have that have failed.
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
    /// The same test; what only those have that have failed is left out.
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
    /// An exception. Each of its fields may be missing.
    pub struct TestException {
        /// Its message; in the first one of a test the framework's explanation, if there is one.
        1 "ErrorMessage" => message: String,
        /// The full name of its type.
        2 "ErrorType" => type_name: String,
        /// Where it was thrown, in .NET's form.
        3 "StackTrace" => stack_trace: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_kinds_of_tests_have_survives_the_change() {
        let text = |text: &str| Some(text.to_owned());
        let test = SuccessfulTest {
            uid: text("u"),
            display_name: text("d"),
            state: Some(State::SKIPPED),
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
