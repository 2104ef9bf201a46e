//! Views: selections of samples, and the units of their weights.

use crate::kinds::{KindInfo, SampleClass, SampleKind};
use std::fmt;

/// A selection of samples.
///
/// The first two consist of ticks; a trace contains both. The others, except the last, consist of events; a trace
/// contains those of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// All samples of a thread, running or waiting.
    ThreadTime,
    /// Samples of threads in managed code.
    Cpu,
    /// Allocated memory.
    Alloc,
    /// Thrown exceptions.
    Exceptions,
    /// Time waiting for locks.
    Contention,
    /// Pauses of the garbage collector.
    Gc,
    /// Time in the JIT compiler.
    Jit,
    /// Time of asynchronous operations, running or waiting.
    Async,
    /// Time of requests, running or waiting.
    Request,
    /// Samples of a kind that the source [added](crate::TraceBuilder::kind).
    Kind(SampleKind, KindInfo),
}

/// The unit of a view's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Memory.
    Bytes,
    /// A number of occurrences.
    Count,
}

impl Unit {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

impl View {
    /// All views that exist independently of a trace.
    pub const ALL: [Self; 9] = [
        Self::ThreadTime,
        Self::Cpu,
        Self::Alloc,
        Self::Exceptions,
        Self::Contention,
        Self::Gc,
        Self::Jit,
        Self::Async,
        Self::Request,
    ];

    /// Returns the name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreadTime => "thread-time",
            Self::Cpu => "cpu",
            Self::Alloc => "alloc",
            Self::Exceptions => "exceptions",
            Self::Contention => "contention",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Async => "async",
            Self::Request => "request",
            Self::Kind(_, info) => info.name,
        }
    }

    /// Describes the view in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::ThreadTime => "Every sample of a thread, running or waiting",
            Self::Cpu => "Samples of threads that ran managed code",
            Self::Alloc => "Bytes allocated, by type",
            Self::Exceptions => "Exceptions thrown, by type",
            Self::Contention => "Time waiting for locks",
            Self::Gc => "Pauses of the garbage collector",
            Self::Jit => "Time in the JIT compiler, by method",
            Self::Async => "Time of asynchronous operations, by await chain",
            Self::Request => "Time of requests, running and waiting",
            Self::Kind(_, info) => info.about,
        }
    }

    /// Returns whether the view contains samples of `kind`.
    #[inline]
    pub fn selects(self, kind: SampleKind) -> bool {
        match self {
            Self::ThreadTime => kind.is_tick(),
            Self::Cpu => kind.class() == SampleClass::Running,
            Self::Kind(only, _) => kind == only,
            _ => kind == SampleKind::EVENT,
        }
    }

    /// Returns whether the view consists of ticks.
    pub fn is_sampled(self) -> bool {
        match self {
            Self::ThreadTime | Self::Cpu => true,
            Self::Kind(kind, _) => kind.is_tick(),
            _ => false,
        }
    }

    /// Returns the unit of the weights.
    pub fn unit(self) -> Unit {
        match self {
            Self::Alloc => Unit::Bytes,
            Self::Exceptions => Unit::Count,
            Self::Kind(_, info) => info.unit,
            _ => Unit::Nanoseconds,
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
