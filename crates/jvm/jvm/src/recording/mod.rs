//! Recordings of the connections between Bytefrog agents and HQ.
//!
//! A recording is a folder. For each connection of an agent and each direction, it has a file with the bytes and a
//! file with the times at which they arrived. The trace can be reproduced from these files, so a recording can
//! answer questions that arise later. docs/jvm-recordings.md specifies the layout.
//!
//! ```text
//!  hq::Hq ──Recorder──▶ RecordingWriter       AGENT.ctl.a2h.bin  AGENT.data0.a2h.bin  …  + .chunks.tsv, marks.tsv
//!                                        │ find
//!                                        ▼
//!                  RecordedAgent ──replay(ResolvedPart)──▶ ReplayedAgent: report, call tree, violations, damage
//!                                        │                    │
//!                                        │                    ├─ CalledMethods: A − B, A ∩ B, A ∪ B
//!                                        │                    ├─ Difference: before and after
//!                                        │                    └─ profile: a runtap_model::Trace (JavaSource)
//!                                        └─ Conversation: connections and messages as rows
//! ```
//!
//! - [`RecordingWriter`] writes a recording: each read of HQ with one write, so that the recording is usable even if HQ is
//!   killed. It does not buffer bytes.
//! - [`find`] lists the agents of a recording; [`replay`] replays one agent through the state machines of HQ, in
//!   the order of time. A recording always gives the same trace. The memory used is limited by the limits of the
//!   trace, whatever the length of the recording.
//! - [`Part`] selects a part: a range of time, a segment between markers, or a part that was named while HQ recorded.
//! - [`Operand`] is a recording or a part of a recording, as the user specified it; [`LoadedRecording`] has the replayed
//!   agents of an operand, and lists the data that is missing.
//! - [`Conversation`] decodes the messages of all connections for display.
//!
//! This module neither prints nor listens, and knows no formats of profiles.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod chunks;
mod conversation;
mod difference;
mod error;
mod find;
mod loaded;
mod marks;
mod merged_streams;
mod names;
mod operand;
mod part;
mod player;
mod profile;
mod replay;
mod sets;
mod source;
mod stream;
mod writer;

pub use chunks::{Row, RowProblem, Rows};
pub use conversation::{Conversation, ConversationTotals};
pub use difference::{Difference, MethodChange, MethodNumbers, MethodTotals, Order};
pub use error::Error;
pub use find::{RecordedAgent, StreamFiles, find, is_recording};
pub use loaded::{ClassCounts, LoadedAgent, LoadedRecording};
pub use marks::{Mark, MarkProblem, Marks, MarksProblem};
pub use names::StreamName;
pub use operand::Operand;
pub use part::{Edge, Part, PartProblem, ResolvedPart, UnknownPart};
pub use profile::{CALLS, ProfileKind, SELF_TIME, TreeMeasure, profile, views};
pub use replay::{DEFAULT_SLOW, Damage, Options, ReplayedAgent, replay, replay_with};
pub use sets::{CalledMethods, Operation, SetRow, combine};
pub use source::JavaSource;
pub use writer::RecordingWriter;
