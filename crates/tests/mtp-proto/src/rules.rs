//! The rules of the protocol, and violations of them.
//!
//! The rules are checked by `server` and `host`.

use std::fmt;

use crate::server::ConnectionId;

runtap_wire::rules! {
    /// A rule that test applications have to follow.
    pub enum Rule;
    FrameLength "MTP001" Error
        "the length of a frame is negative, below 4, or too large"
        "MTP 2.5 rejects it; the SDK 10.0.401 stops responding";
    Undecodable "MTP002" Error
        "the body of a message does not follow the format"
        "draft, \"General protocol message format\"; the SDK 10.0.401 stops responding";
    Overlap "MTP003" Error
        "a request was sent before the reply to the previous request"
        "the SDK throws \"overlapping\"; 10.0.401 stops responding";
    CutFrame "MTP004" Error
        "the connection ended in the middle of a frame"
        "draft, \"General protocol message format\"";
    BeforeHandshake "MTP005" Error
        "a message arrived before the handshake"
        "draft, \"Implementation guidelines\"; the SDK ends with FailFast";
    SecondHandshake "MTP006" Error
        "a connection has a second handshake"
        "the SDK ends with FailFast";
    HandshakeProperty "MTP007" Error
        "the handshake lacks a required property"
        "draft, \"Handshake request\"; the SDK 10.0.401 ends with FailFast, newer versions reject the \
         application";
    OldPlatform "MTP008" Error
        "the application was built with Microsoft.Testing.Platform 1.6 or older, whose messages have a \
         different layout"
        "dotnet/sdk#48912";
    NoCommonVersion "MTP009" Error
        "the two sides support no common version of the protocol"
        "draft, \"Handshake response\"; the SDK rejects the application";
    HandshakeMismatch "MTP010" Error
        "processes of one application differ in ExecutionId, architecture or framework"
        "draft, \"Implementation guidelines\"; the SDK ends with FailFast or rejects the application";
    ModuleMismatch "MTP011" Warning
        "processes of one application differ in module path or supported versions"
        "draft, \"Implementation guidelines\"; the SDK does not compare them";
    ExecutionMode "MTP012" Error
        "the host is not in the requested mode (run, discover, help)"
        "the SDK rejects the application since .NET 11; 10.0.401 accepts it";
    HostType "MTP013" Warning
        "the host type is unknown"
        "the SDK 10.0.401 ends with FailFast as soon as such a host sends results";
    ModulePath "MTP014" Warning
        "the handshake has no module path"
        "draft, \"Handshake request\"; the SDK 10.0.401 accepts it";
    AttemptNumber "MTP015" Warning
        "the attempt number is not a positive number"
        "MTP 2.4 does not start with such a number";
    AfterRejection "MTP016" Error
        "a message arrived after the handshake was rejected"
        "the SDK 10.0.401 ends with FailFast";
    ExecutionId "MTP017" Error
        "a message has no ExecutionId, or one that differs from the ExecutionId of the handshake"
        "draft, \"Implementation guidelines\"; the SDK ends with FailFast";
    InstanceId "MTP018" Error
        "a message has no InstanceId, or an unknown one"
        "draft, \"Implementation guidelines\"; the SDK ends with FailFast";
    NoTestHost "MTP019" Error
        "tests, results or artifacts arrived before the handshake of a test host"
        "the SDK ends with FailFast";
    WrongHost "MTP020" Warning
        "tests, results or session events arrived from a process that is not a test host"
        "draft, \"Implementation guidelines\"; the SDK does not check it";
    HelpMode "MTP021" Error
        "a message other than command-line options arrived in help mode"
        "draft, \"Modes of operation\"; the SDK ends with FailFast";
    UnexpectedOptions "MTP022" Error
        "command-line options arrived outside of help mode"
        "draft, \"Command line options\"; the SDK ends with FailFast";
    DiscoveryMode "MTP023" Warning
        "results or artifacts arrived in discovery mode"
        "draft, \"Test result message\" and \"File artifact message\"; the SDK does not check it";
    MissingField "MTP024" Error
        "a message lacks a required field"
        "draft, \"Implementation guidelines\"; the SDK ends with FailFast; 10.0.401 accepts some of them";
    State "MTP025" Error
        "a result has an invalid state"
        "the SDK ends with FailFast";
    WrongList "MTP026" Warning
        "a failed test is in the list of passed tests, or a passed test in that of failed tests"
        "the SDK 10.0.401 uses the state";
    SessionType "MTP027" Error
        "a session event is neither start nor end"
        "the SDK ends with FailFast";
    SessionEnd "MTP028" Error
        "a session ended that had not started"
        "the SDK ends with FailFast";
    SessionTwice "MTP029" Warning
        "a session started twice"
        "draft, \"Implementation guidelines\"; the SDK counts starts and ends";
    SessionOpen "MTP030" Error
        "the application exited with code 0 during a session"
        "the SDK reports \"a test session start event was received without a corresponding test session end\"";
    OutsideSession "MTP031" Warning
        "tests or results arrived outside of their session"
        "draft, \"Implementation guidelines\"; the SDK does not check it";
    NoSession "MTP032" Warning
        "the application exited with code 0 without a session"
        "draft, \"Implementation guidelines\"; the SDK does not check it";
    NeverConnected "MTP033" Error
        "the application exited without the handshake of a test host"
        "the SDK reports a handshake failure";
    NoOptions "MTP034" Warning
        "the application exited in help mode without sending command-line options"
        "draft, \"Command line options\"";
    FailedButZero "MTP035" Warning
        "tests failed, but the exit code is 0"
        "the SDK 10.0.401 prints \"Failed!\" and exits with code 0";
    UnknownMessage "MTP036" Warning
        "a message has an unknown id"
        "draft, \"Implementation guidelines\"; the SDK answers and ignores it";
    NotNegotiated "MTP037" Warning
        "a message belongs to a newer version than the negotiated one"
        "the SDK 10.0.401 answers and ignores it";
    WrongPipe "MTP038" Warning
        "a message arrived that is not sent in this direction or on this pipe"
        "the sources of Microsoft.Testing.Platform have one direction and one pipe for each message";
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The connection. `None` if the violation concerns the application as a whole.
    pub connection: Option<ConnectionId>,
    /// The details. Texts of the peer are quoted, and truncated if they are long.
    pub detail: String,
    /// The offset of the invalid bytes or the invalid frame in the bytes received on the connection.
    pub offset: Option<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.rule.summary(), self.detail)
    }
}
