//! Events of Rust programs, as .NET tools read them.

#![cfg(unix)]
#![allow(clippy::doc_markdown, reason = "the names of the events of .NET are words here, not code")]

mod activity;
mod arguments;
mod counters;
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
