//! The processor time, memory and age of a process, and its parent, from `stat` and `status` in
//! `/proc/PID`. Source: `proc_pid_stat(5)`, `proc_pid_status(5)`.

use std::time::Duration;

use runtap_transport::linux::ProcDir;

use super::System;
use crate::Usage;

/// The fields after the name of the program, which start with field 3.
struct Fields<'a>(Vec<&'a str>);

impl Fields<'_> {
    fn number(&self, field: usize) -> Option<u64> {
        self.0.get(field.checked_sub(3)?)?.parse().ok()
    }
}

impl System {
    /// Returns what a process uses. `None` if it has exited, or has another start time: process ids are reused.
    pub fn usage(&self, pid: u32, start_time: u64) -> Option<Usage> {
        let dir = ProcDir::open(&self.proc_root, pid).ok()?;
        let (stat, status) = (dir.read("stat").ok()?, dir.read("status").ok()?);
        parse(&stat, &status, start_time, self.uptime()?)
    }
}

fn parse(stat: &[u8], status: &[u8], start_time: u64, now: u64) -> Option<Usage> {
    // The name may contain spaces and parentheses.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = Fields(str::from_utf8(stat.get(end + 1..)?).ok()?.split_ascii_whitespace().collect());
    if fields.number(22)? != start_time {
        return None;
    }
    // In user space, a tick is a hundredth of a second on every Linux.
    let ticks = |ticks: u64| Duration::from_millis(ticks.saturating_mul(10));
    Some(Usage {
        parent_pid: fields.number(4).and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0),
        uptime: ticks(now.saturating_sub(start_time)),
        cpu_time: ticks(fields.number(14)?.saturating_add(fields.number(15)?)),
        rss_bytes: resident(status)?,
    })
}

/// Parses a line such as `VmRSS: 18452 kB`, which a process without memory does not have.
fn resident(status: &[u8]) -> Option<u64> {
    let value = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"VmRSS:"))?;
    let kibibytes: u64 = str::from_utf8(value).ok()?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] =
        b"42 (a) b (c)) S 7 1 1 0 -1 4194304 99 0 1 0 150 50 9 9 20 0 22 0 1000 2706108416 300 1844674\n";
    const STATUS: &[u8] = b"Name:\ta\nVmHWM:\t   99 kB\nVmRSS:\t   18 kB\n";

    #[test]
    fn fields_are_counted_after_the_name() {
        let usage = parse(STAT, STATUS, 1000, 1800).unwrap();
        assert_eq!((usage.parent_pid, usage.rss_bytes), (Some(7), 18 << 10));
        assert_eq!((usage.uptime, usage.cpu_time), (Duration::from_secs(8), Duration::from_secs(2)));
        assert_eq!(usage.cpu_percent(), Some(25.0));
        // The process has just started.
        assert_eq!(parse(STAT, STATUS, 1000, 1000).unwrap().cpu_percent(), None);
    }

    #[test]
    fn other_processes_and_damaged_texts_have_no_usage() {
        assert_eq!(parse(STAT, STATUS, 999, 1800), None);
        let start = STAT.windows(5).position(|text| text == b" 1000").unwrap();
        for end in 0..start + 4 {
            assert_eq!(parse(&STAT[..end], STATUS, 1000, 1800), None, "{end}");
        }
        for status in [&b""[..], b"VmRSS:\t   kB", b"VmRSS:\t 18", b"VmRSS:\t-1 kB"] {
            assert_eq!(parse(STAT, status, 1000, 1800), None);
        }
    }

    #[test]
    fn this_process_uses_memory() {
        let (system, me) = (System::current(), std::process::id());
        let start = system.start_time(me).unwrap();
        let usage = system.usage(me, start).unwrap();
        assert!(usage.rss_bytes > 100_000 && usage.uptime < Duration::from_hours(10), "{usage:?}");
        assert_eq!(usage.parent_pid, Some(std::os::unix::process::parent_id()));
        assert_eq!(system.usage(me, start + 1), None);
    }
}
