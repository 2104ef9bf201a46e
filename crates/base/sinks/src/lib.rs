//! Writes a [`Trace`] in the formats of viewers. Each module documents the mapping of its format:
//!
//! | format | module | default view | opens in |
//! |---|---|---|---|
//! | speedscope | [`speedscope`] | thread-time | speedscope.app, or the page of the npm package |
//! | chrome | [`chrome`] | thread-time | ui.perfetto.dev, `chrome://tracing`, speedscope |
//! | perfetto | [`perfetto`] | thread-time | ui.perfetto.dev, `trace_processor` |
//! | firefox | [`firefox`] | thread-time | profiler.firefox.com |
//! | pprof | [`pprof`] | cpu | `go tool pprof`, speedscope, profiling services |
//! | folded | [`folded`] | cpu | inferno, `flamegraph.pl`, speedscope, and any text tool |
//! | flamegraph | [`flamegraph`] | cpu | a browser |
//!
//! [`difference`] writes the changes between two traces, [`counters`] the values of counters.
//!
//! Sinks write buffered and use only the model: they open no files and read no clock, and equal traces give equal
//! bytes. A view without samples is rejected with [`Error::NoSamples`] before anything is written, because viewers
//! cannot open empty profiles. docs/formats.md documents the formats for users.

#![deny(clippy::disallowed_methods)]

mod bound;
mod category;
pub mod chrome;
pub mod counters;
pub mod difference;
pub mod firefox;
pub mod flamegraph;
mod fold;
pub mod folded;
mod json;
pub mod perfetto;
pub mod pprof;
mod processes;
mod proto;
mod spans;
pub mod speedscope;
pub mod text;

use runtap_model::{Thread, Trace, Unit, View};
use std::io;
use thiserror::Error;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `speedscope.json`: a profile for each thread on a time axis.
    Speedscope,
    /// Folded stacks: a line per stack with its weight.
    Folded,
    /// A flame graph as a single SVG file.
    Flamegraph,
    /// Chrome trace events: spans for each thread on a time axis.
    Chrome,
    /// Perfetto's track events: spans for each thread on a time axis.
    Perfetto,
    /// Firefox Profiler's processed profile: samples of each thread on a time axis.
    Firefox,
    /// A pprof profile: the weight of each stack of each thread.
    Pprof,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Speedscope,
        Self::Folded,
        Self::Flamegraph,
        Self::Chrome,
        Self::Perfetto,
        Self::Firefox,
        Self::Pprof,
    ];

    /// Returns the name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speedscope => "speedscope",
            Self::Folded => "folded",
            Self::Flamegraph => "flamegraph",
            Self::Chrome => "chrome",
            Self::Perfetto => "perfetto",
            Self::Firefox => "firefox",
            Self::Pprof => "pprof",
        }
    }

    /// Describes the purpose of the format in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Speedscope => "For <https://www.speedscope.app>: a profile with a time axis",
            Self::Folded => "One line per stack, for scripts and flame graph tools",
            Self::Flamegraph => "An interactive SVG picture",
            Self::Chrome => "For `chrome://tracing` and <https://ui.perfetto.dev>: trace events as JSON",
            Self::Perfetto => "For <https://ui.perfetto.dev>: track events in its own, compact format",
            Self::Firefox => "For <https://profiler.firefox.com>: samples on a time axis",
            Self::Pprof => "For `go tool pprof` and profiling services",
        }
    }

    /// Returns the names of the format in other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Speedscope => &["Speedscope"],
            Self::Folded => &["collapsed"],
            Self::Flamegraph => &["svg"],
            Self::Chrome => &["Chromium", "chromium"],
            Self::Perfetto | Self::Firefox | Self::Pprof => &[],
        }
    }

    /// Returns the file name extension, including the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Speedscope => ".speedscope.json",
            Self::Folded => ".folded",
            Self::Flamegraph => ".svg",
            Self::Chrome => ".chromium.json",
            Self::Perfetto => ".perfetto-trace",
            Self::Firefox => ".firefox.json.gz",
            Self::Pprof => ".pb.gz",
        }
    }

    /// Returns the default view of the format: all samples if it has a time axis, otherwise those of running threads.
    pub fn default_view(self) -> View {
        match self {
            Self::Speedscope | Self::Chrome | Self::Perfetto | Self::Firefox => View::ThreadTime,
            Self::Folded | Self::Flamegraph | Self::Pprof => View::Cpu,
        }
    }

    /// Returns the time in nanoseconds since the start of the session at which `trace` must be
    /// [truncated](Trace::end_at) so that its file has at most about [`Options::max_bytes`]. `None` if it need not be
    /// truncated, which is usual.
    pub fn end_within(self, trace: &Trace, options: &Options) -> Option<u64> {
        bound::end(self, trace, options)
    }

    /// Returns the weight below which branches of `trace` must be [folded](Trace::fold_branches) so that its file has
    /// at most about [`Options::max_bytes`], if all samples have the same time. `None` if all branches fit.
    pub fn least_within(self, trace: &Trace, options: &Options) -> Option<u64> {
        bound::least(self, trace, options)
    }

    /// Writes `trace` in this format.
    pub fn write(self, trace: &Trace, w: impl io::Write, options: &Options) -> Result<(), Error> {
        match self {
            Self::Speedscope => speedscope::write(trace, w, options),
            Self::Folded => folded::write(trace, w, options),
            Self::Flamegraph => flamegraph::write(trace, w, options),
            Self::Chrome => chrome::write(trace, w, options),
            Self::Perfetto => perfetto::write(trace, w, options),
            Self::Firefox => firefox::write(trace, w, options),
            Self::Pprof => pprof::write(trace, w, options),
        }
    }
}

