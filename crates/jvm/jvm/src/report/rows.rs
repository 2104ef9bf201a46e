//! The rows of each kind of report.

use std::sync::Arc;

use runtap_bytefrog::{CallTree, MethodReport, Report, readable};
use runtap_bytefrog_proto::ClassOutcome;
use runtap_bytefrog_proto::f1::strip_loaded_before;
use runtap_model::order;
use serde::{Serialize, Serializer};

use crate::recording::{LoadedAgent, Order};

/// A text shared by many rows: a method name may have 64 KiB and occur in each of a million paths.
#[derive(Debug, Clone)]
pub struct SharedText(Arc<str>);

impl SharedText {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The readable name of a method. Holds the shared signature and derives the name when written.
#[derive(Debug, Clone)]
pub struct MethodName(Arc<str>);

impl MethodName {
    /// Returns the readable name.
    pub fn text(&self) -> String {
        readable(&self.0)
    }
}

impl Serialize for MethodName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// A method.
#[derive(Debug, Serialize)]
pub struct MethodRow {
    /// The signature.
    pub signature: String,
    /// The readable name.
    pub name: String,
    /// The number of calls. `None` if the method has run but its calls were not counted. Also applies to `exits` and
    /// `exception_exits`.
    pub entries: Option<u64>,
    /// The number of calls that returned.
    pub exits: Option<u64>,
    /// The number of calls that an exception ended.
    pub exception_exits: Option<u64>,
    /// The number of exceptions that the method threw.
    pub throws: u64,
    /// The time of completed calls including callees; `None` if unknown.
    pub total_ns: Option<u64>,
    /// The time of completed calls without callees; `None` if unknown.
    pub self_ns: Option<u64>,
    /// The number of calls whose end was not received.
    pub without_end: u64,
    /// The number of calls in `entries` that were only counted while others were sent as events; the times do not include them.
    pub untimed_entries: u64,
    /// The observed time of calls without an end, which is not part of the other times.
    pub total_so_far_ns: u64,
    /// The part of `total_so_far_ns` without callees.
    pub self_so_far_ns: u64,
}

impl MethodRow {
    /// Returns the time of all calls with callees, as a lower bound.
    pub fn total(&self) -> Option<u64> {
        at_least(self.total_ns, self.total_so_far_ns)
    }

    /// Returns the time of all calls without callees, as a lower bound.
    pub fn own(&self) -> Option<u64> {
        at_least(self.self_ns, self.self_so_far_ns)
    }
}

/// Adds the observed time of calls without an end.
fn at_least(ended: Option<u64>, so_far: u64) -> Option<u64> {
    ended.or_else(|| (so_far > 0).then_some(0)).map(|time| time.saturating_add(so_far))
}

/// A method of the call tree. A row follows its caller and is one level deeper.
#[derive(Debug, Serialize)]
pub struct NodeRow {
    /// The number of callers.
    pub depth: usize,
    /// The signature.
    pub signature: SharedText,
    /// The readable name.
    pub name: MethodName,
    /// The number of calls.
    pub calls: u64,
    /// The time of completed calls including callees; `None` if no call has completed.
    pub total_ns: Option<u64>,
    /// The time of completed calls without callees; `None` if no call has completed.
    pub self_ns: Option<u64>,
    /// The number of calls that an exception ended.
    pub exception_exits: u64,
    /// The number of calls whose end was not received.
    pub cut: u64,
    /// The number of calls that had not ended.
    pub open: u64,
    /// The observed time of calls without an end, which is not part of the other times.
    pub total_so_far_ns: u64,
    /// The part of `total_so_far_ns` without callees.
    pub self_so_far_ns: u64,
}

impl NodeRow {
    /// Returns the time of all calls with callees, as a lower bound.
    pub fn total(&self) -> Option<u64> {
        at_least(self.total_ns, self.total_so_far_ns)
    }

