//! The rules of the protocol, and what it is to break one.
//!
//! Owns: the list of rules ([`Rule`]) and [`Violation`]. Refuses to: check
//! anything. `hq` and `agent` check what is said on connections; whoever puts the events in order checks the rest.

use std::fmt;

use runtap_wire::Severity;

runtap_wire::rules! {
    /// A rule that agents and HQs have to follow.
    pub enum Rule;
    Undecodable "FROG001" Error
        "bytes are no message of this connection, direction and version"
        "both original sides end the connection: there are no delimiters";
    CutMessage "FROG002" Error
        "the connection ended in the middle of a message"
        "specification, message layouts";
    BeforeHello "FROG003" Error
        "a connection does not begin with its hello"
        "specification, hello and data hello";
    SecondHello "FROG004" Error
        "a connection says hello twice"
        "specification, hello";
    UnknownVersion "FROG005" Error
        "the version in hello is not known, or not accepted"
        "original HQs answer with the error \"Invalid Protocol Version\"";
    BeforeConfiguration "FROG006" Error
        "the agent sent more than hello before it had a configuration"
        "specification, configuration";
    UnknownRun "FROG007" Error
        "data hello names a run that is not there"
        "original HQs answer with an error";
    BeforeReply "FROG008" Warning
        "data came before the reply to data hello"
        "specification, data hello";
    Configuration "FROG009" Error
        "the configuration can't be read"
        "the original agent ends its JVM";
    LateConfiguration "FROG010" Error
        "a configuration came after start"
        "the original agent ends with an error";
    IllegalCommand "FROG011" Error
        "a command came in a mode that does not have it"
        "the original agent ends with an error; on stop before start it hangs";
    UnknownMode "FROG012" Warning
        "a heartbeat has a mode that is not known"
        "specification, heartbeat";
    ModeNotFollowed "FROG013" Warning
        "2 seconds after a command the agent is not in the mode that it leads to"
        "the original HQ is concerned then";
    HeartbeatMissing "FROG014" Warning
        "no heartbeat came for three intervals"
        "the original HQ calls it unhealthy";
    ModeAfterShutdown "FROG015" Warning
        "an agent that was shutting down says another mode"
        "the original agent does not leave that mode";
    EndWithoutShutdown "FROG016" Warning
        "the control connection ended and no heartbeat had said that the agent was shutting down"
        "the original agent sends at least one such heartbeat";
    AgentError "FROG017" Error
        "the agent reports an error"
        "specification, error";
    Text "FROG018" Warning
        "a text is not modified UTF-8"
        "DataInputStream.readUTF throws UTFDataFormatException";
    SequenceGap "FROG019" Error
        "events are missing: their sequence ids never came, or too late"
        "the original HQ waits for ever";
    SequenceRepeated "FROG020" Error
        "an event has the sequence id of another one, or one that was given up"
        "the ids of all data connections together are contiguous";
    UnknownMethod "FROG021" Warning
        "events of a method whose signature never came"
        "specification, map method signature";
    UnknownException "FROG022" Warning
        "events of an exception whose name never came"
        "specification, map exception";
    Remapped "FROG023" Warning
        "an id was given to something else"
        "specification, map method signature: ids must be unique";
    ExitWithoutEntry "FROG024" Warning
        "a call ended that had not begun, though nothing was missing"
        "in the original agents entries equal exits and bubbles and what is open at the end";
    ClockBackwards "FROG025" Warning
        "the clock of a thread goes back"
        "the original agents use the time of day; 1 ms is normal between threads";
    LateBreak "FROG026" Warning
        "a data break was told when events behind it had been used"
        "it races the data connections; the original HQ's control thread dies of it";
    Reserved "FROG027" Error
        "a batch has an event of a kind that F1 does not use"
        "docs/bytefrog-f1.md";
    ThreadReused "FROG028" Error
        "events of a thread came after its end"
        "docs/bytefrog-f1.md";
    BeforeProcess "FROG029" Warning
        "an F1 agent does not begin with its process"
        "docs/bytefrog-f1.md";
    ThreadsExhausted "FROG030" Warning
        "all 65,536 ids of threads are used: threads may have shared one"
        "the original agents wrap silently";
}

impl Rule {
    /// Whether something of what the agent had to say is missing when it is broken.
    pub fn loses(self) -> bool {
        self.severity() == Severity::Error && !self.is_early_end()
    }

    /// Whether it tells that an agent has ended before its program has: what was sent until then may be whole.
    pub fn is_early_end(self) -> bool {
        matches!(self, Self::AgentError | Self::EndWithoutShutdown)
    }
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub rule: Rule,
    /// What exactly it was. Texts of the other side are quoted, and cut if they are long.
    pub detail: String,
    /// Where in what the connection has received.
    pub offset: Option<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.rule.summary(), self.detail)
    }
}

impl Violation {
    /// A broken rule.
    pub fn new(rule: Rule, detail: impl Into<String>, offset: Option<u64>) -> Self {
        Self { rule, detail: detail.into(), offset }
    }
}

/// A text of the other side for a sentence: quoted, and cut after 200 characters.
pub(crate) fn quoted(text: crate::JavaStr<'_>) -> String {
    let mut cut: String = char::decode_utf16(text.units())
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .take(201)
        .collect();
    if cut.chars().count() > 200 {
        cut.pop();
        cut.push('…');
    }
    format!("{cut:?}")
}
