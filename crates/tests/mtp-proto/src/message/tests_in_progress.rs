//! Id 10: running tests. MTP 2.3 to 2.5 define this message but never send it.

use crate::envelope::envelope;

envelope! {
    /// Running tests.
    pub struct TestsInProgress {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// The tests.
        3 "TestInProgressMessageList" => tests: Vec<TestInProgress>,
    }
}

envelope! {
    /// A running test.
    pub struct TestInProgress {
        /// The framework's id of the test.
        1 "Uid" => uid: String,
        /// The display name.
        2 "DisplayName" => display_name: String,
    }
}
