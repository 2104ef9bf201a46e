//! The messages that are envelopes. Every field is optional on the wire; which of them a server needs is for
//! [`server`](crate::server) to say. Ids of executions and instances say to which application and to which of its processes
//! a message belongs.

use crate::code::{ControlKind, Level, SessionKind, State};
use crate::field::envelope;

envelope! {
    /// The options that an application knows (id 3).
    pub struct CommandLineOptions {
        /// The application's file.
        1 module_path: Option<String>,
        /// Its options, sorted by name.
        2 options: Vec<CommandLineOption>,
    }
}

envelope! {
    /// An option.
    pub struct CommandLineOption {
        /// Without dashes.
        1 name: Option<String>,
        /// For people; lines end with CR LF.
        2 description: Option<String>,
        /// Not to be shown.
        3 is_hidden: Option<bool>,
        /// The platform's, not an extension's.
        4 is_built_in: Option<bool>,
        /// Why it should not be used any more; only MTP 2.1 and 2.2.
        5 obsolescence_message: Option<String>,
        /// The extension that it comes from; since MTP 2.5.
        6 provider_uid: Option<String>,
        /// Fewest values; since MTP 2.5.
        7 minimum_arity: Option<i32>,
        /// Most values, `i32::MAX` for any number; since MTP 2.5.
        8 maximum_arity: Option<i32>,
    }
}

envelope! {
    /// Tests that were found (id 5).
    pub struct DiscoveredTests {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// The tests.
        3 tests: Vec<DiscoveredTest>,
    }
}

envelope! {
    /// A test. What follows the name is sent only to who says that it is an IDE; since MTP 1.9.
    pub struct DiscoveredTest {
        /// Its id within the application.
        1 uid: Option<String>,
        /// Its name for people.
        2 display_name: Option<String>,
        /// Its source file.
        3 file_path: Option<String>,
        /// The line there.
        4 line_number: Option<i32>,
        /// The namespace of its type.
        5 namespace: Option<String>,
        /// Its type.
        6 type_name: Option<String>,
        /// Its method.
        7 method_name: Option<String>,
        /// Types of the method's parameters. Written before the traits, out of order.
        9 parameter_types: Vec<String>,
        /// Keys and values, in the reverse of the order in which they were added.
        8 traits: Vec<Trait>,
    }
}

envelope! {
    /// A key with a value.
    pub struct Trait {
        /// The key.
        1 key: Option<String>,
        /// The value.
        2 value: Option<String>,
    }
}

envelope! {
    /// Results of tests (id 6).
    pub struct TestResults {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// Passed, skipped, in progress.
        3 successful: Vec<SuccessfulResult>,
        /// Failed, error, time-out, cancelled.
        4 failed: Vec<FailedResult>,
    }
}

envelope! {
    /// A test that has not failed.
    pub struct SuccessfulResult {
        /// Its id within the application.
        1 uid: Option<String>,
        /// Its name for people.
        2 display_name: Option<String>,
        /// What became of it.
        3 state: Option<State>,
        /// Units of 100 ns. Passed on as its framework gives it: 0, negative, a year.
        4 duration: Option<i64>,
        /// Why it was skipped.
        5 reason: Option<String>,
        /// What it has printed.
        6 standard_output: Option<String>,
        /// What it has printed as errors.
        7 error_output: Option<String>,
        /// The session.
        8 session_uid: Option<String>,
        /// Which attempt within the process; since MTP 2.4.
        9 retry_attempt: Option<i32>,
        /// A later attempt within the process replaces it; since MTP 2.4.
        10 is_superseded: Option<bool>,
    }
}

envelope! {
    /// A test that has failed.
    pub struct FailedResult {
        /// Its id within the application.
        1 uid: Option<String>,
        /// Its name for people.
        2 display_name: Option<String>,
        /// What became of it.
        3 state: Option<State>,
        /// Units of 100 ns.
        4 duration: Option<i64>,
        /// Why, where its framework says so.
        5 reason: Option<String>,
        /// The exception, then those within it.
        6 exceptions: Vec<Exception>,
        /// What it has printed.
        7 standard_output: Option<String>,
        /// What it has printed as errors.
        8 error_output: Option<String>,
        /// The session.
        9 session_uid: Option<String>,
        /// What an assertion expected; since MTP 2.4.
        10 expected: Option<String>,
        /// What it found; since MTP 2.4, also without the other.
        11 actual: Option<String>,
        /// Which attempt within the process; since MTP 2.4.
        12 retry_attempt: Option<i32>,
        /// A later attempt within the process replaces it; since MTP 2.4.
        13 is_superseded: Option<bool>,
    }
}

envelope! {
    /// An exception.
    pub struct Exception {
        /// What it says.
        1 message: Option<String>,
        /// Its type.
        2 type_name: Option<String>,
        /// Where it was thrown.
        3 stack_trace: Option<String>,
    }
}

envelope! {
    /// Files (id 7).
    pub struct FileArtifacts {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// The files.
        3 artifacts: Vec<FileArtifact>,
    }
}

envelope! {
    /// A file.
    pub struct FileArtifact {
        /// Where it is.
        1 full_path: Option<String>,
        /// Its name for people.
        2 display_name: Option<String>,
        /// What it is.
        3 description: Option<String>,
        /// The test that it belongs to; empty for one of a session.
        4 test_uid: Option<String>,
        /// That test's name.
        5 test_display_name: Option<String>,
        /// The session; empty for one that stands alone.
        6 session_uid: Option<String>,
        /// What kind of file, such as `microsoft.testing.trx`; since MTP 2.4.
        7 kind: Option<String>,
        /// The files that it was made of; since MTP 2.4.
        8 input_artifact_paths: Vec<String>,
    }
}

envelope! {
    /// A session begins or ends (id 8).
    pub struct SessionEvent {
        /// Which.
        1 kind: Option<SessionKind>,
        /// Of which session.
        2 session_uid: Option<String>,
        /// The application.
        3 execution_id: Option<String>,
    }
}

envelope! {
    /// Tests that have begun (id 10). No host up to MTP 2.5.2 sends it.
    pub struct TestsInProgress {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// The tests.
        3 tests: Vec<TestInProgress>,
    }
}

envelope! {
    /// A test that has begun.
    pub struct TestInProgress {
        /// Its id within the application.
        1 uid: Option<String>,
        /// Its name for people.
        2 display_name: Option<String>,
    }
}

envelope! {
    /// A line for the log of Azure DevOps (id 11). Since protocol 1.2.0.
    pub struct AzureDevOpsLog {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// The line.
        3 text: Option<String>,
    }
}

envelope! {
    /// A text for the screen (id 12). Since protocol 1.3.0.
    pub struct DisplayMessage {
        /// The application.
        1 execution_id: Option<String>,
        /// Its process.
        2 instance_id: Option<String>,
        /// How important it is.
        3 level: Option<Level>,
        /// The text.
        4 text: Option<String>,
    }
}

envelope! {
    /// What a process is to do (id 14), in reply to its question (id 13). Since protocol 1.4.0.
    pub struct ServerControl {
        /// What.
        1 kind: Option<ControlKind>,
    }
}
