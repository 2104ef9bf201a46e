//! `runtap.jvm/1`: what traces have come to, for scripts. Its members are a contract (docs/jvm.md).

use runtap_bytefrog::{MethodReport, Report};
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

/// An agent's trace.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct AgentDocument {
    /// The byte in its hello: 1 to 4, or 241 for runtap's own.
    version: u8,
    run_id: Option<u8>,
    entries: u64,
    exits: u64,
    exceptions: u64,
    bubbles: u64,
    markers: u64,
    data_breaks: u64,
    signatures: usize,
    threads: usize,
    first_sequence: Option<u64>,
    last_sequence: Option<u64>,
    /// Places where events are missing, one or many.
    gaps: u64,
    classes: Classes,
    methods: Vec<MethodDocument>,
}

#[derive(Debug, Serialize)]
struct MethodDocument {
    signature: String,
    entries: u64,
    exits: u64,
    exception_exits: u64,
    /// Of calls that have ended; `None`: nobody knows any.
    total_ns: Option<u64>,
    self_ns: Option<u64>,
}

impl AgentDocument {
    /// Of a report on the agent with this run.
    pub(in crate::cmd) fn new(run: impl Into<Option<u8>>, report: &Report, classes: Classes) -> Self {
        let counters = &report.counters;
        let methods = report.methods.iter().map(|method| {
            // An agent that sends counts, sends no calls.
            let (calls, thrown) = (method.calls(), method.thrown());
            MethodDocument {
                signature: method.signature.clone(),
                entries: calls,
                exits: if method.entries > 0 { method.exits } else { calls.saturating_sub(thrown) },
                exception_exits: thrown,
                total_ns: method.ended_total(),
                self_ns: method.ended_own(),
            }
        });
        // Of an agent that sends counts, they are what its messages say.
        let counted = |of: fn(&MethodReport) -> u64| -> u64 {
            let sum = report.methods.iter().map(of).fold(0, u64::saturating_add);
            if counters.entries == 0 { sum } else { 0 }
        };
        let ended_by_exceptions = counted(MethodReport::thrown);
        Self {
            version: report.dialect.hello(),
            run_id: run.into(),
            entries: counters.calls(),
            // As they were sent: versions 2 to 4 have no bubbles, but exits with a flag.
            exits: counters.exits.saturating_add(counters.flagged)
                + counted(MethodReport::calls).saturating_sub(ended_by_exceptions),
            exceptions: counters.exceptions,
            bubbles: counters.bubbles.saturating_sub(counters.flagged) + ended_by_exceptions,
            markers: counters.markers,
            data_breaks: counters.data_breaks,
            signatures: report.signatures,
            threads: report.threads.len(),
            first_sequence: report.sequences.map(|(first, _)| first),
            last_sequence: report.sequences.map(|(_, last)| last),
            gaps: counters.gaps,
            classes,
            methods: methods.collect(),
        }
    }
}
