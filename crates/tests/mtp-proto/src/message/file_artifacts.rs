//! Id 7: files that a run has produced.

use crate::envelope::envelope;

envelope! {
    /// Files that a run has produced. May come after the end of the session, and from a controller on its own connection.
    pub struct FileArtifacts {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// The files.
        3 "FileArtifactMessageList" => artifacts: Vec<FileArtifact>,
    }
}

envelope! {
    /// A file: of a test, of a session (then without test), or of the run (then without session, too).
    pub struct FileArtifact {
        /// Where it is, in the view of the application.
        1 "FullPath" => full_path: String,
        /// What people call it.
        2 "DisplayName" => display_name: String,
        /// What it is.
        3 "Description" => description: String,
        /// The test it belongs to; empty if none.
        4 "TestUid" => test_uid: String,
        /// That test's name.
        5 "TestDisplayName" => test_display_name: String,
        /// The session it belongs to; empty if none.
        6 "SessionUid" => session_uid: String,
        /// What kind of file it is (`microsoft.testing.trx`). From MTP 2.4 on.
        7 "Kind" => kind: String,
        /// The files of which it was made. From MTP 2.4 on.
        8 "InputArtifactPaths" => input_artifact_paths: Vec<String>,
    }
}
