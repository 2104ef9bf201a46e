//! The key in the name of a process's socket: the start time of the process in its own time namespace. Source: `time_namespaces(7)`,
//! `proc(5)`.

use runtap_transport::linux::ProcDir;

use super::proc_files::ProcFiles as _;

/// The possible keys: one number, or two adjacent ones if the clocks of two namespaces differ by a fraction of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    first: u64,
    last: u64,
}

/// The nanoseconds in a clock tick. In user space, there are 100 ticks per second on every Linux.
const TICK: i128 = 10_000_000;

impl Key {
    pub(super) fn is(self, key: u64) -> bool {
        (self.first..=self.last).contains(&key)
    }

    pub(super) fn all(self) -> impl Iterator<Item = u64> {
        self.first..=self.last
    }

    /// Converts `start` to a clock that is `ahead` nanoseconds ahead of this process's.
    fn shifted(start: u64, ahead: i128) -> Option<Self> {
        let begin = i128::from(start) * TICK + ahead;
        let tick = |time: i128| u64::try_from(time.div_euclid(TICK)).ok();
        Some(Self { first: tick(begin)?, last: tick(begin + TICK - 1)? })
    }
}

impl From<u64> for Key {
    fn from(key: u64) -> Self {
        Self { first: key, last: key }
    }
}

/// The clock of a process, which depends on its time namespace.
#[derive(Debug)]
pub(super) struct Clock {
    namespace: Option<std::ffi::OsString>,
    /// The nanoseconds by which it is ahead of the machine's clock. `None` if unknown.
    ahead: Option<i128>,
}

impl Clock {
    pub(super) fn of(dir: &ProcDir) -> Self {
        let namespace = dir.namespace("time");
        // The file has the offsets of the children's namespace, so it is valid only if that is the process's own.
        let is_its_own = namespace == dir.namespace("time_for_children");
        let ahead = is_its_own.then(|| offset(&dir.read("timens_offsets").ok()?)).flatten();
        Self { namespace, ahead }
    }

    /// Returns the key of a process that started at `start` on this clock. `None` if unknown.
    pub(super) fn key_of(&self, dir: &ProcDir, start: u64) -> Option<Key> {
        let theirs = dir.namespace("time");
        // If the namespace is not readable, assume that it is this process's.
        if theirs.is_none() || theirs == self.namespace {
            return Some(start.into());
        }
        Key::shifted(start, Self::of(dir).ahead? - self.ahead?)
    }
}

/// Parses `boottime SECONDS NANOSECONDS`, which may be negative.
fn offset(text: &[u8]) -> Option<i128> {
    let text = str::from_utf8(text).ok()?;
    let mut fields = text.lines().find_map(|line| line.strip_prefix("boottime"))?.split_ascii_whitespace();
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanoseconds: i64 = fields.next()?.parse().ok()?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_by_another_clock() {
        let shifted = |start, ahead| Key::shifted(start, ahead).map(|key| key.all().collect::<Vec<_>>());
        assert_eq!(shifted(900, 0), Some(vec![900]));
        assert_eq!(shifted(900, 3 * TICK), Some(vec![903]));
        assert_eq!(shifted(900, -900 * TICK), Some(vec![0]));
        // A fraction of a tick more or less.
        assert_eq!(shifted(900, 3 * TICK + 1), Some(vec![903, 904]));
        assert_eq!(shifted(900, -1), Some(vec![899, 900]));
        assert_eq!(shifted(900, -901 * TICK), None);
        assert!(Key::from(7).is(7) && !Key::from(7).is(8));
    }

    #[test]
    fn offsets_of_a_time_namespace() {
        let text = b"monotonic          -5         0\nboottime       864000         7\n";
        assert_eq!(offset(text), Some(864_000_000_000_007));
        assert_eq!(offset(b"boottime            -1 500000000\n"), Some(-500_000_000));
        for other in [&b""[..], b"monotonic 1 2\n", b"boottime\n", b"boottime 99999999999999999999 0\n"] {
            assert_eq!(offset(other), None);
        }
    }
}
