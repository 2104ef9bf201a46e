//! Encoding of values that have no type in the public API.

use std::time::Duration;

use runtap_mtp_proto::{SuccessfulTest, TestState};

use crate::TestNode;

/// Returns the message of a started test, which belongs to the list of successful tests.
pub(crate) fn started(test: &TestNode, session: &str) -> SuccessfulTest {
    SuccessfulTest {
        uid: Some(test.uid.clone()),
        display_name: Some(test.display_name.clone()),
        state: Some(TestState::IN_PROGRESS),
        reason: Some(String::new()),
        standard_output: Some(String::new()),
        error_output: Some(String::new()),
        session_uid: Some(session.to_owned()),
        ..SuccessfulTest::default()
    }
}

/// Converts a duration to units of 100 ns.
pub(crate) fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}
