//! `runtap.jvm/1`: what traces have come to, for scripts. Its members are a contract (docs/jvm.md).

use runtap_bytefrog::{Detail, Report};
use serde::Serialize;

/// `runtap.jvm/1`
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct JvmDocument {
    schema: &'static str,
    agents: Vec<AgentDocument>,
}

impl JvmDocument {
    /// Of these agents, in the order in which they said hello.
    pub(in crate::cmd) fn new(agents: Vec<AgentDocument>) -> Self {
        Self { schema: "runtap.jvm/1", agents }
    }
}

/// Classes, by what became of them when they were loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(in crate::cmd) struct Classes {
    pub(in crate::cmd) transformed: u64,
    pub(in crate::cmd) ignored: u64,
    pub(in crate::cmd) failed: u64,
}

impl Classes {
    /// Both together.
    pub(in crate::cmd) fn and(self, other: Self) -> Self {
        Self {
            transformed: self.transformed.saturating_add(other.transformed),
            ignored: self.ignored.saturating_add(other.ignored),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

/// An agent's trace.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct AgentDocument {
    /// The byte in its hello: 1 to 4, or 241 for runtap's own.
    version: u8,
    /// Of so many agents together, if it is not of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents_count: Option<u64>,
    run_id: Option<u8>,
    /// `None`: the agent told which methods ran, and counted no call, or it ended before it had sent what it had counted. The same holds for `exits` and `bubbles`.
    entries: Option<u64>,
    exits: Option<u64>,
    exceptions: u64,
    bubbles: Option<u64>,
    markers: u64,
    data_breaks: u64,
    signatures: usize,
    threads: usize,
    first_sequence: Option<u64>,
    last_sequence: Option<u64>,
    /// Places where events are missing, one or many.
    gaps: u64,
    /// Events that never came.
    missing: u64,
    /// Events that the agent has dropped, as far as it has counted them.
    dropped: u64,
    /// Drops that the agent has not counted.
    drops_of_unknown_size: u64,
    /// Of `entries`, calls that were only counted although others were sent as events: no time has them.
    untimed_entries: u64,
    /// Events that are in no other number, for lack of room.
    #[serde(skip_serializing_if = "is_none")]
    without_room: u64,
    classes: Classes,
    methods: Vec<MethodDocument>,
}

#[derive(Debug, Serialize)]
struct MethodDocument {
    signature: String,
    /// `None`: it ran, and nobody has counted how often. The same holds for the two below.
    entries: Option<u64>,
    exits: Option<u64>,
    exception_exits: Option<u64>,
    /// Of calls that have ended; `None`: nobody knows any.
    total_ns: Option<u64>,
    self_ns: Option<u64>,
    /// Of `entries`, calls that were only counted although others were sent as events: the times are without them.
    untimed_entries: u64,
}

/// Members for it came later: where there is none, the document is as it was.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl AgentDocument {
    /// Of a report on so many agents together.
    pub(in crate::cmd) fn of_several(agents: u64, report: &Report, classes: Classes) -> Self {
        Self { agents_count: Some(agents), ..Self::new(None, report, classes) }
    }

    /// Of a report on the agent with this run.
    pub(in crate::cmd) fn new(run: impl Into<Option<u8>>, report: &Report, classes: Classes) -> Self {
        let counters = &report.counters;
        let methods = report.methods.iter().map(|method| {
            let is_counted = method.calls() > 0 || !method.has_run;
            MethodDocument {
                signature: method.signature.clone(),
                entries: is_counted.then(|| method.calls()),
                exits: is_counted.then(|| method.returns()),
                exception_exits: is_counted.then(|| method.thrown()),
                total_ns: method.ended_total(),
                self_ns: method.ended_own(),
                untimed_entries: method.untimed(),
            }
        });
        let counts_calls = !matches!(report.detail(), Detail::Coverage | Detail::Unsent);
        let counted = |of: fn((u64, u64, u64)) -> u64| -> u64 {
            let counted = report.methods.iter().filter_map(|method| method.counted);
            counted.map(of).fold(0, u64::saturating_add)
        };
        let ended_by_exceptions = counted(|(_, thrown, _)| thrown);
        Self {
            version: report.dialect.hello(),
            agents_count: None,
            run_id: run.into(),
            entries: counts_calls.then(|| counters.calls()),
            // As they were sent: versions 2 to 4 have no bubbles, but exits with a flag.
            exits: counts_calls.then(|| {
                let returned = counted(|(calls, thrown, _)| calls.saturating_sub(thrown));
                counters.exits.saturating_add(counters.flagged).saturating_add(returned)
            }),
            exceptions: counters.exceptions,
            bubbles: counts_calls.then(|| {
                counters.bubbles.saturating_sub(counters.flagged).saturating_add(ended_by_exceptions)
            }),
            markers: counters.markers,
            data_breaks: counters.data_breaks,
            signatures: report.signatures,
            threads: report.threads.len(),
            first_sequence: report.sequences.map(|(first, _)| first),
            last_sequence: report.sequences.map(|(_, last)| last),
            gaps: counters.gaps,
            missing: counters.missing,
            dropped: counters.dropped,
            drops_of_unknown_size: counters.drops_unknown,
            untimed_entries: counters.counted_besides(),
            without_room: report.beyond,
            classes,
            methods: methods.collect(),
        }
    }
}
