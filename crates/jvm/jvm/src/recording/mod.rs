//! Recordings of what Bytefrog agents and HQ have said to each other.
//!
//! A recording is a folder: for each connection of an agent and each direction a file with its bytes as they were, and one
//! that says when they came. Nothing else is needed to make the trace again, so a recording answers questions that nobody
//! had when it was made. docs/jvm-recordings.md has the layout byte by byte.
//!
//! ```text
//!  hq::Hq ──Recorder──▶ Folder       AGENT.ctl.a2h.bin  AGENT.data0.a2h.bin  …  + .chunks.tsv, marks.tsv
//!                                        │ find
//!                                        ▼
//!                       Recorded ──replay(Part)──▶ Replayed: report, call tree, what was wrong and where
//!                                        │                    │
//!                                        ├─ Called: A − B, A ∩ B, A ∪ B
//!                                        ├─ Difference: before and after
//!                                        └─ profile: a runtap_model::Trace, for the sinks
//! ```
//!
//! - [`Folder`] writes: every read of HQ in one write, so that an HQ that is killed leaves a recording. It holds no bytes.
//! - [`find`] lists what is there; [`replay`] plays one agent through the machines of HQ, in the order of time. The same
//!   recording gives the same trace. Memory is that of the trace's limits, however long the recording.
//! - [`Part`] names a part: a time, a segment between markers, what HQ has marked while it recorded.
//!
//! Refuses to print, to listen, and to know formats of profiles.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod chunks;
mod difference;
mod error;
mod find;
mod marks;
mod names;
mod part;
mod player;
mod profile;
mod replay;
mod sets;
mod stream;
mod writer;

pub use chunks::{Row, RowProblem, Rows};
pub use difference::{Difference, MethodChange, Numbers, Order};
pub use error::Error;
pub use find::{Recorded, StreamFiles, find};
pub use marks::{Mark, MarkProblem, Marks, MarksTrouble};
pub use names::StreamName;
pub use part::{Edge, Part, PartProblem, Resolved, UnknownPart};
pub use profile::{CALLS, Of, SELF_TIME, Sums, profile};
pub use replay::{Damage, Options, Replayed, replay, replay_with};
pub use sets::{Called, Operation, SetRow, combine};
pub use writer::Folder;
