//! Options for the contents of a converted file.

use runtap_model::{Unit, View};
use runtap_sinks::Format;

use crate::FileFormat;

/// Default maximum depth of stacks: far more than runtimes record (100), and still fast to draw.
const MAX_DEPTH: usize = 1024;
/// Default maximum size of a file in bytes, which viewers can open.
const MAX_BYTES: u64 = 1 << 30;
/// Default maximum size of a file as a multiple of its recording's size, if that is more.
const MAX_GROWTH: u64 = 32;

/// Options for the contents of a converted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Content {
    /// Selected samples; `None` for the default of the format.
    pub view: Option<View>,
    /// Write frames that open and close instead of samples (speedscope).
    pub evented: bool,
    /// Merge all threads (folded stacks and flame graphs).
    pub merge_threads: bool,
    /// Convert like dotnet-trace, with its frames, rounding and losses.
    pub dotnet_trace: bool,
    /// Maximum depth of stacks; 0 for no limit, `None` for the default.
    pub max_depth: Option<usize>,
    /// Approximate maximum size of a file in MiB; 0 for no limit, `None` for the default.
    pub max_size: Option<u32>,
}

/// The reasons why a format cannot contain the requested data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsuitable {
    /// dotnet-trace's conversion assigns the work of several threads to one, which the format cannot represent.
    DotnetTrace(Format),
    /// The format stores threads separately.
    MergedThreads(Format),
    /// The format requires a time axis, which the view does not have.
    Timeless(Format, View),
    /// The format requires a time axis, which only the view of times has in this kind of recordings.
    NeedsTimes(Format),
    /// This kind of recordings does not have the view.
    OtherView {
        /// The view.
        view: View,
        /// The views that this kind of recordings has.
        views: Vec<View>,
    },
}

impl Content {
    /// Checks whether files of these formats can contain the data: some have only a time axis, and some cannot
    /// represent a thread that does two things at a time. Call this before recording.
    ///
    /// # Errors
    /// If a format cannot, for the first one.
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

    /// Returns the maximum depth of stacks.
    pub fn depth(&self) -> usize {
        match self.max_depth {
            None => MAX_DEPTH,
            Some(0) => usize::MAX,
            Some(depth) => depth,
        }
    }

    /// Returns the approximate maximum size in bytes of a file converted from `recorded` bytes.
    pub fn bytes(&self, recorded: u64) -> u64 {
        match self.max_size {
            None => MAX_BYTES.max(recorded.saturating_mul(MAX_GROWTH)),
            Some(0) => u64::MAX,
            Some(mebibytes) => u64::from(mebibytes) << 20,
        }
    }

    /// Returns whether any option differs from its default.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
