//! The questions that are answered.

use runtap_model::View;

/// A question about a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Where the time went: [`CpuReport`](super::CpuReport).
    Cpu,
    /// Collections, pauses and heap sizes: [`GcReport`](super::GcReport).
    Gc,
    /// Types that were allocated, and where: [`AllocReport`](super::AllocReport).
    Alloc,
    /// Exceptions by type: [`ExceptionsReport`](super::ExceptionsReport).
    Exceptions,
    /// Waits for locks, and where: [`ContentionReport`](super::ContentionReport).
    Contention,
    /// Methods compiled at run time: [`JitReport`](super::JitReport).
    Jit,
    /// Threads of the thread pool: [`ThreadPoolReport`](super::ThreadPoolReport).
    Threadpool,
    /// HTTP requests, answered and sent: [`HttpReport`](super::HttpReport).
    Http,
    /// How many events of which kind: [`EventsReport`](super::EventsReport).
    Events,
    /// Events that the target dropped: [`LossReport`](super::LossReport).
    Loss,
    /// Meters and event counters: [`CountersReport`](super::CountersReport).
    Counters,
    /// Log messages: [`LogsReport`](super::LogsReport).
    Logs,
}

impl Kind {
    /// Its name on the command line and in the schema.
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
        }
    }

    /// The name and version of its JSON.
    pub fn schema(self) -> String {
        format!("runtap.report.{}/1", self.name())
    }

    /// The view of a profile that tells of the same things, if there is one.
    pub fn view(self) -> Option<View> {
        Some(match self {
            Self::Cpu => View::Cpu,
            Self::Gc => View::Gc,
            Self::Alloc => View::Alloc,
            Self::Exceptions => View::Exceptions,
            Self::Contention => View::Contention,
            Self::Jit => View::Jit,
            Self::Threadpool | Self::Http | Self::Events | Self::Loss | Self::Counters | Self::Logs => {
                return None;
            }
        })
    }
}
