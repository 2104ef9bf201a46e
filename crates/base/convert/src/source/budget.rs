//! How much memory may be taken for a recording that is gathered into a profile or a report: some times its size, and never
//! nearly all that there is. Measures what the program has, rather than adding up what its tables say they hold, so that
//! nothing can be forgotten. Where the system does not tell, nothing is limited.

use std::fs;

/// What may be taken for the smallest recording.
const BASE: u64 = 1 << 30;
/// How many times the size of a recording may be taken besides. Honest ones take less than three times theirs.
const GROWTH: u64 = 8;

/// What is done with a recording. Each step needs room for what the next one makes of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its events are read: half of the memory.
    Gather,
    /// A profile is made of what they told: three quarters. The rest is for writing it.
    PutTogether,
}

/// The memory that the program may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    most: u64,
}

impl Budget {
    /// For a recording of so many bytes.
    pub(crate) fn for_recording(bytes: u64) -> Self {
        let of_size = BASE.saturating_add(bytes.saturating_mul(GROWTH));
        let of_machine =
            [total(), of_group()].into_iter().flatten().min().map_or(u64::MAX, |all| all / 4 * 3);
        Self { most: of_size.min(of_machine) }
    }

    /// What may be taken, if it is more already than this step may take of it.
    pub(crate) fn is_exceeded(self, step: Step) -> Option<Exceeded> {
        self.is_exceeded_by(resident()?, step).then_some(Exceeded { most: self.most })
    }

    fn is_exceeded_by(self, taken: u64, step: Step) -> bool {
        let quarters = match step {
            Step::Gather => 2,
            Step::PutTogether => 3,
        };
        taken > self.most / 4 * quarters
    }
}

/// Too much memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// What may be.
    pub(crate) most: u64,
}

/// What the program has in memory.
fn resident() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// What the machine has.
fn total() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// The number of bytes in a line of the kernel's texts.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What the container has, if it is one that is limited.
fn of_group() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_program_has_is_known() {
        let before = resident().unwrap();
        assert!(before > 100_000 && before < total().unwrap());
        for step in [Step::Gather, Step::PutTogether] {
            assert!(Budget { most: before / 2 }.is_exceeded(step).is_some());
            assert!(Budget { most: u64::MAX }.is_exceeded(step).is_none());
        }
        assert!(Budget::for_recording(u64::MAX).most <= total().unwrap());
    }

    /// What is gathered leaves room for what is made of it, and that for what is written.
    #[test]
    fn each_step_leaves_room_for_the_next() {
        let budget = Budget { most: 400 };
        let too_much =
            |taken| [Step::Gather, Step::PutTogether].map(|step| budget.is_exceeded_by(taken, step));
        for (taken, expected) in
            [(200, [false, false]), (201, [true, false]), (300, [true, false]), (301, [true, true])]
        {
            assert_eq!(too_much(taken), expected, "{taken}");
        }
        assert!(!Budget { most: u64::MAX }.is_exceeded_by(u64::MAX / 2, Step::PutTogether));
    }
}
