//! Partitioning of tests among several machines: the syntax `KIND:I/N`, and the kinds of partitions.
//!
//! For equal tests and equal `N`, the partitions `1/N` to `N/N` are disjoint and cover all tests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use runtap_model::order;
use thiserror::Error;

/// One of `N` parts of the tests: `count:1/3`, `hash:1/3`, `slice:1/3` or `timing:1/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    kind: PartitionKind,
    /// The number of the part, starting at 1.
    index: u32,
    total: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartitionKind {
    Count,
    Hash,
    Slice,
    Timing,
}

impl PartitionKind {
    const ALL: [(&'static str, Self); 4] =
        [("count", Self::Count), ("hash", Self::Hash), ("slice", Self::Slice), ("timing", Self::Timing)];

    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Hash => "hash",
            Self::Slice => "slice",
            Self::Timing => "timing",
        }
    }
}

/// An error that occurs when parsing a partition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The text has another form.
    #[error("'{0}' is not a partition; write count:1/3, hash:1/3, slice:1/3 or timing:1/3")]
    Form(String),
    /// The kind is unknown.
    #[error("'{0}' is not a kind of partition; valid kinds: count, hash, slice, timing")]
    PartitionKind(String),
    /// The number of the part is not between 1 and N.
    #[error("there is no partition {index} of {total}; the first number must be between 1 and the second")]
    Range {
        /// The number before the slash.
        index: u32,
        /// The number after the slash.
        total: u32,
    },
}

impl FromStr for Partition {
    type Err = PartitionError;

    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let form = || PartitionError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(form)?;
        let Some((_, kind)) = PartitionKind::ALL.into_iter().find(|(name, _)| *name == kind) else {
            return Err(PartitionError::PartitionKind(kind.to_owned()));
        };
        let (index, total) = rest.split_once('/').ok_or_else(form)?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten().ok_or_else(form)
        };
        let (index, total) = (number(index)?, number(total)?);
        if index == 0 || index > total {
            return Err(PartitionError::Range { index, total });
        }
        Ok(Self { kind, index, total })
    }
}

impl Display for Partition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.kind.name(), self.index, self.total)
    }
}

/// The properties of a test that determine its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestKey<'a> {
    /// The name of the module without its directory, which is equal on all machines.
    pub module: &'a str,
    /// The uid of the test.
    pub uid: &'a str,
    /// The duration in earlier runs, if known. Only used by `timing`.
    pub duration: Option<Duration>,
}

impl<'a> TestKey<'a> {
    /// Creates a test without a duration.
    pub fn new(module: &'a str, uid: &'a str) -> Self {
        Self { module, uid, duration: None }
    }
}

impl Partition {
    /// Returns the number of this part, starting at 1.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the number of parts.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Returns whether [`TestKey::duration`] is used. All machines must then have the same history.
    pub fn needs_durations(&self) -> bool {
        self.kind == PartitionKind::Timing
    }

