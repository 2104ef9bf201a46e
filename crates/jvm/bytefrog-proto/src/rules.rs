//! The rules of the protocol.
//!
//! Contains the list of rules ([`Rule`]) and [`Violation`]. The modules `hq` and `agent` check the rules of
//! connections; code that orders the events has to check the rest.

use std::fmt;

use runtap_wire::Severity;

runtap_wire::rules! {
    /// A rule of the protocol for agents and HQs.
    pub enum Rule;
    Undecodable "FROG001" Error
        "the bytes are not a valid message of this connection, direction and version"
        "the original agents and HQs close the connection, because messages have no delimiters";
    CutMessage "FROG002" Error
        "the connection ended in the middle of a message"
        "specification, message layouts";
    BeforeHello "FROG003" Error
        "a connection does not start with its hello"
        "specification, hello and data hello";
    SecondHello "FROG004" Error
        "a connection has a second hello"
        "specification, hello";
    UnknownVersion "FROG005" Error
        "the version in hello is unknown, or not accepted"
        "the original HQs answer with the error \"Invalid Protocol Version\"";
    BeforeConfiguration "FROG006" Error
        "the agent sent more than hello before it received a configuration"
        "specification, configuration";
    UnknownRun "FROG007" Error
        "data hello names an unknown run"
        "the original HQs answer with an error";
    BeforeReply "FROG008" Warning
        "data arrived before the reply to data hello"
        "specification, data hello";
    Configuration "FROG009" Error
        "the configuration is invalid"
        "the original agent aborts its JVM";
    LateConfiguration "FROG010" Error
        "a configuration arrived after start"
        "the original agent fails with an error";
    IllegalCommand "FROG011" Error
        "a command arrived in a mode in which it is invalid"
        "the original agent fails with an error; on stop before start it hangs";
    UnknownMode "FROG012" Warning
        "a heartbeat has an unknown mode"
        "specification, heartbeat";
    ModeNotFollowed "FROG013" Warning
        "2 seconds after a command, the agent is not in the mode that the command sets"
        "the original HQ warns at that time";
    HeartbeatMissing "FROG014" Warning
        "no heartbeat arrived for three intervals"
        "the original HQ reports the agent as unhealthy";
    ModeAfterShutdown "FROG015" Warning
        "an agent reports another mode after it reported that it was shutting down"
        "the original agent does not leave that mode";
    EndWithoutShutdown "FROG016" Warning
        "the control connection was closed before a heartbeat reported that the agent was shutting down"
        "the original agent sends at least one such heartbeat";
    AgentError "FROG017" Error
        "the agent reports an error"
        "specification, error";
    Text "FROG018" Warning
        "a text is not modified UTF-8"
        "DataInputStream.readUTF throws UTFDataFormatException";
    SequenceGap "FROG019" Error
        "events are missing: their sequence ids never arrived, or arrived too late"
        "the original HQ waits forever";
    SequenceRepeated "FROG020" Error
        "an event has the sequence id of another event, or of one that was considered lost"
        "the ids of all data connections together are contiguous";
    UnknownMethod "FROG021" Warning
        "events of a method whose signature never arrived"
        "specification, map method signature";
    UnknownException "FROG022" Warning
        "events of an exception whose name never arrived"
        "specification, map exception";
    Remapped "FROG023" Warning
        "an id was mapped a second time, to another name"
        "specification, map method signature: ids must be unique";
    ExitWithoutEntry "FROG024" Warning
        "a call ended that had not started, although no events are missing"
        "in the original agents, the entries are as many as the exits, the bubbles and the calls that are \
         open at the end";
    ClockBackwards "FROG025" Warning
        "the times of a thread's events go backwards"
        "the original agents use the time of day; 1 ms is normal between threads";
    LateBreak "FROG026" Warning
        "a data break arrived after later events had been used"
        "it races with the data connections; the control thread of the original HQ crashes";
    Reserved "FROG027" Error
        "a batch has an event of a kind that F1 does not use"
        "docs/bytefrog-f1.md";
    ThreadReused "FROG028" Error
        "events of a thread arrived after its end"
        "docs/bytefrog-f1.md";
    BeforeProcess "FROG029" Warning
        "an F1 agent sends another message before the description of its process"
        "docs/bytefrog-f1.md";
    ThreadsExhausted "FROG030" Warning
        "all 65,536 thread ids are used: several threads may have the same id"
        "the ids of the original agents wrap without a message";
}

impl Rule {
    /// Returns whether breaking this rule means that events or names are missing.
    pub fn causes_loss(self) -> bool {
        self.severity() == Severity::Error && !self.is_early_end()
    }

    /// Returns whether breaking this rule means that the agent stopped before its program: what was sent until then
    /// may be complete.
    pub fn is_early_end(self) -> bool {
        matches!(self, Self::AgentError | Self::EndWithoutShutdown)
    }
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The details. Texts of the peer are quoted, and truncated if they are long.
    pub detail: String,
    /// The offset in the bytes that the connection received; `None` for a violation that no byte shows.
    pub offset: Option<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.rule.summary(), self.detail)
    }
}

impl Violation {
    /// Creates a violation.
    pub fn new(rule: Rule, detail: impl Into<String>, offset: Option<u64>) -> Self {
        Self { rule, detail: detail.into(), offset }
    }
}

/// Quotes a text of the peer, truncated after 200 characters.
pub(crate) fn quoted(text: crate::JavaStr<'_>) -> String {
    let mut quoted: String = char::decode_utf16(text.units())
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .take(201)
        .collect();
    if quoted.chars().count() > 200 {
        quoted.pop();
        quoted.push('…');
    }
    format!("{quoted:?}")
}
