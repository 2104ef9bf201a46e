//! Id 8: a test session begins or ends.

use crate::envelope::{code, envelope};

code! {
    /// What happened to a session.
    pub struct SessionEventType {
        /// It begins.
        0 "TestSessionStart" => START,
        /// It has ended.
        1 "TestSessionEnd" => END,
    }
}

envelope! {
    /// A test session begins or ends. Sent in runs and discoveries. It has no InstanceId.
    pub struct SessionEvent {
        /// What happened.
        1 "SessionType" => session_type: SessionEventType,
        /// To which session.
        2 "SessionUid" => session_uid: String,
        /// The run that this belongs to.
        3 "ExecutionId" => execution_id: String,
    }
}
