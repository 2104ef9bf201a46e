//! What a converted file holds.

use runtap_model::{Unit, View};
use runtap_sinks::Format;

use crate::FileFormat;

/// Frames of a stack in a file, if nothing is said: far more than runtimes record (100), and still quickly drawn.
const MAX_DEPTH: usize = 1024;
/// Bytes of a file, if nothing is said: what viewers open.
const MAX_BYTES: u64 = 1 << 30;
/// How many times as large as its recording a file may be, where that is more.
const MAX_GROWTH: u64 = 32;

/// What a converted file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Content {
    /// Which samples; by default those that people expect of the format.
    pub view: Option<View>,
    /// Frames that open and close instead of samples, in speedscope files.
    pub evented: bool,
    /// All threads together, in folded stacks and flame graphs.
    pub merge_threads: bool,
    /// As dotnet-trace converts: its frames, its rounding, its losses.
    pub dotnet_trace: bool,
    /// Frames of a stack at most; 0 for all.
    pub max_depth: Option<usize>,
    /// Mebibytes of a file, about; 0 for no limit.
    pub max_size: Option<u32>,
}

/// Why a format can't hold what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsuitable {
    /// Dotnet-trace's conversion puts the work of several threads on one, which the format can't show.
    DotnetTrace(Format),
    /// Threads have places of their own in it.
    MergedThreads(Format),
    /// It needs a time axis, which the view has not.
    Timeless(Format, View),
}

impl Content {
    /// Whether files of these formats can hold it: some have nothing but a time axis, some can't show a thread that does
    /// two things at a time. Asked before anything is recorded.
    ///
    /// # Errors
    /// The first that can't.
    pub fn check(&self, formats: &[FileFormat]) -> Result<(), Unsuitable> {
        let timeless = self.view.filter(|view| view.unit() != Unit::Nanoseconds);
        for format in formats.iter().filter_map(|format| format.sink()) {
            match format {
                Format::Perfetto | Format::Firefox if self.dotnet_trace => {
                    return Err(Unsuitable::DotnetTrace(format));
                }
                Format::Folded | Format::Flamegraph => {}
                _ if self.merge_threads => return Err(Unsuitable::MergedThreads(format)),
                Format::Chrome | Format::Perfetto => {
                    if let Some(view) = timeless {
                        return Err(Unsuitable::Timeless(format, view));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Frames that a stack may have in a file.
    pub fn depth(&self) -> usize {
        match self.max_depth {
            None => MAX_DEPTH,
            Some(0) => usize::MAX,
            Some(depth) => depth,
        }
    }

    /// Bytes that the file of a recording of `recorded` bytes may have, about.
    pub fn bytes(&self, recorded: u64) -> u64 {
        match self.max_size {
            None => MAX_BYTES.max(recorded.saturating_mul(MAX_GROWTH)),
            Some(0) => u64::MAX,
            Some(mebibytes) => u64::from(mebibytes) << 20,
        }
    }

    /// Whether any of it is said.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
