//! `runtap.jvm/1`: the results of traces, for scripts. Its members are stable (docs/jvm.md).

use runtap_bytefrog::{Detail, Report};
use runtap_jvm::recording::ClassCounts;
use serde::Serialize;

/// A document of the schema `runtap.jvm/1`.
#[derive(Debug, Serialize)]
pub struct JvmDocument {
    schema: &'static str,
    agents: Vec<AgentDocument>,
}

impl JvmDocument {
    /// Creates a document on these agents, in the order in which they connected.
    pub fn new(agents: Vec<AgentDocument>) -> Self {
        Self { schema: "runtap.jvm/1", agents }
    }
}

/// The result of an agent's trace.
#[derive(Debug, Serialize)]
pub struct AgentDocument {
    /// The version byte of the agent's hello message: 1 to 4, or 241 for runtap's own agent.
    version: u8,
    /// The number of agents whose results are combined; absent for a single agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents_count: Option<u64>,
    run_id: Option<u8>,
    /// `None` if the agent sent coverage without counts, or ended before sending its counts. Also applies to `exits` and
    /// `bubbles`.
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
    /// The number of gaps in the sequence of events, each with one or more missing events.
    gaps: u64,
    /// The number of events that were not received.
    missing: u64,
    /// The number of events that the agent dropped and counted.
    dropped: u64,
    /// The number of drops whose events the agent did not count.
    drops_of_unknown_size: u64,
    /// The number of calls in `entries` that were only counted while others were sent as events; the times do not include them.
    untimed_entries: u64,
    /// The number of events that are missing from all other numbers because a table was full.
    #[serde(skip_serializing_if = "is_none")]
    without_room: u64,
    classes: ClassCounts,
    methods: Vec<MethodDocument>,
}

#[derive(Debug, Serialize)]
struct MethodDocument {
    signature: String,
    /// `None` if the method ran but its calls were not counted. Also applies to `exits` and `exception_exits`.
    entries: Option<u64>,
    exits: Option<u64>,
    exception_exits: Option<u64>,
    /// The time of completed calls; `None` if unknown.
    total_ns: Option<u64>,
    self_ns: Option<u64>,
    /// The number of calls in `entries` that were only counted while others were sent as events; the times do not include them.
    untimed_entries: u64,
}

/// Omits members that were added later if they are 0, so that such documents stay unchanged.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl AgentDocument {
    /// Creates the document of a report that combines several agents.
    pub fn of_several(agents: u64, report: &Report, classes: ClassCounts) -> Self {
        Self { agents_count: Some(agents), ..Self::new(None, report, classes) }
    }

    /// Creates the document of a report on the agent with this run id.
    pub fn new(run: impl Into<Option<u8>>, report: &Report, classes: ClassCounts) -> Self {
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
            // Counted as sent: versions 2 to 4 have exits with a flag instead of bubbles.
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
