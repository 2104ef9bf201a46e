//! Which samples are looked at, and what their weights count.

use crate::kinds::{Class, KindInfo, SampleKind};
use std::fmt;

/// A choice of samples.
///
/// The first two are made of ticks, which one trace holds for both. The others but the last are made of events; a trace
/// holds those of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// Every sample of a thread, whether it ran or waited.
    ThreadTime,
    /// The samples that found the thread in managed code.
    Cpu,
    /// Memory that was allocated.
    Alloc,
    /// Exceptions that were thrown.
    Exceptions,
    /// Waiting for locks.
    Contention,
    /// Pauses of the garbage collector.
    Gc,
    /// Time in the compiler.
    Jit,
    /// Time of asynchronous operations, running or waiting.
    Async,
    /// Time of requests, and what they waited for.
    Request,
    /// The samples of one kind, which a source has [added](crate::TraceBuilder::kind).
    Kind(SampleKind, KindInfo),
}

/// What the weights of a view count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Memory.
    Bytes,
    /// Single things.
    Count,
}

impl Unit {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

impl View {
    /// Every view that has a name before there is a trace.
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

    /// The name that people choose it by, and that files have.
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

    /// What it shows, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::ThreadTime => "Every sample of a thread, running or waiting",
            Self::Cpu => "Samples of threads that ran managed code",
            Self::Alloc => "Bytes allocated, by type",
            Self::Exceptions => "Exceptions thrown, by type",
            Self::Contention => "Time waiting for locks",
            Self::Gc => "Pauses of the garbage collector",
            Self::Jit => "Time in the JIT compiler, by method",
            Self::Async => "Time of asynchronous operations, by who awaits whom",
            Self::Request => "Time of requests: what ran for them, and what they waited for",
            Self::Kind(_, info) => info.name,
        }
    }

    /// Whether samples of `kind` are in this view.
    #[inline]
    pub fn selects(self, kind: SampleKind) -> bool {
        match self {
            Self::ThreadTime => kind.is_tick(),
            Self::Cpu => kind.class() == Class::Running,
            Self::Kind(only, _) => kind == only,
            _ => kind == SampleKind::EVENT,
        }
    }

    /// Whether it is made of the sampler's ticks.
    pub fn is_sampled(self) -> bool {
        match self {
            Self::ThreadTime | Self::Cpu => true,
            Self::Kind(kind, _) => kind.is_tick(),
            _ => false,
        }
    }

    /// What its weights count.
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
