//! The rules that an application must follow, each with an id that does not change.

use std::fmt;

/// How bad it is to break a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// `dotnet test` takes it; better not.
    Warning,
    /// The application has failed. What it says beside that can be used.
    Error,
    /// Nothing that the connection says can be believed any more.
    Fatal,
}

macro_rules! rules {
    ($( $(#[doc = $doc:literal])* $rule:ident = $id:literal, $severity:ident, $summary:literal, $source:literal; )*) => {
        /// A rule of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $( #[doc = $summary] $rule, )*
        }

        impl Rule {
            /// All of them, in the order of their ids.
            pub const ALL: &'static [Self] = &[$( Self::$rule, )*];

            /// Its id, which does not change.
            pub fn id(self) -> &'static str {
                match self { $( Self::$rule => $id, )* }
            }

            /// How bad it is to break it.
            pub fn severity(self) -> Severity {
                match self { $( Self::$rule => Severity::$severity, )* }
            }

            /// What it demands.
            pub fn summary(self) -> &'static str {
                match self { $( Self::$rule => $summary, )* }
            }

            /// Who says so: the draft's guidelines, or what `dotnet test` does about it.
            pub fn source(self) -> &'static str {
                match self { $( Self::$rule => $source, )* }
            }
        }
    };
}

rules! {
    FrameLength = "MTP001", Fatal, "A frame has a length of at least 4 that is accepted.", "the SDK never replies again";
    Body = "MTP002", Fatal, "A body can be decoded.", "the SDK never replies again";
    HandshakeFirst = "MTP003", Fatal, "The first message of a connection is a handshake; in help mode, platforms before 2.3 send their options without one.", "draft; the SDK dies";
    HandshakeOnce = "MTP004", Fatal, "There is one handshake on a connection.", "draft; the SDK dies";
    HandshakeProperties = "MTP005", Fatal, "A handshake has architecture, framework, versions, host type, execution id and, from a test host, instance id.", "the SDK dies or rejects it";
    CommonVersion = "MTP006", Fatal, "The host speaks a version of the protocol that the server knows.", "draft; the SDK rejects it";
    OneApplication = "MTP007", Error, "All processes of an application have the same architecture, framework and execution id.", "draft; the SDK dies";
    ExecutionMode = "MTP008", Error, "A process does what it was asked for: run, discover or help.", "newest SDK rejects it";
    HostType = "MTP009", Warning, "The host type is a known one.", "draft";
    TestHostFirst = "MTP010", Error, "Tests, results and files come after the handshake of a test host.", "the SDK dies";
    ExecutionId = "MTP011", Error, "A message has the execution id of the handshake.", "the SDK dies";
    InstanceId = "MTP012", Error, "A message has the instance id of a handshake.", "the SDK dies";
    RequiredField = "MTP013", Error, "A test has a uid, a file a path, a session event its type and session.", "the SDK dies";
    ResultState = "MTP014", Error, "A result has a state that is one.", "the SDK dies";
    StateList = "MTP015", Warning, "Failed states are in the list of failed results, others in the other one.", "the SDK counts by the state";
    SessionKind = "MTP016", Error, "A session event is a start or an end.", "the SDK dies";
    SessionOrder = "MTP017", Error, "A session ends after it has begun.", "draft; the SDK dies";
    SessionEnd = "MTP018", Error, "An application that exits with 0 has ended every session that it began.", "the SDK makes the module fail";
    MessageInMode = "MTP019", Error, "Options come in help mode, and nothing else does.", "the SDK dies";
    MessageInVersion = "MTP020", Warning, "A message is not sent before the version that has brought it.", "draft";
    OneRequest = "MTP021", Warning, "A request is sent when the one before it has been answered.", "the SDK hangs";
    WholeFrames = "MTP022", Error, "A connection does not end within a frame.", "the SDK complains";
    UnknownMessage = "MTP023", Warning, "A message is a known one; others are skipped.", "draft";
    Direction = "MTP024", Error, "A host sends requests, not replies.", "draft";
    ResultInSession = "MTP025", Warning, "Results come within a session.", "draft; the SDK takes them";
    AttemptNumber = "MTP026", Error, "An attempt number is a positive number.", "hosts refuse it";
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// On which connection of the application, from 0 on; `None` where it is the whole application's.
    pub connection: Option<u64>,
    /// Where in the connection's bytes.
    pub offset: Option<u64>,
    /// What there was, in words.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.id(), self.detail)?;
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset})")?;
        }
        write!(f, "; {}", self.rule.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_each_is_one() {
        let ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id().to_owned()).collect();
        let expected: Vec<_> = (1..=ids.len()).map(|n| format!("MTP{n:03}")).collect();
        assert_eq!(ids, expected);
    }
}
