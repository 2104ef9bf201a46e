//! File formats, views and what else is said of a converted file, as clap sees them.

use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use runtap_convert::{FileFormat, Unsuitable};
use runtap_model::View;
use runtap_sinks::Format;

use super::TextOrJson;
use crate::units::parse_limit_megabytes;

/// What file formats are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// The original event stream
    #[value(alias = "NetTrace")]
    Nettrace,
    /// For <https://www.speedscope.app>: a profile with a time axis
    #[value(alias = "Speedscope")]
    Speedscope,
    /// One line per stack, for scripts and flame graph tools
    #[value(alias = "collapsed")]
    Folded,
    /// An interactive SVG picture
    #[value(alias = "svg")]
    Flamegraph,
    /// For `chrome://tracing` and <https://ui.perfetto.dev>: trace events as JSON
    #[value(aliases = ["Chromium", "chromium"])]
    Chrome,
    /// For <https://ui.perfetto.dev>: the same in its own, smaller format
    Perfetto,
    /// For <https://profiler.firefox.com>: samples on a time axis
    Firefox,
    /// For `go tool pprof` and services that keep profiles
    Pprof,
}

impl From<FormatName> for FileFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Nettrace => Self::Nettrace,
            FormatName::Speedscope => Self::Profile(Format::Speedscope),
            FormatName::Folded => Self::Profile(Format::Folded),
            FormatName::Flamegraph => Self::Profile(Format::Flamegraph),
            FormatName::Chrome => Self::Profile(Format::Chrome),
            FormatName::Perfetto => Self::Profile(Format::Perfetto),
            FormatName::Firefox => Self::Profile(Format::Firefox),
            FormatName::Pprof => Self::Profile(Format::Pprof),
        }
    }
}

/// Parses a file format.
pub(super) fn file_format() -> impl TypedValueParser<Value = FileFormat> {
    EnumValueParser::<FormatName>::new().map(FileFormat::from)
}

/// `--format` where there is a file format too: dotnet-trace's use of the word is taken as `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnyFormat {
    Result(TextOrJson),
    File(FileFormat),
}

impl std::str::FromStr for AnyFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let result = TextOrJson::from_str(text, true).map(Self::Result);
        let file = |_neither| FormatName::from_str(text, true).map(|name| Self::File(name.into()));
        result.or_else(file).map_err(|_neither| {
            "write text or json (for the summary), or a file format as --to takes it".to_owned()
        })
    }
}

/// What views are called.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ViewName {
    /// Every sample of a thread, running or waiting
    ThreadTime,
    /// Samples of threads that ran managed code
    Cpu,
    /// Bytes allocated, by type
    Alloc,
    /// Exceptions thrown, by type
    Exceptions,
    /// Time waiting for locks
    Contention,
    /// Pauses of the garbage collector
    Gc,
    /// Time in the compiler, by method
    Jit,
    /// Time of asynchronous operations, by who awaits whom
    Async,
    /// Time of requests: what ran for them, and what they waited for
    Request,
}

impl From<ViewName> for View {
    fn from(name: ViewName) -> Self {
        match name {
            ViewName::ThreadTime => Self::ThreadTime,
            ViewName::Cpu => Self::Cpu,
            ViewName::Alloc => Self::Alloc,
            ViewName::Exceptions => Self::Exceptions,
            ViewName::Contention => Self::Contention,
            ViewName::Gc => Self::Gc,
            ViewName::Jit => Self::Jit,
            ViewName::Async => Self::Async,
            ViewName::Request => Self::Request,
        }
    }
}

/// Parses a view.
pub(super) fn view() -> impl TypedValueParser<Value = View> {
    EnumValueParser::<ViewName>::new().map(View::from)
}

/// What a converted file holds.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Content {
    /// What a converted file shows
    #[arg(long, value_name = "VIEW", value_parser = view(), help_heading = "Output")]
    pub(crate) view: Option<View>,
    /// Write speedscope files as frames that open and close, instead of samples
    #[arg(long, help_heading = "Output")]
    pub(crate) evented: bool,
    /// Put all threads together in folded stacks and flame graphs
    #[arg(long, help_heading = "Output")]
    pub(crate) merge_threads: bool,
    /// Reproduce another program's conversion exactly: its frames, its rounding, its losses
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["view", "evented"], help_heading = "Output")]
    pub(crate) compat: Option<Compat>,
    /// Maximum number of frames per stack; deeper stacks lose their middle; 0 for no limit [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) max_depth: Option<usize>,
    /// Approximate maximum size of a converted file, which is cut there; 0 for no limit [default: 1GB, or 32 times the
    /// recording]
    #[arg(long, value_name = "MB", value_parser = parse_limit_megabytes, help_heading = "Output")]
    pub(crate) max_size: Option<u32>,
}

impl From<&Content> for runtap_convert::Content {
    fn from(content: &Content) -> Self {
        Self {
            view: content.view,
            evented: content.evented,
            merge_threads: content.merge_threads,
            dotnet_trace: content.compat == Some(Compat::DotnetTrace),
            max_depth: content.max_depth,
            max_size: content.max_size,
        }
    }
}

impl Content {
    /// What it says, if files of these formats can hold it.
    ///
    /// # Errors
    /// Says which can't, and which can.
    pub(crate) fn checked(&self, formats: &[FileFormat]) -> Result<runtap_convert::Content, String> {
        let content = runtap_convert::Content::from(self);
        content.check(formats).map_err(unsuitable)?;
        Ok(content)
    }
}

fn unsuitable(why: Unsuitable) -> String {
    match why {
        Unsuitable::DotnetTrace(format) => format!(
            "--compat dotnet-trace puts the work of several threads on one, which {} can't show: use speedscope, chrome, \
             folded, flamegraph or pprof",
            format.name()
        ),
        Unsuitable::MergedThreads(format) => format!(
            "--merge-threads is for folded and flamegraph: in {} each thread has a place of its own",
            format.name()
        ),
        Unsuitable::Timeless(format, view) => format!(
            "the view '{view}' has no time axis, which {} needs: use speedscope, firefox, pprof, folded or flamegraph",
            format.name()
        ),
    }
}

/// A program whose conversion is known in all detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// `dotnet-trace convert`
    DotnetTrace,
}
