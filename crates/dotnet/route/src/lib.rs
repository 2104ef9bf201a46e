//! Routes, records and replays Diagnostic IPC between tools and runtimes.
//!
//! [`router`] joins tools and runtimes that cannot reach each other, as dotnet-dsrouter does; [`record`] stands between them
//! and writes down what they say; [`replay`] plays such a transcript back to either side. The messages themselves are those
//! of `runtap-diag-proto`, which this crate passes on unchanged.

pub mod messages;
pub mod record;
pub mod replay;
pub mod router;