/// Returns the index of the thread to show first: the one with the most weight in `view`, or in managed samples if
/// `view` is sampled.
fn busiest(threads: &[&Thread], view: View) -> usize {
    let view = if view.is_sampled() { View::Cpu } else { view };
    // `max_by_key` returns the last of equal elements.
    (0..threads.len()).rev().max_by_key(|&i| threads[i].weight(view)).unwrap_or(0)
}

fn noun(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds | Unit::Bytes => unit.name(),
        _ => "events",
    }
}

/// Returns the total weight in `view`, which is not 0.
fn total_weight(trace: &Trace, view: View) -> Result<u64, Error> {
    let mut total_weight = 0u64;
    for sample in trace.threads().flat_map(|(_, t)| t.samples(view)) {
        total_weight = total_weight.checked_add(sample.weight).ok_or_else(|| Error::TooLarge(view.unit()))?;
    }
    if total_weight == 0 { Err(Error::no_samples(trace, view)) } else { Ok(total_weight) }
}

/// Options for writing a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Selected samples; see [`Format::default_view`].
    pub view: View,
    /// Name and version of the writing program, in formats that store it.
    pub exporter: String,
    /// Whether speedscope files contain opening and closing frames instead of samples.
    pub evented: bool,
    /// Whether files contain the events that dotnet-trace would write.
    pub dotnet_trace: bool,
    /// Whether all threads are merged in folded stacks and flame graphs.
    pub merge_threads: bool,
    /// Approximate maximum size of a file in bytes, which the caller enforces with [`Format::end_within`].
    pub max_bytes: u64,
}

impl Options {
    /// Creates default options for `view`, with the name and version of runtap.
    pub fn new(view: View) -> Self {
        let exporter = concat!("runtap ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { view, exporter, evented: false, dotnet_trace: false, merge_threads: false, max_bytes: 1 << 30 }
    }
}

/// Returns the threads that have weight in `view`, in the order of first use.
fn threads(trace: &Trace, view: View) -> Result<Vec<&Thread>, Error> {
    let has_weight = |thread: &&Thread| thread.samples(view).any(|sample| sample.weight > 0);
    let threads: Vec<&Thread> = trace.threads().map(|(_, t)| t).filter(has_weight).collect();
    if threads.is_empty() { Err(Error::no_samples(trace, view)) } else { Ok(threads) }
}

/// An error that occurred while writing a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The view contains no samples, or none with a duration. Nothing was written.
    #[error("there are no samples in the view `{view}`{}", elsewhere(*.view, *.recorded, *.left_out))]
    NoSamples {
        /// The view.
        view: View,
        /// Number of ticks in the whole trace.
        recorded: u64,
        /// Number of samples that are not in the trace; see [`Trace::left_out`].
        left_out: u64,
    },
    /// The total weight is implausible: more than 292 years, or 8 EiB. Nothing was written.
    #[error("the samples add up to more than 2^63 {}: the recording is damaged", noun(*.0))]
    TooLarge(Unit),
    /// The format needs a time axis, which the view does not have. Nothing was written.
    #[error("the view `{0}` has no time axis, which this format needs")]
    NoTimeAxis(View),
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn elsewhere(view: View, recorded: u64, left_out: u64) -> String {
    match recorded {
        _ if left_out > 0 => {
            format!("; {left_out} of the recording were omitted because they need too much memory")
        }
        _ if !view.is_sampled() => String::new(),
        0 => ": the recording has no CPU samples".to_owned(),
        1 => "; the recording has 1, in the view `thread-time`".to_owned(),
        n => format!("; the recording has {n}, in the view `thread-time`"),
    }
}

impl Error {
    fn no_samples(trace: &Trace, view: View) -> Self {
        Self::NoSamples { view, recorded: trace.ticks(View::ThreadTime), left_out: trace.left_out() }
    }
}
