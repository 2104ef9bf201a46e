//! The cost of a process, as measured by the kernel: processor time and peak resident memory.
//!
//! The kernel adds up the usage of all terminated children of a process. So a copy of this program runs a single
//! command and prints the usage of this only child. The peak is at least that of the copy, about 3 MB.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::output::line;

/// The cost of one run, including startup and exit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    /// Peak resident memory in bytes.
    pub(crate) peak: u64,
}

/// Runs `command` until it exits.
///
/// # Errors
/// An error if the command can't be run, or its exit code is not 0.
pub(crate) fn of(command: &Command) -> Result<Cost> {
    let mut copy = Command::new(std::env::current_exe()?);
    copy.arg("measure").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    let output = copy.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [cpu, peak] = numbers.as_slice() else { bail!("a measurement said {text:?}") };
    Ok(Cost { cpu: Duration::from_micros(*cpu), peak: *peak })
}

/// Runs a command in the copy of this program and prints its processor time in microseconds and its peak memory in
/// bytes.
pub(crate) fn measure(program: &str, args: &[impl AsRef<OsStr>]) -> Result<()> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = cpu(usage);
    let peak = u64::try_from(usage.max_rss())? * 1024;
    line(format_args!("{} {peak}", cpu.as_micros()));
    Ok(())
}

/// Returns user plus system time.
pub(crate) fn cpu(usage: Usage) -> Duration {
    time(usage.user_time()) + time(usage.system_time())
}

fn time(value: TimeVal) -> Duration {
    let micros = value.tv_sec() * 1_000_000 + value.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
