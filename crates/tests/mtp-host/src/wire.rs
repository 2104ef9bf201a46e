//! Parts of results that the wire knows and applications do not.

use std::time::Duration;

use runtap_mtp_proto::{State, SuccessfulTest};

use crate::TestNode;

/// That a test has begun: the list of successful ones has it.
pub(crate) fn begun(test: &TestNode, session: &str) -> SuccessfulTest {
    SuccessfulTest {
        uid: Some(test.uid.clone()),
        display_name: Some(test.display_name.clone()),
        state: Some(State::IN_PROGRESS),
        reason: Some(String::new()),
        standard_output: Some(String::new()),
        error_output: Some(String::new()),
        session_uid: Some(session.to_owned()),
        ..SuccessfulTest::default()
    }
}

/// In units of 100 ns.
pub(crate) fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}
