//! Notes about converted files.

use runtap_model::{DeepStacks, View};
use runtap_sinks::Format;

use crate::OutputFile;

/// A progress message, or a deviation from what users may expect of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A file was written.
    Written(OutputFile),
    /// This many events are omitted because their payloads are invalid.
    Malformed(u64),
    /// Events are missing, according to their sequence numbers.
    Lost {
        /// Number of missing events.
        events: u64,
        /// Whether blocks of the recording were skipped, so that the target need not have dropped all of these events.
        skipped: bool,
    },
    /// A large part of the frames are addresses.
    Nameless {
        /// Number of frames without a name.
        nameless: u64,
        /// Number of all frames.
        all: u64,
    },
    /// The view `request` may show running code as awaited; see
    /// [`Trace::lacks_resumptions`](runtap_model::Trace::lacks_resumptions).
    LacksResumptions,
    /// The middle of deep stacks was omitted.
    DeepStacks {
        /// Statistics of the truncated stacks.
        deep: DeepStacks,
        /// Number of frames that are kept of each.
        most: usize,
    },
    /// The file was truncated at a time because it would be too large.
    EndsEarly {
        /// Format of the file.
        format: Format,
        /// End of the file, in nanoseconds since the start of the session.
        end_ns: u64,
        /// Maximum size in bytes.
        max_bytes: u64,
    },
    /// Small branches were folded because the file would be too large and its samples have no times.
    NarrowBranches {
        /// Format of the file.
        format: Format,
        /// View of the file.
        view: View,
        /// Branches below this weight are added to their parents.
        least: u64,
        /// Maximum size in bytes.
        max_bytes: u64,
    },
    /// The default view of the format would be almost empty, so all samples are shown.
    AllSamples {
        /// Format of the file.
        format: Format,
        /// The default view.
        view: View,
        /// Number of samples in the default view.
        shown: u64,
        /// Number of all samples.
        all: u64,
    },
    /// The view shows samples marked as managed, and many others may be marked wrongly.
    Doubtful {
        /// Format of the file.
        format: Format,
        /// Number of samples shown.
        shown: u64,
        /// Number of samples in the same methods that are not shown.
        doubtful: u64,
    },
}
