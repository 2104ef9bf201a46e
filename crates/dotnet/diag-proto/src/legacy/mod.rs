//! The two protocols that came before this one. No released runtime speaks them; they are here for completeness of the
//! specification, which describes them, and for whoever meets a recording of one.
//!
//! - [`proposal`]: the first proposal of Diagnostic IPC. The same header, but for the order of a command's two bytes.
//! - [`single_purpose`]: what the proposal replaced. Event sessions only, without frames and error codes.
//!
//! Both are small and independent of the rest. Source: "Diagnostic IPC Protocol", first proposal, and there "Current
//! Implementation (OLD)".

pub mod proposal;
pub mod single_purpose;
