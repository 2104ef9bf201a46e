//! Reports on replayed recordings: the rows of one kind for each agent, as in the documents `runtap.jvm.KIND/1`.

mod losses;
mod parts;
mod rows;

use runtap_bytefrog::{Detail, Report};
use serde::Serialize;

use crate::recording::{LoadedAgent, LoadedRecording, Order};

pub use self::losses::{DamageRow, Losses, RuleRow};
pub use self::parts::{PartRow, Parts};
pub use self::rows::{
    ClassRow, ExceptionRow, MethodName, MethodRow, NodeRow, SegmentMethod, SegmentRow, SharedText, SlowRow,
    ThreadRow,
};

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// The methods that ran.
    Methods,
    /// The call tree.
    Tree,
    /// The sites of exceptions.
    Exceptions,
    /// The segments between markers, and marked parts.
    Segments,
    /// The slowest calls.
    Slow,
    /// The threads.
    Threads,
    /// The classes.
    Classes,
    /// Missing events and protocol violations.
    Losses,
}

impl ReportKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Methods,
        Self::Tree,
        Self::Exceptions,
        Self::Segments,
        Self::Slow,
        Self::Threads,
        Self::Classes,
        Self::Losses,
    ];

    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Methods => "methods",
            Self::Tree => "tree",
            Self::Exceptions => "exceptions",
            Self::Segments => "segments",
            Self::Slow => "slow",
            Self::Threads => "threads",
            Self::Classes => "classes",
            Self::Losses => "losses",
        }
    }

    /// Describes the report in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Methods => "Methods: number of calls, time with and without callees",
            Self::Tree => "Call tree",
            Self::Exceptions => "Exceptions: where they were thrown, raised, swallowed and escaped",
            Self::Segments => "Segments between markers, and marked parts",
            Self::Slow => "The slowest calls, with their callers",
            Self::Threads => "Threads",
            Self::Classes => "Classes: transformed, ignored, failed",
            Self::Losses => "Missing events and protocol violations",
        }
    }

    /// Returns the name of the document: `runtap.jvm.KIND/1`.
    pub fn schema(self) -> String {
        format!("runtap.jvm.{}/1", self.name())
    }
}

/// The selection and order of the rows of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowOptions {
    /// The order of methods.
    pub order: Order,
    /// The thread whose call tree is reported; `None` for all threads.
    pub thread: Option<u32>,
    /// The maximum number of rows; `None` for all.
    pub limit: Option<usize>,
}

/// The rows of a report on an agent, or on several agents together.
#[derive(Debug, Serialize)]
pub struct AgentRows {
    /// The name of the agent in the recording, or `all`.
    pub agent: String,
    /// The agent, described in one line.
    #[serde(skip)]
    pub title: String,
    /// The level of detail that the agent reported.
    #[serde(skip)]
    pub detail: Detail,
    /// The rows.
    #[serde(flatten)]
    pub rows: Rows,
    /// The marked parts of the recording; only in reports of segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
}

/// The rows of a report, serialized under the name of its kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Methods that ran.
    Methods(Vec<MethodRow>),
    /// The call tree.
    Tree(Vec<NodeRow>),
    /// The sites of exceptions.
    Exceptions(Vec<ExceptionRow>),
    /// The segments between markers.
    Segments(Vec<SegmentRow>),
    /// The slowest calls.
    Slow(Vec<SlowRow>),
    /// The threads.
    Threads(Vec<ThreadRow>),
    /// The classes.
    Classes(Vec<ClassRow>),
    /// The losses.
    Losses(Box<Losses>),
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

/// Returns the rows of a report, for each agent of a recording.
pub fn rows(kind: ReportKind, loaded: &LoadedRecording, options: &RowOptions) -> Vec<AgentRows> {
    let first = loaded.agents.first().filter(|_| kind == ReportKind::Segments);
    let parts = first.map(|agent| Parts::of(&agent.recorded.marks));
    let agent = |agent: &LoadedAgent| {
        let report = agent.report();
        let mut rows = match kind {
            ReportKind::Methods => Rows::Methods(rows::methods(&report, options.order)),
            ReportKind::Tree => Rows::Tree(rows::tree(agent, &report, options.thread)),
            ReportKind::Exceptions => Rows::Exceptions(rows::exceptions(&report)),
            ReportKind::Segments => Rows::Segments(rows::segments(&report)),
            ReportKind::Slow => Rows::Slow(rows::slow(&report)),
            ReportKind::Threads => Rows::Threads(rows::threads(agent, &report)),
            ReportKind::Classes => Rows::Classes(rows::classes(agent)),
            ReportKind::Losses => Rows::Losses(Box::new(Losses::new(agent, &report))),
        };
        rows.truncate(options.limit.unwrap_or(usize::MAX));
        AgentRows {
            agent: agent.replayed.agent.clone(),
            title: agent.title(),
            detail: report.detail(),
            rows,
            parts: parts.clone(),
        }
    };
    loaded.agents.iter().map(agent).collect()
}

/// Returns the methods of a report on several agents.
pub fn merged_methods(report: &Report, title: String, options: &RowOptions) -> AgentRows {
    let mut rows = Rows::Methods(rows::methods(report, options.order));
    rows.truncate(options.limit.unwrap_or(usize::MAX));
    AgentRows { agent: "all".to_owned(), title, detail: report.detail(), rows, parts: None }
}
