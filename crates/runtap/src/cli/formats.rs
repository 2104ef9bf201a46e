//! File formats, views and what else is said of a converted file, as clap sees them.

use clap::{Args, ValueEnum};

use super::TextOrJson;

/// The file formats of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// The stream as the runtime sent it
    #[value(alias = "NetTrace")]
    Nettrace,
    /// For <https://www.speedscope.app>: a profile with a time axis
    #[value(alias = "Speedscope")]
    Speedscope,
    /// One line a stack, for scripts and flame graph tools
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
        result.or_else(|_| FileFormat::from_str(text, true).map(Self::File)).map_err(|_neither| {
            "write text or json (for the summary), or a file format as --to takes it".to_owned()
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
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
}

impl From<View> for runtap_model::View {
    fn from(view: View) -> Self {
        match view {
            View::ThreadTime => Self::ThreadTime,
            View::Cpu => Self::Cpu,
            View::Alloc => Self::Alloc,
            View::Exceptions => Self::Exceptions,
            View::Contention => Self::Contention,
            View::Gc => Self::Gc,
            View::Jit => Self::Jit,
            View::Async => Self::Async,
        }
    }
}

/// What a converted file holds.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Content {
    /// What a converted file shows
    #[arg(long, value_name = "VIEW", help_heading = "Output")]
    pub(crate) view: Option<View>,
    /// Write speedscope files as frames that open and close, instead of samples
    #[arg(long, help_heading = "Output")]
    pub(crate) evented: bool,
    /// Convert as another program does, to compare with its files: its frames, its rounding, its losses
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["view", "evented"], help_heading = "Output")]
    pub(crate) compat: Option<Compat>,
}

impl Content {
    /// Whether a file of this format can hold it: some can't show a thread that does two things at a time.
    pub(crate) fn fits(self, format: FileFormat) -> bool {
        let overlaps = self.compat == Some(Compat::DotnetTrace);
        !overlaps || !matches!(format, FileFormat::Chrome | FileFormat::Perfetto | FileFormat::Firefox)
    }
}

/// A program whose conversion is known in all detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// `dotnet-trace convert`
    DotnetTrace,
}