    /// Returns the time of all calls without callees, as a lower bound.
    pub fn own(&self) -> Option<u64> {
        at_least(self.self_ns, self.self_so_far_ns)
    }
}

/// A site of an exception.
#[derive(Debug, Serialize)]
pub struct ExceptionRow {
    /// The class of the exception.
    pub exception: SharedText,
    /// What happened to the exception.
    pub fate: &'static str,
    /// The signature of the method.
    pub signature: SharedText,
    /// The readable name of the method.
    pub name: MethodName,
    /// The line; `None` if unknown.
    pub line: Option<u16>,
    /// The number of times.
    pub count: u64,
}

/// A segment: from a marker to the next marker with its key.
#[derive(Debug, Serialize)]
pub struct SegmentRow {
    /// The key of the marker.
    pub key: String,
    /// The value of the marker.
    pub value: String,
    /// The time of the marker, by the agent's clock.
    pub start_ns: i64,
    /// The end of the segment; `None` if the segment has not ended.
    pub end_ns: Option<i64>,
    /// The number of calls that started in the segment.
    pub calls: u64,
    /// Whether the calls of some methods are missing because a table was full.
    pub truncated: bool,
    /// The methods that were called in the segment.
    pub methods: Vec<SegmentMethod>,
}

/// A method that was called in a segment.
#[derive(Debug, Serialize)]
pub struct SegmentMethod {
    signature: SharedText,
    calls: u64,
}

/// A slow call.
#[derive(Debug, Serialize)]
pub struct SlowRow {
    /// The duration of the call.
    pub took_ns: u64,
    /// The start of the call, by the agent's clock.
    pub start_ns: i64,
    /// The id of the thread.
    pub thread: u32,
    /// The callers, outermost first, and the call itself; at most the last 256 of them.
    pub path: Vec<MethodName>,
    /// The number of callers plus one.
    pub depth: usize,
}

/// A thread.
#[derive(Debug, Serialize)]
pub struct ThreadRow {
    /// The agent's id of the thread.
    pub id: u32,
    /// The name of the thread; `None` if unknown.
    pub name: Option<String>,
    /// The number of calls.
    pub entries: u64,
    /// The time of the outermost calls, including the observed time of calls without an end.
    pub total_ns: u64,
    /// Whether the thread has ended; reported by runtap's agent only.
    pub ended: bool,
}

/// A class.
#[derive(Debug, Serialize)]
pub struct ClassRow {
    /// The name of the class.
    pub class: String,
    /// What the agent did with the class.
    pub outcome: &'static str,
    /// The number of the agent's reports on the class: one per class loader.
    pub count: u64,
    /// Whether the JVM had loaded the class before the trace started.
    pub loaded_before: bool,
}

pub(super) fn methods(report: &Report, order: Order) -> Vec<MethodRow> {
    let row = |method: &MethodReport| {
        let calls = method.calls();
        MethodRow {
            signature: method.signature.clone(),
            name: readable(&method.signature),
            entries: (calls > 0).then_some(calls),
            exits: method.counts_ends().then(|| method.returns()),
            exception_exits: method.counts_ends().then(|| method.thrown()),
            throws: method.throws,
            total_ns: method.ended_total(),
            self_ns: method.ended_own(),
            without_end: method.without_end(),
            untimed_entries: method.untimed(),
            total_so_far_ns: method.so_far,
            self_so_far_ns: method.own_so_far,
        }
    };
    let mut rows: Vec<MethodRow> = report.methods.iter().filter(|method| method.has_run).map(row).collect();
    order::sort_by_key(&mut rows, |row| {
        let first = match order {
            Order::Own => row.own(),
            Order::Total => row.total(),
            Order::Calls => row.entries,
        };
        std::cmp::Reverse((first, row.own(), row.total(), row.entries))
    });
    rows
}

pub(super) fn tree(agent: &LoadedAgent, report: &Report, thread: Option<u32>) -> Vec<NodeRow> {
    let model = &agent.replayed.model;
    let tree = match thread {
        None => model.call_tree(None),
        Some(id) => match report.threads.iter().position(|thread| thread.id == id) {
            Some(index) => model.call_tree(Some(index)),
            None => CallTree::default(),
        },
    };
    let signatures: Vec<Arc<str>> = tree.signatures.into_iter().map(Arc::from).collect();
    let row = |row: &runtap_bytefrog::TreeRow| {
        let signature = signatures.get(row.signature).map_or_else(|| Arc::from(""), Arc::clone);
        NodeRow {
            depth: row.depth,
            name: MethodName(Arc::clone(&signature)),
            signature: SharedText(signature),
            calls: row.calls,
            total_ns: row.is_timed().then_some(row.inclusive),
            self_ns: row.is_timed().then_some(row.own),
            exception_exits: row.thrown,
            cut: row.cut,
            open: row.open,
            total_so_far_ns: row.so_far,
            self_so_far_ns: row.own_so_far,
        }
    };
    tree.rows.iter().map(row).collect()
}

pub(super) fn exceptions(report: &Report) -> Vec<ExceptionRow> {
    let mut rows: Vec<ExceptionRow> = report
        .exceptions
        .iter()
        .map(|place| ExceptionRow {
            exception: SharedText(Arc::clone(&place.exception)),
            fate: place.fate.name(),
            signature: SharedText(Arc::clone(&place.signature)),
            name: MethodName(Arc::clone(&place.signature)),
            line: place.line,
            count: place.count,
        })
        .collect();
    order::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.count));
    rows
}

pub(super) fn segments(report: &Report) -> Vec<SegmentRow> {
    let method = |(signature, calls): &(Arc<str>, u64)| SegmentMethod {
        signature: SharedText(Arc::clone(signature)),
        calls: *calls,
    };
    report
        .segments
        .iter()
        .map(|row| SegmentRow {
            key: row.segment.key.to_string(),
            value: row.segment.value.to_string(),
            start_ns: row.segment.start,
            end_ns: row.segment.end,
            calls: row.segment.entries,
            truncated: row.segment.truncated,
            methods: row.calls.iter().map(method).collect(),
        })
        .collect()
}

pub(super) fn slow(report: &Report) -> Vec<SlowRow> {
    report
        .slow_calls
        .iter()
        .map(|call| SlowRow {
            took_ns: call.took,
            start_ns: call.start,
            thread: call.thread,
            path: call.path.iter().map(|signature| MethodName(Arc::clone(signature))).collect(),
            depth: call.depth,
        })
        .collect()
}

pub(super) fn threads(agent: &LoadedAgent, report: &Report) -> Vec<ThreadRow> {
    let each = report.threads.iter().zip(agent.replayed.model.thread_totals());
    each.map(|(thread, total_ns)| ThreadRow {
        id: thread.id,
        name: thread.name.clone(),
        entries: thread.entries,
        total_ns,
        ended: thread.ended,
    })
    .collect()
}

pub(super) fn classes(agent: &LoadedAgent) -> Vec<ClassRow> {
    let rank = |outcome: ClassOutcome| match outcome {
        ClassOutcome::Failed => (0, "failed"),
        ClassOutcome::Transformed => (1, "transformed"),
        ClassOutcome::Ignored => (2, "ignored"),
    };
    let mut rows: Vec<_> = agent.replayed.classes.iter().collect();
    order::sort_by_key(&mut rows, |((outcome, class), _)| (rank(*outcome).0, class));
    rows.into_iter()
        .map(|((outcome, report), count)| {
            let (class, loaded_before) = strip_loaded_before(report);
            ClassRow {
                class: class.replace('/', "."),
                outcome: rank(*outcome).1,
                count: *count,
                loaded_before,
            }
        })
        .collect()
}
