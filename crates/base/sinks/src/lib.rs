//! Writes a [`Trace`] as a file that a viewer opens. One module for each format, each with its mapping table:
//!
//! | format | module | default view | opens in |
//! |---|---|---|---|
//! | speedscope | [`speedscope`] | thread-time | speedscope.app, or the page of the npm package |
//! | chrome | [`chrome`] | thread-time | ui.perfetto.dev, `chrome://tracing`, speedscope |
//! | perfetto | [`perfetto`] | thread-time | ui.perfetto.dev, `trace_processor` |
//! | firefox | [`firefox`] | thread-time | profiler.firefox.com |
//! | pprof | [`pprof`] | cpu | `go tool pprof`, speedscope, services that keep profiles |
//! | folded | [`folded`] | cpu | inferno, `flamegraph.pl`, speedscope, and any text tool |
//! | flamegraph | [`flamegraph`] | cpu | a browser |
//!
//! [`difference`] writes what changed from one trace to another.
//!
//! Every sink streams into the writer through a buffer of its own and takes nothing but the model: it opens no
//! file, reads no clock, and writes equal bytes for equal traces. A view without a sample is
//! [`Error::NoSamples`], told before the first byte: no viewer opens an empty profile.
//! Names, extensions and views for users: docs/formats.md.

#![deny(clippy::disallowed_methods)]

mod bound;
mod category;
pub mod chrome;
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

/// The format of a file that this crate writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `speedscope.json`: a profile for each thread on a time axis.
    Speedscope,
    /// Folded stacks: a line for each stack with its time.
    Folded,
    /// A flame graph as one SVG file.
    Flamegraph,
    /// Chrome trace events: spans for each thread on a time axis.
    Chrome,
    /// Perfetto's track events: spans for each thread on a time axis.
    Perfetto,
    /// Firefox Profiler's processed profile: samples of each thread on a time axis.
    Firefox,
    /// A pprof profile: each stack of each thread with its time.
    Pprof,
}

impl Format {
    /// Every format there is.
    pub const ALL: [Self; 7] = [
        Self::Speedscope,
        Self::Folded,
        Self::Flamegraph,
        Self::Chrome,
        Self::Perfetto,
        Self::Firefox,
        Self::Pprof,
    ];

    /// The name that people choose it by.
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

    /// What it is for, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Speedscope => "For <https://www.speedscope.app>: a profile with a time axis",
            Self::Folded => "One line per stack, for scripts and flame graph tools",
            Self::Flamegraph => "An interactive SVG picture",
            Self::Chrome => "For `chrome://tracing` and <https://ui.perfetto.dev>: trace events as JSON",
            Self::Perfetto => "For <https://ui.perfetto.dev>: the same in its own, smaller format",
            Self::Firefox => "For <https://profiler.firefox.com>: samples on a time axis",
            Self::Pprof => "For `go tool pprof` and services that keep profiles",
        }
    }

    /// What else it is called, by other tools.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Speedscope => &["Speedscope"],
            Self::Folded => &["collapsed"],
            Self::Flamegraph => &["svg"],
            Self::Chrome => &["Chromium", "chromium"],
            Self::Perfetto | Self::Firefox | Self::Pprof => &[],
        }
    }

    /// The end of the file's name, with the dot.
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

    /// The view that is written if none is asked for: all samples where there is a time axis, else those that
    /// ran.
    pub fn default_view(self) -> View {
        match self {
            Self::Speedscope | Self::Chrome | Self::Perfetto | Self::Firefox => View::ThreadTime,
            Self::Folded | Self::Flamegraph | Self::Pprof => View::Cpu,
        }
    }

    /// The time in nanoseconds since the session's start at which `trace` [has to end](Trace::end_at) so that its file has
    /// at most about [`Options::max_bytes`]; `None` if it may stay whole, as nearly all may.
    pub fn end_within(self, trace: &Trace, options: &Options) -> Option<u64> {
        bound::end(self, trace, options)
    }

    /// The weight that the branches of `trace` [have to have](Trace::fold_branches) so that its file has at most about
    /// [`Options::max_bytes`], where all samples have one time and none can be its end; `None` if all branches may stay.
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

/// The position of the thread to show first: the first of those with the most in `view`, or, if that is a view of all
/// samples, with the most time of managed samples.
fn busiest(threads: &[&Thread], view: View) -> usize {
    let view = if view.is_sampled() { View::Cpu } else { view };
    // `max_by_key` takes the last.
    (0..threads.len()).rev().max_by_key(|&i| threads[i].weight(view)).unwrap_or(0)
}

fn noun(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds | Unit::Bytes => unit.name(),
        _ => "events",
    }
}

/// The sum of all weights in `view`, which is not 0.
fn total_weight(trace: &Trace, view: View) -> Result<u64, Error> {
    let mut total_weight = 0u64;
    for sample in trace.threads().flat_map(|(_, t)| t.samples(view)) {
        total_weight = total_weight.checked_add(sample.weight).ok_or_else(|| Error::TooLarge(view.unit()))?;
    }
    if total_weight == 0 { Err(Error::no_samples(trace, view)) } else { Ok(total_weight) }
}

/// What to write of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Which samples. [`Format::default_view`] is what people expect of a format.
    pub view: View,
    /// The program that writes, where a format has a place for it: `runtap` and its version.
    pub exporter: String,
    /// Whether speedscope files hold events, frames that open and close, instead of samples.
    pub evented: bool,
    /// Whether speedscope files hold the events that dotnet-trace makes of the samples.
    pub dotnet_trace: bool,
    /// Whether folded stacks and flame graphs put all threads together instead of beside each other.
    pub merge_threads: bool,
    /// About how many bytes a file may have: see [`Format::end_within`], by which the caller keeps it.
    pub max_bytes: u64,
}

impl Options {
    /// Options for `view`, written by this version of runtap.
    pub fn new(view: View) -> Self {
        let exporter = concat!("runtap ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { view, exporter, evented: false, dotnet_trace: false, merge_threads: false, max_bytes: 1 << 30 }
    }
}

/// The threads that have weight in `view`, in the order of first use.
fn threads(trace: &Trace, view: View) -> Result<Vec<&Thread>, Error> {
    let has_weight = |thread: &&Thread| thread.samples(view).any(|sample| sample.weight > 0);
    let threads: Vec<&Thread> = trace.threads().map(|(_, t)| t).filter(has_weight).collect();
    if threads.is_empty() { Err(Error::no_samples(trace, view)) } else { Ok(threads) }
}

/// Why a file could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to show: the view has no sample, or none that lasts. Nothing was written.
    #[error("there are no samples in the view `{view}`{}", elsewhere(*.view, *.recorded, *.left_out))]
    NoSamples {
        /// The view.
        view: View,
        /// How many ticks the trace has in all.
        recorded: u64,
        /// How many samples of the recording are not in the trace: [`Trace::left_out`].
        left_out: u64,
    },
    /// The weights of the recording are nonsense: together more than 292 years, or 8 EiB. Nothing was written.
    #[error("the samples add up to more than 2^63 {}: the recording is damaged", noun(*.0))]
    TooLarge(Unit),
    /// The format shows time, and the weights of the view are none. Nothing was written.
    #[error("the view `{0}` has no time axis, which this format needs")]
    NoTimeAxis(View),
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn elsewhere(view: View, recorded: u64, left_out: u64) -> String {
    match recorded {
        _ if left_out > 0 => {
            format!("; {left_out} of the recording were left out, because they need too much memory")
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
