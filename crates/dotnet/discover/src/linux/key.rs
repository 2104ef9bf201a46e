//! The key in the name of a process's socket: its start as the process itself counts it. Source: `time_namespaces(7)`,
//! `proc(5)`.

use runtap_transport::linux::ProcDir;

use super::proc_files::ProcFiles as _;

/// What the key can be: one number, or two neighbours where the clocks of two namespaces differ by a part of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    first: u64,
    last: u64,
}

/// Nanoseconds of a clock tick, of which there are a hundred in a second on every Linux, for programs.
const TICK: i128 = 10_000_000;

impl Key {
    pub(super) fn is(self, key: u64) -> bool {
        (self.first..=self.last).contains(&key)
    }

    pub(super) fn all(self) -> impl Iterator<Item = u64> {
        self.first..=self.last
    }

    /// What `start` is for whoever's clock is so many nanoseconds ahead of ours.
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

/// The clock of a process, by its time namespace.
#[derive(Debug)]
pub(super) struct Clock {
    namespace: Option<std::ffi::OsString>,
    /// Nanoseconds that it is ahead of the machine's; `None` where it is not known.
    ahead: Option<i128>,
}

impl Clock {
    pub(super) fn of(dir: &ProcDir) -> Self {
        let namespace = dir.namespace("time");
        // The offsets are those of its children: its own only where they are in the same one.
        let is_its_own = namespace == dir.namespace("time_for_children");
        let ahead = is_its_own.then(|| offset(&dir.read("timens_offsets").ok()?)).flatten();
        Self { namespace, ahead }
    }

    /// The key of a process of ours that is seen to have started then; `None` where it is not known.
    pub(super) fn key_of(&self, dir: &ProcDir, start: u64) -> Option<Key> {
        let theirs = dir.namespace("time");
        // Where it may not be seen it is taken for ours.
        if theirs.is_none() || theirs == self.namespace {
            return Some(start.into());
        }
        Key::shifted(start, Self::of(dir).ahead? - self.ahead?)
    }
}

/// `boottime SECONDS NANOSECONDS`: either may be negative.
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
        // A part of a tick more or less.
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
