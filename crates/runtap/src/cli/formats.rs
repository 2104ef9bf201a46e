//! File formats, views and what else is said of a converted file, as clap sees them.

use clap::{Args, ValueEnum};

use super::TextOrJson;
use crate::units::parse_limit_megabytes;

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
    /// Time of requests: what ran for them, and what they waited for
    Request,
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
            View::Request => Self::Request,
        }
    }
}

/// Frames of a stack in a file, if nothing is said: far more than runtimes record (100), and still quickly drawn.
const MAX_DEPTH: usize = 1024;
/// Bytes of a file, if nothing is said: what viewers open.
const MAX_BYTES: u64 = 1 << 30;
/// How many times as large as its recording a file may be, where that is more.
const MAX_GROWTH: u64 = 32;

/// What a converted file holds.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Content {
    /// What a converted file shows
    #[arg(long, value_name = "VIEW", help_heading = "Output")]
    pub(crate) view: Option<View>,
    /// Write speedscope files as frames that open and close, instead of samples
    #[arg(long, help_heading = "Output")]
    pub(crate) evented: bool,
    /// Put all threads together in folded stacks and flame graphs
    #[arg(long, help_heading = "Output")]
    pub(crate) merge_threads: bool,
    /// Convert as another program does, to compare with its files: its frames, its rounding, its losses
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["view", "evented"], help_heading = "Output")]
    pub(crate) compat: Option<Compat>,
    /// Frames of a stack to write at most; of deeper ones the middle is left out; 0 for all [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) max_depth: Option<usize>,
    /// Size of a converted file at which it ends early, about; 0 for none [default: 1GB, or 32 times the recording]
    #[arg(long, value_name = "MB", value_parser = parse_limit_megabytes, help_heading = "Output")]
    pub(crate) max_size: Option<u32>,
}

impl Content {
    /// Whether files of these formats can hold it: some have nothing but a time axis, some can't show a thread that does
    /// two things at a time. Asked before anything is recorded.
    ///
    /// # Errors
    /// Says which can't, and which can.
    pub(crate) fn check(self, formats: &[FileFormat]) -> Result<(), String> {
        let view = self.view.map(runtap_model::View::from);
        let timeless = view.filter(|view| view.unit() != runtap_model::Unit::Nanoseconds);
        for format in formats {
            let name = format.name();
            match format {
                FileFormat::Perfetto | FileFormat::Firefox if self.compat.is_some() => {
                    return Err(format!(
                        "--compat dotnet-trace puts the work of several threads on one, which {name} can't show: use \
                         speedscope, chrome, folded, flamegraph or pprof"
                    ));
                }
                FileFormat::Nettrace | FileFormat::Folded | FileFormat::Flamegraph => {}
                _ if self.merge_threads => {
                    return Err(format!(
                        "--merge-threads is for folded and flamegraph: in {name} each thread has a place of its own"
                    ));
                }
                FileFormat::Chrome | FileFormat::Perfetto => {
                    if let Some(view) = timeless {
                        return Err(format!(
                            "the view '{view}' has no time axis, which {name} needs: use speedscope, firefox, pprof, \
                             folded or flamegraph"
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Frames that a stack may have in a file.
    pub(crate) fn depth(self) -> usize {
        match self.max_depth {
            None => MAX_DEPTH,
            Some(0) => usize::MAX,
            Some(depth) => depth,
        }
    }

    /// Bytes that the file of a recording of `recorded` bytes may have, about.
    pub(crate) fn bytes(self, recorded: u64) -> u64 {
        match self.max_size {
            None => MAX_BYTES.max(recorded.saturating_mul(MAX_GROWTH)),
            Some(0) => u64::MAX,
            Some(megabytes) => u64::from(megabytes) << 20,
        }
    }

    /// Whether any of it is said.
    pub(crate) fn is_given(self) -> bool {
        self.view.is_some()
            || self.evented
            || self.merge_threads
            || self.compat.is_some()
            || self.max_depth.is_some()
            || self.max_size.is_some()
    }
}

/// A program whose conversion is known in all detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// `dotnet-trace convert`
    DotnetTrace,
}
