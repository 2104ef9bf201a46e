//! The result of a replay: each request with its recording and the differences.

use serde_json::Value;

use runtap_transcript::Fields;

use crate::record::Described;

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The name of the field.
    pub field: String,
    /// The recorded value; `None` if it was missing.
    pub recorded: Option<Value>,
    /// The current value; `None` if it is missing.
    pub now: Option<Value>,
    /// Whether the field is an identity, which differs between processes.
    pub is_identity: bool,
}

/// The outcome of a recorded request, or of a request that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Equal to the recording.
    Same,
    /// Different from the recording.
    Differs,
    /// Requested more often than recorded; the reply was repeated.
    Repeated,
    /// Not recorded; replied to with an error.
    Unexpected,
    /// Recorded, but not requested.
    NotAsked,
    /// Not sent, for the reason that is given.
    NotSent,
    /// Sent, but not replied to.
    Failed,
}

impl Verdict {
    /// Returns the name as written in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Repeated => "repeated",
            Self::Unexpected => "unexpected",
            Self::NotAsked => "not-asked",
            Self::NotSent => "not-sent",
            Self::Failed => "failed",
        }
    }
}

/// A request that was played or should have been.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The recorded connection.
    pub conn: Option<String>,
    /// The line of the transcript with the request.
    pub line: Option<u64>,
    /// The number of the command.
    pub id: Option<u16>,
    /// The name of the command.
    pub name: Option<&'static str>,
    /// The outcome.
    pub verdict: Verdict,
    /// The differences, field by field.
    pub differences: Vec<Difference>,
    /// The offset in the message of the first byte that differs.
    pub offset: Option<u64>,
    /// The reason why the request was not sent or not replied to.
    pub reason: Option<String>,
    /// The number of bytes of the reply that were sent or received; as the client, for sessions only.
    pub bytes: Option<u64>,
    /// The number of bytes of the recorded reply.
    pub recorded_bytes: u64,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The exchanges in the order in which they were played, followed by those that were not requested.
    pub exchanges: Vec<Exchange>,
}

impl Report {
    /// Returns whether everything was equal to the recording.
    pub fn is_same(&self) -> bool {
        self.exchanges.iter().all(|exchange| exchange.verdict == Verdict::Same)
    }
}

/// Fields that differ between processes and sessions.
const IDENTITIES: [&str; 3] = ["process_id", "runtime_cookie", "session_id"];

/// Returns the fields that differ, in the order of the recorded ones.
pub(crate) fn differences(recorded: &Fields, now: &Fields) -> Vec<Difference> {
    let find =
        |parts: &Fields, name: &str| parts.iter().find(|part| part.0 == name).map(|part| part.1.clone());
    let mut found = Vec::new();
    for (name, value) in recorded {
        let current = find(now, name);
        if current.as_ref() != Some(value) {
            found.push((name, Some(value.clone()), current));
        }
    }
    for (name, value) in now {
        if find(recorded, name).is_none() {
            found.push((name, None, Some(value.clone())));
        }
    }
    let difference = |(name, recorded, now): (&String, _, _)| Difference {
        field: name.clone(),
        recorded,
        now,
        is_identity: IDENTITIES.contains(&name.as_str()),
    };
    found.into_iter().map(difference).collect()
}

/// Returns the differences of two messages, with possible secrets masked.
pub(crate) fn differences_of(recorded: Option<&Described>, now: Option<&Described>) -> Vec<Difference> {
    let parts = |described: Option<&Described>| described.map(|it| it.fields.clone()).unwrap_or_default();
    let mut found = differences(&parts(recorded), &parts(now));
    let masked = |described: Option<&Described>| parts(described.cloned().map(Described::masked).as_ref());
    let (hidden_then, hidden_now) = (masked(recorded), masked(now));
    for difference in &mut found {
        let hidden =
            |parts: &Fields| parts.iter().find(|part| part.0 == difference.field).map(|part| part.1.clone());
        (difference.recorded, difference.now) = (hidden(&hidden_then), hidden(&hidden_now));
    }
    found
}

/// Returns the offset of the first byte that differs; `None` if the messages are equal.
pub(crate) fn first_difference(recorded: &[u8], now: &[u8]) -> Option<u64> {
    let same = recorded.iter().zip(now).take_while(|(a, b)| a == b).count();
    (same < recorded.len().max(now.len())).then_some(same as u64)
}
