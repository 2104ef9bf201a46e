//! Id 8: the start or the end of a test session.

use crate::envelope::{code, envelope};

code! {
    /// The kind of a session event.
    pub struct SessionEventType {
        /// The session started.
        0 "TestSessionStart" => START,
        /// The session ended.
        1 "TestSessionEnd" => END,
    }
}

envelope! {
    /// The start or the end of a test session. Sent in runs and discoveries. Has no InstanceId.
    pub struct SessionEvent {
        /// The kind of the event.
        1 "SessionType" => session_type: SessionEventType,
        /// The id of the session.
        2 "SessionUid" => session_uid: String,
        /// The id of the run.
        3 "ExecutionId" => execution_id: String,
    }
}
