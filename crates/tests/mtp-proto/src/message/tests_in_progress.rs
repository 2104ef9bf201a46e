//! Id 10: tests that run. MTP 2.3 to 2.5 know the message and never send it.

use crate::envelope::envelope;

envelope! {
    /// Tests that run.
    pub struct TestsInProgress {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// The tests.
        3 "TestInProgressMessageList" => tests: Vec<TestInProgress>,
    }
}

envelope! {
    /// A test that runs.
    pub struct TestInProgress {
        /// What the framework calls it.
        1 "Uid" => uid: String,
        /// What people call it.
        2 "DisplayName" => display_name: String,
    }
}
