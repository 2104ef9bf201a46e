//! What a reader of the files should know.

use runtap_model::{DeepStacks, View};
use runtap_sinks::Format;

use crate::OutputFile;

/// What differs from what somebody may expect of a file, although it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A file is there.
    Written(OutputFile),
    /// So many events are left out, because their payload can't be read.
    Malformed(u64),
    /// So many events are missing, by their numbers.
    Lost {
        /// How many.
        events: u64,
        /// Whether blocks of the recording were skipped: then it is not the target's doing alone.
        skipped: bool,
    },
    /// Most frames are addresses, or at least many.
    Nameless {
        /// Frames without a name.
        nameless: u64,
        /// All frames.
        all: u64,
    },
    /// The view `request` may show code as awaited: [`Trace::lacks_resumptions`](runtap_model::Trace::lacks_resumptions).
    LacksResumptions,
    /// Stacks are too deep: their middle is left out.
    DeepStacks {
        /// How many, and how deep.
        deep: DeepStacks,
        /// Frames that are left of each.
        most: usize,
    },
    /// The file would be too large.
    EndsEarly {
        /// Of the file.
        format: Format,
        /// Where it ends, in nanoseconds since the start of the session.
        end_ns: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The file would be too large, and its samples have no times at which it could end.
    NarrowBranches {
        /// Of the file.
        format: Format,
        /// Of the samples.
        view: View,
        /// Branches of less weight are part of the stacks that they grow from.
        least: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The view that people expect of the format shows next to nothing, so all samples are shown.
    AllSamples {
        /// Of the file.
        format: Format,
        /// What would be expected.
        view: View,
        /// Samples in it.
        shown: u64,
        /// All of them.
        all: u64,
    },
    /// The view shows what is marked as managed, and much may be marked wrongly.
    Doubtful {
        /// Of the file.
        format: Format,
        /// Samples that it shows.
        shown: u64,
        /// Samples that end in the same methods and are not shown.
        doubtful: u64,
    },
}
