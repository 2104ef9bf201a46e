//! The two predecessors of this protocol. No released runtime uses them; they are here because the specification
//! describes them, and for reading old recordings.
//!
//! - [`proposal`]: the first proposal of Diagnostic IPC. Its header differs only in the order of a command's two bytes.
//! - [`single_purpose`]: what the proposal replaced. Event sessions only, without frames and error codes.
//!
//! Both are small and independent of the rest. Source: "Diagnostic IPC Protocol", first proposal, and its section
//! "Current Implementation (OLD)".

pub mod proposal;
pub mod single_purpose;
