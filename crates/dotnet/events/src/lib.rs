//! Events of Rust programs for .NET tools: the sources of events for the sessions of an embedded diagnostics server.
//!
//! | item | writes | like .NET's |
//! |---|---|---|
//! | [`EventLayer`] | events and spans of `tracing` (feature `tracing`, on by default) | providers named after crates |
//! | [`provider!`], [`Provider`] | events with fixed numbers and fields | an `EventSource` |
//! | [`Activity`] | the activity that a thread works for | activity ids |
//! | [`Metrics`] | meters and instruments | `System.Diagnostics.Metrics` |
//! | [`EventCounters`], [`process_counters`] | values at intervals | `EventCounters` of a provider |
//! | [`Logs`] | log messages and scopes | `Microsoft-Extensions-Logging` |
//! | [`CpuSamples`] | stacks of the program's threads | `Microsoft-DotNETCore-SampleProfiler` |
//!
//! All of them cost next to nothing while no session records them. The guide is docs/embedding.md. Empty on Windows, like
//! the server.

#![allow(clippy::doc_markdown, reason = "the names of the events of .NET are prose here, not code")]

mod activity;
mod arguments;
mod counters;
#[cfg(feature = "tracing")]
mod layer;
mod logs;
mod metrics;
mod number;
mod payload;
mod provider;
mod samples;
mod timer;

pub use activity::{Activity, Entered};
pub use counters::{CounterSpec, EventCounter, EventCounters, IncrementingEventCounter, process_counters};
#[cfg(feature = "tracing")]
pub use layer::{EventLayer, EventLayerBuilder, Naming, SessionFilter};
pub use logs::{Arguments, LogLevel, LogMessage, Logger, Logs, Scope};
pub use metrics::{
    BoundCounter, BoundGauge, BoundHistogram, BoundUpDownCounter, Counter, Gauge, Histogram, InstrumentSpec,
    Measure, Meter, MeterSpec, Metrics, Observer, Tag, TagValue, UpDownCounter,
};
pub use payload::{Payload, Value};
pub use provider::{Event, EventSpec, Level, Provider};
pub use runtap_diag_server::{DefineError, EventPipe, FieldType};
pub use samples::{CpuSamples, CpuSamplesBuilder, SamplesError};
