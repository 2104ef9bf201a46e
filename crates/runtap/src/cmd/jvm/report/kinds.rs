//! The rows of each kind of report: `runtap.jvm.KIND/1`. Module `tables` prints them.

use std::sync::Arc;

use runtap_bytefrog::{CallTree, Detail, MethodReport, Report, readable};
use runtap_bytefrog_proto::ClassOutcome;
use runtap_bytefrog_proto::f1::strip_loaded_before;
use runtap_jvm::recording::Order;
use serde::{Serialize, Serializer};

use super::super::text::fate;
use super::load::{LoadedAgent, LoadedRecording, Operand};
use super::losses::{Losses, losses};
use super::marked::Parts;
use super::refuse;
use crate::cli::{JvmKind, JvmReport};

/// A document of the schema `runtap.jvm.KIND/1`.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    schema: String,
    recording: String,
    pub(super) agents: Vec<AgentRows>,
}

#[derive(Debug, Serialize)]
pub(super) struct AgentRows {
    pub(super) agent: String,
    #[serde(skip)]
    pub(super) title: String,
    #[serde(skip)]
    pub(super) detail: Detail,
    #[serde(flatten)]
    pub(super) rows: Rows,
    /// The marked parts of the recording; only in reports of segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<Parts>,
}

/// The rows of a report, serialized under the name of its kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rows {
    Methods(Vec<MethodRow>),
    Tree(Vec<NodeRow>),
    Exceptions(Vec<ExceptionRow>),
    Segments(Vec<SegmentRow>),
    Slow(Vec<SlowRow>),
    Threads(Vec<ThreadRow>),
    Classes(Vec<ClassRow>),
    Losses(Box<Losses>),
}

/// A text shared by many rows: a method name may have 64 KiB and occur in each of a million paths.
#[derive(Debug, Clone)]
pub(super) struct SharedText(pub(super) Arc<str>);

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The readable name of a method. Holds the shared signature and derives the name when written.
#[derive(Debug, Clone)]
pub(super) struct MethodName(Arc<str>);

impl MethodName {
    pub(super) fn text(&self) -> String {
        readable(&self.0)
    }
}

impl Serialize for MethodName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct MethodRow {
    pub(super) signature: String,
    pub(super) name: String,
    /// `None` if the method has run but its calls were not counted. Also applies to `exits` and `exception_exits`.
    pub(super) entries: Option<u64>,
    pub(super) exits: Option<u64>,
    pub(super) exception_exits: Option<u64>,
    pub(super) throws: u64,
    /// The time of completed calls; `None` if unknown.
    pub(super) total_ns: Option<u64>,
    pub(super) self_ns: Option<u64>,
    /// The number of calls whose end was not received.
    pub(super) without_end: u64,
    /// The number of calls in `entries` that were only counted while others were sent as events; the times do not include them.
    pub(super) untimed_entries: u64,
    /// The observed time of calls without an end, which is not part of the other times.
    pub(super) total_so_far_ns: u64,
    pub(super) self_so_far_ns: u64,
}

impl MethodRow {
    /// Returns the time of all calls with callees, as a lower bound.
    pub(super) fn total(&self) -> Option<u64> {
        at_least(self.total_ns, self.total_so_far_ns)
    }

    /// Returns the time of all calls without callees, as a lower bound.
    pub(super) fn own(&self) -> Option<u64> {
        at_least(self.self_ns, self.self_so_far_ns)
    }
}

/// Adds the observed time of calls without an end.
pub(super) fn at_least(ended: Option<u64>, so_far: u64) -> Option<u64> {
    ended.or_else(|| (so_far > 0).then_some(0)).map(|time| time.saturating_add(so_far))
}

