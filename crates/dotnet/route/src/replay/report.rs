//! What a replay has found: each request with what was recorded, and what is different.

use serde_json::Value;

use runtap_transcript::Fields;

use crate::record::Described;

/// A field that is different.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// What was recorded; `None`: it was not there.
    pub recorded: Option<Value>,
    /// What there is now.
    pub now: Option<Value>,
    /// It says who somebody is, and differs from process to process.
    pub is_identity: bool,
}

/// What has become of a recorded request, or of one that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// As it was recorded.
    Same,
    /// Something is different.
    Differs,
    /// Asked more often than it was recorded; answered once more.
    Repeated,
    /// Nothing like it was recorded; answered with an error.
    Unexpected,
    /// Recorded, and not asked.
    NotAsked,
    /// Not sent: what keeps it from that is told.
    NotSent,
    /// Sent, and not answered.
    Failed,
}

impl Verdict {
    /// How it is written.
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

/// A request that was played, or was to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The recorded connection.
    pub conn: Option<String>,
    /// The line of the transcript with the request.
    pub line: Option<u64>,
    /// The command.
    pub id: Option<u16>,
    /// Its name.
    pub name: Option<&'static str>,
    /// What has become of it.
    pub verdict: Verdict,
    /// What is different, field by field.
    pub differences: Vec<Difference>,
    /// The first byte that is different, from the message's first one.
    pub offset: Option<u64>,
    /// Why it was not sent or answered.
    pub reason: Option<String>,
    /// Bytes of the answer that were sent, or came; as the client, of sessions only.
    pub bytes: Option<u64>,
    /// Bytes of the answer that were recorded.
    pub recorded_bytes: u64,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// In the order in which they were played; at the end those that were not asked.
    pub exchanges: Vec<Exchange>,
}

impl Report {
    /// Whether everything was as it was recorded.
    pub fn is_same(&self) -> bool {
        self.exchanges.iter().all(|exchange| exchange.verdict == Verdict::Same)
    }
}

/// Fields that differ from process to process, and from session to session.
const IDENTITIES: [&str; 3] = ["process_id", "runtime_cookie", "session_id"];

/// Which fields are different, in the order of the recorded ones.
pub(crate) fn differences(recorded: &Fields, now: &Fields) -> Vec<Difference> {
    let find =
        |parts: &Fields, name: &str| parts.iter().find(|part| part.0 == name).map(|part| part.1.clone());
    let mut found = Vec::new();
    for (name, value) in recorded {
        let there = find(now, name);
        if there.as_ref() != Some(value) {
            found.push((name, Some(value.clone()), there));
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

/// The same of two messages, without what may be a secret.
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

/// The first byte that is different.
pub(crate) fn first_difference(recorded: &[u8], now: &[u8]) -> Option<u64> {
    let same = recorded.iter().zip(now).take_while(|(a, b)| a == b).count();
    (same < recorded.len().max(now.len())).then_some(same as u64)
}
