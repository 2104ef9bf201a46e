//! Counters of the process from the operating system, with the names that .NET uses.
//!
//! | provider | counter | value |
//! |---|---|---|
//! | `System.Runtime` | `cpu-usage` | the processor time of the process, in percent of all processors |
//! | `System.Runtime` | `working-set` | the resident memory, in MB of 1,000,000 bytes |
//! | `System.Runtime` | `thread-count` | the number of threads of the process; .NET has no counter of this name |
//!
//! The provider is `System.Runtime` because tools show it by default. Counters that do not apply to Rust programs
//! (collections, a thread pool) are missing.

use std::fs;
use std::time::{Duration, Instant};

use runtap_diag_server::{DefineError, EventPipe};

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(windows, path = "process/windows.rs")]
mod native;

use super::kinds::CounterKind;
use super::{CounterSpec, EventCounters};

/// Reports this process as provider `System.Runtime`, where supported by the system: on Linux. The program may add its own
/// counters.
///
/// # Errors
/// Never: the name is valid.
pub fn process_counters(pipe: &EventPipe) -> Result<EventCounters, DefineError> {
    let counters = EventCounters::new(pipe, "System.Runtime")?;
    let spec = |name, shown, units| CounterSpec::new(name).display_name(shown).units(units);
    counters.0.add(spec("cpu-usage", "CPU Usage", "%"), CounterKind::cpu_usage(Cpu::now));
    if resident().is_some() {
        counters.polling(spec("working-set", "Working Set", "MB"), || resident().unwrap_or(0.0));
    }
    if threads().is_some() {
        counters.polling(spec("thread-count", "Thread Count", ""), || threads().unwrap_or(0.0));
    }
    Ok(counters)
}

/// The processor time up to a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    pub(super) used: Duration,
    pub(super) at: Instant,
}

impl Cpu {
    fn now() -> Self {
        let used = native::processor_time();
        Self { used, at: Instant::now() }
    }

    /// Returns the usage in percent of all processors.
    pub(super) fn since(&self, earlier: &Self) -> f64 {
        let elapsed = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let processors = f64::from(u32::try_from(processors).unwrap_or(1));
        if elapsed == 0.0 {
            return 0.0;
        }
        // The two clocks are read one after the other, so that within a short time the result may exceed 100.
        (self.used.saturating_sub(earlier.used).as_secs_f64() / elapsed / processors * 100.0).min(100.0)
    }
}

/// Returns the resident memory in MB.
fn resident() -> Option<f64> {
    status("VmRSS:").map(|kib| kib * 1024.0 / 1e6)
}

fn threads() -> Option<f64> {
    status("Threads:")
}

/// Returns a number from `/proc/self/status`.
fn status(name: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(number))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_provides_the_values() {
        assert!(resident().unwrap() > 1.0);
        assert!(threads().unwrap() >= 1.0);
        let before = Cpu::now();
        let mut n = 0u64;
        while Cpu::now().used <= before.used {
            n = std::hint::black_box(n + 1);
        }
        let usage = Cpu::now().since(&before);
        assert!(usage > 0.0 && usage <= 100.0, "{usage}");
    }
}