/// A row follows its caller and is one level deeper.
#[derive(Debug, Serialize)]
pub(super) struct NodeRow {
    pub(super) depth: usize,
    pub(super) signature: SharedText,
    pub(super) name: MethodName,
    pub(super) calls: u64,
    /// The time of completed calls; `None` if no call has completed.
    pub(super) total_ns: Option<u64>,
    pub(super) self_ns: Option<u64>,
    pub(super) exception_exits: u64,
    /// The number of calls whose end was not received.
    pub(super) cut: u64,
    /// The number of calls that had not ended.
    pub(super) open: u64,
    /// The observed time of calls without an end, which is not part of the other times.
    pub(super) total_so_far_ns: u64,
    pub(super) self_so_far_ns: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct ExceptionRow {
    pub(super) exception: SharedText,
    pub(super) fate: &'static str,
    pub(super) signature: SharedText,
    pub(super) name: MethodName,
    pub(super) line: Option<u16>,
    pub(super) count: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct SegmentRow {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) start_ns: i64,
    pub(super) end_ns: Option<i64>,
    pub(super) calls: u64,
    /// Whether the calls of some methods are missing because a table was full.
    pub(super) truncated: bool,
    pub(super) methods: Vec<SegmentMethod>,
}

#[derive(Debug, Serialize)]
pub(super) struct SegmentMethod {
    signature: SharedText,
    calls: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct SlowRow {
    pub(super) took_ns: u64,
    pub(super) start_ns: i64,
    pub(super) thread: u32,
    /// The callers, outermost first, and the call itself; at most the last 256 of them.
    pub(super) path: Vec<MethodName>,
    /// The number of callers plus one.
    pub(super) depth: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct ThreadRow {
    pub(super) id: u32,
    pub(super) name: Option<String>,
    pub(super) entries: u64,
    /// The time of the outermost calls, including the observed time of calls without an end.
    pub(super) total_ns: u64,
    /// Whether the thread has ended; reported by runtap's agent only.
    pub(super) ended: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ClassRow {
    pub(super) class: String,
    pub(super) outcome: &'static str,
    /// The number of the agent's reports on the class: one per class loader.
    pub(super) count: u64,
    /// Whether the JVM had loaded the class before the trace started.
    pub(super) loaded_before: bool,
}

/// Creates the document of a report; JSON is limited to the requested number of rows.
///
/// # Errors
/// Fails if no agent has the requested thread.
pub(super) fn document(
    kind: JvmKind,
    options: &JvmReport,
    operand: &Operand,
    loaded: &LoadedRecording,
) -> anyhow::Result<Document> {
    if let Some(thread) = options.thread {
        refuse::unknown_thread(thread, operand, loaded)?;
    }
    let first = loaded.agents.first().filter(|_| kind == JvmKind::Segments);
    let parts = first.map(|agent| Parts::of(&agent.recorded.marks));
    let agent = |agent: &LoadedAgent| {
        let report = agent.report();
        let mut rows = match kind {
            JvmKind::Methods => {
                Rows::Methods(methods(&report, options.sort.map(Into::into).unwrap_or_default()))
            }
            JvmKind::Tree => Rows::Tree(tree(agent, &report, options.thread)),
            JvmKind::Exceptions => Rows::Exceptions(exceptions(&report)),
            JvmKind::Segments => Rows::Segments(segments(&report)),
            JvmKind::Slow => Rows::Slow(slow(&report)),
            JvmKind::Threads => Rows::Threads(threads(agent, &report)),
            JvmKind::Classes => Rows::Classes(classes(agent)),
            JvmKind::Losses => Rows::Losses(Box::new(losses(agent, &report))),
        };
        if let Some(number) = options.number.filter(|number| *number > 0 && options.is_json()) {
            rows.truncate(number);
        }
        AgentRows {
            agent: agent.replayed.agent.clone(),
            title: agent.title(),
            detail: report.detail(),
            rows,
            parts: parts.clone(),
        }
    };
    Ok(Document {
        schema: format!("runtap.jvm.{}/1", name(kind)),
        recording: operand.label(),
        agents: loaded.agents.iter().map(agent).collect(),
    })
}

/// Creates the report of the methods of all agents together.
pub(super) fn merged(options: &JvmReport, operand: &Operand, title: String, report: &Report) -> Document {
    let mut rows = Rows::Methods(methods(report, options.sort.map(Into::into).unwrap_or_default()));
    if let Some(number) = options.number.filter(|number| *number > 0 && options.is_json()) {
        rows.truncate(number);
    }
    let agent = AgentRows { agent: "all".to_owned(), title, detail: report.detail(), rows, parts: None };
    Document {
        schema: format!("runtap.jvm.{}/1", name(JvmKind::Methods)),
        recording: operand.label(),
        agents: vec![agent],
    }
}

fn name(kind: JvmKind) -> &'static str {
    match kind {
        JvmKind::Methods => "methods",
        JvmKind::Tree => "tree",
        JvmKind::Exceptions => "exceptions",
        JvmKind::Segments => "segments",
        JvmKind::Slow => "slow",
        JvmKind::Threads => "threads",
        JvmKind::Classes => "classes",
        JvmKind::Losses => "losses",
    }
}

impl Rows {
    fn truncate(&mut self, number: usize) {
        match self {
            Self::Methods(rows) => rows.truncate(number),
            Self::Tree(rows) => rows.truncate(number),
            Self::Exceptions(rows) => rows.truncate(number),
            Self::Segments(rows) => rows.truncate(number),
            Self::Slow(rows) => rows.truncate(number),
            Self::Threads(rows) => rows.truncate(number),
            Self::Classes(rows) => rows.truncate(number),
            Self::Losses(_) => {}
        }
    }
}

fn methods(report: &Report, order: Order) -> Vec<MethodRow> {
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
    rows.sort_by_key(|row| {
        let first = match order {
            Order::Own => row.own(),
            Order::Total => row.total(),
            Order::Calls => row.entries,
        };
        std::cmp::Reverse((first, row.own(), row.total(), row.entries))
    });
    rows
}

fn tree(agent: &LoadedAgent, report: &Report, thread: Option<u32>) -> Vec<NodeRow> {
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

fn exceptions(report: &Report) -> Vec<ExceptionRow> {
    let mut rows: Vec<ExceptionRow> = report
        .exceptions
        .iter()
        .map(|place| ExceptionRow {
            exception: SharedText(Arc::clone(&place.exception)),
            fate: fate(place.fate),
            signature: SharedText(Arc::clone(&place.signature)),
            name: MethodName(Arc::clone(&place.signature)),
            line: place.line,
            count: place.count,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

fn segments(report: &Report) -> Vec<SegmentRow> {
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

fn slow(report: &Report) -> Vec<SlowRow> {
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

fn threads(agent: &LoadedAgent, report: &Report) -> Vec<ThreadRow> {
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

fn classes(agent: &LoadedAgent) -> Vec<ClassRow> {
    let rank = |outcome: ClassOutcome| match outcome {
        ClassOutcome::Failed => (0, "failed"),
        ClassOutcome::Transformed => (1, "transformed"),
        ClassOutcome::Ignored => (2, "ignored"),
    };
    let mut rows: Vec<_> = agent.replayed.classes.iter().collect();
    rows.sort_by_key(|((outcome, class), _)| (rank(*outcome).0, class));
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
