//! The faults of a recording: broken rules of the protocol, and flaws of the recording itself.

use std::fmt;

use runtap_mtp_proto::{Rule, Severity};

/// A broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A rule of the protocol, broken by the application.
    Protocol(Rule),
    /// A rule of the format, broken by the recorder: the recording may misrepresent the application.
    Recording(Flaw),
}

/// The rules of the recording format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// REC001: a line names a connection that was not opened.
    NotOpened,
    /// REC002: there is a second header.
    SecondHeader,
    /// REC003: an open connection is opened again.
    OpenedTwice,
}

impl Fault {
    /// Returns the stable id: `MTP` or `REC` and three digits.
    pub fn id(self) -> &'static str {
        match self {
            Self::Protocol(rule) => rule.id(),
            Self::Recording(Flaw::NotOpened) => "REC001",
            Self::Recording(Flaw::SecondHeader) => "REC002",
            Self::Recording(Flaw::OpenedTwice) => "REC003",
        }
    }

    /// Returns the severity.
    pub fn severity(self) -> Severity {
        match self {
            Self::Protocol(rule) => rule.severity(),
            Self::Recording(_) => Severity::Error,
        }
    }

    /// Returns a description of the fault in one line.
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

    /// Returns the source of the rule.
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
