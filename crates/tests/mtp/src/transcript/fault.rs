//! What can be wrong with a recording: a rule of the protocol that was broken, or the recording itself.

use std::fmt;

use runtap_mtp_proto::{Rule, Severity};

/// A rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Of the protocol, by the application.
    Protocol(Rule),
    /// Of the format, by whoever has written the recording: what it says of the application may be wrong.
    Recording(Flaw),
}

/// Rules that recordings have to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// REC001: a line of a connection that was not opened.
    NotOpened,
    /// REC002: another header.
    SecondHeader,
    /// REC003: a connection is opened that is open.
    OpenedTwice,
}

impl Fault {
    /// The stable id: `MTP` or `REC`, and three digits.
    pub fn id(self) -> &'static str {
        match self {
            Self::Protocol(rule) => rule.id(),
            Self::Recording(Flaw::NotOpened) => "REC001",
            Self::Recording(Flaw::SecondHeader) => "REC002",
            Self::Recording(Flaw::OpenedTwice) => "REC003",
        }
    }

    /// What follows from breaking it.
    pub fn severity(self) -> Severity {
        match self {
            Self::Protocol(rule) => rule.severity(),
            Self::Recording(_) => Severity::Error,
        }
    }

    /// What is wrong when it is broken, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Protocol(rule) => rule.summary(),
            Self::Recording(Flaw::NotOpened) => {
                "a recording has a line of a connection that no 'open' line has named"
            }
            Self::Recording(Flaw::SecondHeader) => {
                "a recording has several headers: it is not that of one start of an application"
            }
            Self::Recording(Flaw::OpenedTwice) => "a recording opens a connection that is open",
        }
    }

    /// Where the rule comes from.
    pub fn source(self) -> &'static str {
        match self {
            Self::Protocol(rule) => rule.source(),
            Self::Recording(_) => "docs/mtp-transcripts.md, \"The format\"",
        }
    }
}

impl From<Rule> for Fault {
    fn from(rule: Rule) -> Self {
        Self::Protocol(rule)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