    /// Returns the indexes of the tests of this part, in ascending order.
    ///
    /// - `count`: tests are distributed one by one, in the order of module and uid.
    /// - `slice`: parts of consecutive tests in the order of module and uid; their sizes differ by at most 1.
    /// - `hash`: by the 64-bit FNV-1a hash of the UTF-8 bytes of module, a zero byte and uid, modulo `N`. A test stays
    ///   in its part regardless of other tests; the sizes of the parts are only roughly equal.
    /// - `timing`: the longest test first, each to the part with the shortest total so far. Tests without a duration
    ///   count as the median of the others.
    ///
    /// The result does not depend on the given order, which may differ between machines, except for tests with equal
    /// module and uid.
    pub fn select(&self, tests: &[TestKey<'_>]) -> Vec<usize> {
        let (part, total) = (u64::from(self.index - 1), u64::from(self.total));
        match self.kind {
            PartitionKind::Count => by_place(tests, |place| place % u128::from(total) == u128::from(part)),
            PartitionKind::Slice => {
                let bound = |part: u64| u128::from(part) * tests.len() as u128 / u128::from(total);
                by_place(tests, |place| (bound(part)..bound(part + 1)).contains(&place))
            }
            PartitionKind::Hash => {
                let keys = tests.iter().enumerate();
                keys.filter(|(_, key)| fnv1a(key) % total == part).map(|(at, _)| at).collect()
            }
            PartitionKind::Timing => by_timing(tests, part, total),
        }
    }
}

/// Returns the 64-bit FNV-1a hash of module, zero byte and uid.
fn fnv1a(key: &TestKey<'_>) -> u64 {
    hash(key.module.bytes().chain([0]).chain(key.uid.bytes()))
}

fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the indexes of the tests whose position in the order of module and uid is in the range.
fn by_place(tests: &[TestKey<'_>], is_mine: impl Fn(u128) -> bool) -> Vec<usize> {
    let mut order: Vec<_> = tests.iter().enumerate().map(|(at, test)| (test.module, test.uid, at)).collect();
    order::sort(&mut order);
    let mine = (0..).zip(order).filter(|(place, _)| is_mine(*place));
    let mut mine: Vec<_> = mine.map(|(_, (_, _, at))| at).collect();
    mine.sort_unstable();
    mine
}

fn by_timing(tests: &[TestKey<'_>], part: u64, total: u64) -> Vec<usize> {
    let mut known: Vec<Duration> = tests.iter().filter_map(|test| test.duration).collect();
    known.sort_unstable();
    // Without any durations, all tests are equal and are distributed one by one.
    let median = known.get(known.len() / 2).copied().unwrap_or(Duration::from_millis(1));
    let mut order: Vec<(Duration, &TestKey<'_>, usize)> =
        tests.iter().enumerate().map(|(at, test)| (test.duration.unwrap_or(median), test, at)).collect();
    order::sort_by_key(&mut order, |(duration, test, at)| (Reverse(*duration), test.module, test.uid, *at));
    // Total so far, number of tests, part. More parts than tests are useless.
    let parts = total.min(tests.len() as u64);
    let mut parts: BinaryHeap<Reverse<(u128, usize, u64)>> =
        (0..parts).map(|part| Reverse((0, 0, part))).collect();
    let mut mine = Vec::new();
    for (duration, _, at) in order {
        let Some(Reverse((sum, tests, to))) = parts.pop() else { break };
        if to == part {
            mine.push(at);
        }
        parts.push(Reverse((sum + duration.as_nanos(), tests + 1, to)));
    }
    mine.sort_unstable();
    mine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the FNV authors.
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(hash(text.bytes()), expected, "{text}");
        }
        assert_eq!(fnv1a(&TestKey::new("ab", "c")), hash(b"ab\0c".iter().copied()));
    }

    #[test]
    fn partitions_are_parsed() {
        for text in ["count:1/1", "hash:2/3", "slice:3/3", "timing:1/4294967295"] {
            assert_eq!(text.parse::<Partition>().unwrap().to_string(), text);
        }
        for (text, message) in [
            ("hash", "'hash' is not a partition; write count:1/3, hash:1/3, slice:1/3 or timing:1/3"),
            ("hash:1", "'hash:1' is not a partition; write count:1/3, hash:1/3, slice:1/3 or timing:1/3"),
            (
                "hash:+1/2",
                "'hash:+1/2' is not a partition; write count:1/3, hash:1/3, slice:1/3 or timing:1/3",
            ),
            ("h:1/2", "'h' is not a kind of partition; valid kinds: count, hash, slice, timing"),
            ("hash:0/2", "there is no partition 0 of 2; the first number must be between 1 and the second"),
            ("hash:3/2", "there is no partition 3 of 2; the first number must be between 1 and the second"),
        ] {
            assert_eq!(text.parse::<Partition>().unwrap_err().to_string(), message);
        }
    }

    fn select(partition: &str, durations: &[Option<u64>]) -> Vec<usize> {
        let uids: Vec<String> = (0..durations.len()).map(|at| format!("t{at}")).collect();
        let key = |(uid, ms): (&'static str, &Option<u64>)| TestKey {
            duration: ms.map(Duration::from_millis),
            ..TestKey::new("M", uid)
        };
        // Leaks a few texts.
        let keys: Vec<_> =
            uids.into_iter().map(|uid| &*uid.leak()).zip(durations).map(|(u, d)| key((u, d))).collect();
        partition.parse::<Partition>().unwrap().select(&keys)
    }

    #[test]
    fn the_given_order_does_not_matter() {
        let keys = |uids: &[&'static str]| uids.iter().map(|uid| TestKey::new("M", uid)).collect::<Vec<_>>();
        let (one, other) = (keys(&["a", "b", "c", "d"]), keys(&["d", "b", "a", "c"]));
        for partition in ["count:1/2", "slice:1/2", "hash:1/2", "timing:1/2", "count:3/3", "slice:3/3"] {
            let partition: Partition = partition.parse().unwrap();
            let select = |keys: &[TestKey<'static>]| {
                let mut uids: Vec<_> = partition.select(keys).into_iter().map(|at| keys[at].uid).collect();
                uids.sort_unstable();
                uids
            };
            assert_eq!(select(&one), select(&other), "{partition}");
        }
    }

    #[test]
    fn each_kind_partitions_a_small_example() {
        let none = [None; 5];
        assert_eq!(select("count:1/2", &none), [0, 2, 4]);
        assert_eq!(select("slice:1/2", &none), [0, 1]);
        assert_eq!(select("slice:2/2", &none), [2, 3, 4]);
        assert_eq!(select("timing:2/2", &none), [1, 3], "without a record they are dealt out");
        let known = [Some(100), Some(30), Some(40), Some(30), None];
        // The median of the known durations is 40: 100 | 40, 40, 30 | and the other 30 in the shorter part.
        assert_eq!(select("timing:1/2", &known), [0, 3]);
        assert_eq!(select("timing:2/2", &known), [1, 2, 4]);
        assert_eq!(select("timing:3/9", &[Some(1)]), [0_usize; 0], "more parts than tests");
    }
}
