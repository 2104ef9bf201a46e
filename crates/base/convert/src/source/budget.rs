//! Memory limits for reading a recording into a profile or a report: a multiple of its size, but less than the
//! available memory. The resident size of the process is measured, so that nothing is forgotten. Unlimited if the
//! operating system does not report it.

use std::fs;

/// Memory for the smallest recording in bytes.
const BASE: u64 = 1 << 30;
/// Additional memory as a multiple of the recording's size. Real recordings take less than three times their size.
const GROWTH: u64 = 8;

/// The steps of processing a recording. Each leaves memory for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Reading events: half of the memory.
    Read,
    /// Building a profile: three quarters. The rest is for writing.
    Build,
}

/// The memory that the process may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    most: u64,
}

impl Budget {
    /// Creates the limit for a recording of `bytes` bytes.
    pub(crate) fn for_recording(bytes: u64) -> Self {
        let of_size = BASE.saturating_add(bytes.saturating_mul(GROWTH));
        let of_machine =
            [total(), cgroup_limit()].into_iter().flatten().min().map_or(u64::MAX, |all| all / 4 * 3);
        Self { most: of_size.min(of_machine) }
    }

    /// Returns the limit if this step has exceeded its part.
    pub(crate) fn is_exceeded(self, step: Step) -> Option<Exceeded> {
        self.is_exceeded_by(resident()?, step).then_some(Exceeded { most: self.most })
    }

    fn is_exceeded_by(self, taken: u64, step: Step) -> bool {
        let quarters = match step {
            Step::Read => 2,
            Step::Build => 3,
        };
        taken > self.most / 4 * quarters
    }
}

/// The memory limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// The limit in bytes.
    pub(crate) most: u64,
}

/// Returns the resident memory of this process in bytes. `None` if unknown.
fn resident() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the memory of the machine in bytes. `None` if unknown.
fn total() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Parses a value in kB from a file in `/proc` and returns it in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the memory limit of the container in bytes. `None` if its memory is not limited.
fn cgroup_limit() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_resident_memory_is_known() {
        let before = resident().unwrap();
        assert!(before > 100_000 && before < total().unwrap());
        for step in [Step::Read, Step::Build] {
            assert!(Budget { most: before / 2 }.is_exceeded(step).is_some());
            assert!(Budget { most: u64::MAX }.is_exceeded(step).is_none());
        }
        assert!(Budget::for_recording(u64::MAX).most <= total().unwrap());
    }

    /// Reading leaves memory for building, and building for writing.
    #[test]
    fn each_step_leaves_room_for_the_next() {
        let budget = Budget { most: 400 };
        let too_much = |taken| [Step::Read, Step::Build].map(|step| budget.is_exceeded_by(taken, step));
        for (taken, expected) in
            [(200, [false, false]), (201, [true, false]), (300, [true, false]), (301, [true, true])]
        {
            assert_eq!(too_much(taken), expected, "{taken}");
        }
        assert!(!Budget { most: u64::MAX }.is_exceeded_by(u64::MAX / 2, Step::Build));
    }
}
