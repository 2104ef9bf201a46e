//! `runtap test`: throughput of results, overhead per application, memory, and the duration of equal runs under `dotnet
//! test`.

pub(crate) mod application;
mod beside;
pub(crate) mod frames;
mod memory;
mod parallel;
mod start;
mod throughput;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::output;

/// Runs all benchmarks, or one of them.
pub(crate) fn run(runtap: &Path, only: Option<&str>) -> Result<()> {
    output::machine();
    match only {
        None => {
            throughput::run()?;
            parallel::run(runtap)?;
            start::run(runtap)?;
            memory::run(runtap)?;
            beside::run(runtap)?;
        }
        Some("throughput") => throughput::run()?,
        Some("parallel") => parallel::run(runtap)?,
        Some("start") => start::run(runtap)?,
        Some("memory") => memory::run(runtap)?,
        Some("beside") => beside::run(runtap)?,
        Some(other) => bail!("'{other}' is none of throughput, parallel, start, memory, beside"),
    }
    output::machine();
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
