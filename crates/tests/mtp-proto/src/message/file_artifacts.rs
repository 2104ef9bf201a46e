//! Id 7: files that a run produced.

use crate::envelope::envelope;

envelope! {
    /// Files that a run produced. May be sent after the end of the session, and by a controller on its own connection.
    pub struct FileArtifacts {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// The files.
        3 "FileArtifactMessageList" => artifacts: Vec<FileArtifact>,
    }
}

envelope! {
    /// A file that belongs to a test, to a session (without a test), or to the run (without a test and a session).
    pub struct FileArtifact {
        /// The full path, as seen by the application.
        1 "FullPath" => full_path: String,
        /// The display name.
        2 "DisplayName" => display_name: String,
        /// The description.
        3 "Description" => description: String,
        /// The id of the file's test; empty if the file belongs to no test.
        4 "TestUid" => test_uid: String,
        /// The display name of the file's test.
        5 "TestDisplayName" => test_display_name: String,
        /// The id of the file's session; empty if the file belongs to no session.
        6 "SessionUid" => session_uid: String,
        /// The kind of the file (for example `microsoft.testing.trx`). Since MTP 2.4.
        7 "Kind" => kind: String,
        /// The paths of the files from which this file was merged. Since MTP 2.4.
        8 "InputArtifactPaths" => input_artifact_paths: Vec<String>,
    }
}
