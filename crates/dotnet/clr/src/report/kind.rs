//! The kinds of reports.

use runtap_model::View;

/// A kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// Time by method and thread: [`CpuReport`](super::CpuReport).
    Cpu,
    /// Collections, pauses and heap sizes: [`GcReport`](super::GcReport).
    Gc,
    /// Allocations by type and method: [`AllocReport`](super::AllocReport).
    Alloc,
    /// Exceptions by type: [`ExceptionsReport`](super::ExceptionsReport).
    Exceptions,
    /// Waits for locks by method: [`ContentionReport`](super::ContentionReport).
    Contention,
    /// Methods compiled at run time: [`JitReport`](super::JitReport).
    Jit,
    /// Threads of the thread pool: [`ThreadPoolReport`](super::ThreadPoolReport).
    Threadpool,
    /// HTTP requests, received and sent: [`HttpReport`](super::HttpReport).
    Http,
    /// The number of events by kind: [`EventsReport`](super::EventsReport).
    Events,
    /// Events that the target dropped: [`LossReport`](super::LossReport).
    Loss,
    /// Meters and event counters: [`CountersReport`](super::CountersReport).
    Counters,
    /// Log messages: [`LogsReport`](super::LogsReport).
    Logs,
    /// Objects by type: [`HeapEvents`](crate::HeapEvents).
    Heap,
}

impl ReportKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Cpu,
        Self::Gc,
        Self::Alloc,
        Self::Exceptions,
        Self::Contention,
        Self::Jit,
        Self::Threadpool,
        Self::Http,
        Self::Events,
        Self::Loss,
        Self::Counters,
        Self::Logs,
        Self::Heap,
    ];

    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::Alloc => "alloc",
            Self::Exceptions => "exceptions",
            Self::Contention => "contention",
            Self::Jit => "jit",
            Self::Threadpool => "threadpool",
            Self::Http => "http",
            Self::Events => "events",
            Self::Loss => "loss",
            Self::Counters => "counters",
            Self::Logs => "logs",
            Self::Heap => "heap",
        }
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Cpu => "Where the time went, by method and by thread",
            Self::Gc => "Garbage collections, pauses and heap sizes",
            Self::Alloc => "Allocated bytes, by type and by method",
            Self::Exceptions => "Exceptions, by type",
            Self::Contention => "Lock contention and other waits, by method",
            Self::Jit => "Methods compiled at run time",
            Self::Threadpool => "Threads of the thread pool",
            Self::Http => "HTTP requests, received and sent",
            Self::Events => "Number of events, by provider and event",
            Self::Loss => "Events that the target dropped",
            Self::Counters => "Meters and event counters",
            Self::Logs => "Log messages",
            Self::Heap => "Objects in the heap by type, also of .gcdump and .hprof files",
        }
    }

    /// Returns other names, as used by other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &["topN", "topn"],
            _ => &[],
        }
    }

    /// Returns the name and version of its JSON schema.
    pub fn schema(self) -> String {
        match self {
            Self::Heap => "runtap.heap/1".to_owned(),
            _ => format!("runtap.report.{}/1", self.name()),
        }
    }

    /// Returns the view of a profile on the same subject, if any.
    pub fn view(self) -> Option<View> {
        Some(match self {
            Self::Cpu => View::Cpu,
            Self::Gc => View::Gc,
            Self::Alloc => View::Alloc,
            Self::Exceptions => View::Exceptions,
            Self::Contention => View::Contention,
            Self::Jit => View::Jit,
            Self::Threadpool
            | Self::Http
            | Self::Events
            | Self::Loss
            | Self::Counters
            | Self::Logs
            | Self::Heap => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_kind() {
        assert!(
            ReportKind::ALL.iter().enumerate().all(|(n, kind)| *kind as usize == n),
            "in the order of the enum"
        );
        let names: std::collections::BTreeSet<_> = ReportKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ReportKind::ALL.len());
    }
}
