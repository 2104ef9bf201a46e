//! Events of Rust programs, as .NET tools read them.

#[cfg(unix)]
mod samples;

#[cfg(unix)]
pub use samples::{CpuSamples, CpuSamplesBuilder, SamplesError};
