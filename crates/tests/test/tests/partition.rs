//! Laws of partitions.

use std::time::Duration;

use proptest::prelude::*;
use runtap_test::plan::{Partition, TestKey};

type Facts = (u8, u16, Option<u16>);

/// Tests of a few modules; some occur twice.
fn facts() -> impl Strategy<Value = Vec<Facts>> {
    prop::collection::vec((0..3_u8, 0..500_u16, prop::option::of(any::<u16>())), 0..80)
}

fn names(facts: &[Facts]) -> Vec<(String, String)> {
    facts.iter().map(|(module, uid, _)| (format!("M{module}"), format!("t{uid}"))).collect()
}

fn keys<'a>(names: &'a [(String, String)], facts: &[Facts]) -> Vec<TestKey<'a>> {
    let duration = |ms: Option<u16>| ms.map(|ms| Duration::from_millis(ms.into()));
    let key = |((module, uid), (.., ms)): (&'a (String, String), &Facts)| TestKey {
        module,
        uid,
        duration: duration(*ms),
    };
    names.iter().zip(facts).map(key).collect()
}

fn select(kind: &str, index: u32, total: u32, keys: &[TestKey<'_>]) -> Vec<usize> {
    format!("{kind}:{index}/{total}").parse::<Partition>().unwrap().select(keys)
}

const KINDS: [&str; 4] = ["count", "hash", "slice", "timing"];

proptest! {
    #[test]
    fn the_parts_are_disjoint_and_cover_all(facts in facts(), total in 1..100_u32) {
        let names = names(&facts);
        let keys = keys(&names, &facts);
        for kind in KINDS {
            let mut all = Vec::new();
            for index in 1..=total {
                let part = select(kind, index, total, &keys);
                prop_assert!(part.is_sorted());
                all.extend(part);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..keys.len()).collect::<Vec<_>>(), "{}", kind);
        }
    }

    #[test]
    fn count_and_slice_differ_by_one_at_most(facts in facts(), total in 1..20_u32) {
        let mut facts = facts;
        facts.sort_unstable();
        let mut names = names(&facts);
        names.sort_unstable();
        let keys = keys(&names, &facts);
        for kind in ["count", "slice"] {
            let sizes: Vec<usize> = (1..=total).map(|index| select(kind, index, total, &keys).len()).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{} {:?}", kind, sizes);
        }
        let slices: Vec<usize> = (1..=total).flat_map(|index| select("slice", index, total, &keys)).collect();
        prop_assert!(slices.is_sorted(), "a slice is consecutive");
    }

    #[test]
    fn a_hash_does_not_look_at_the_others(facts in facts(), total in 1..10_u32) {
        let names = names(&facts);
        let keys = keys(&names, &facts);
        for index in 1..=total {
            let together = select("hash", index, total, &keys);
            for (at, key) in keys.iter().enumerate() {
                let alone = select("hash", index, total, std::slice::from_ref(key));
                prop_assert_eq!(together.contains(&at), !alone.is_empty());
            }
        }
    }

    #[test]
    fn timing_is_balanced_and_does_not_depend_on_the_order(facts in facts(), total in 1..10_u32) {
        let mut facts = facts;
        facts.sort_unstable();
        facts.dedup_by_key(|(module, uid, _)| (*module, *uid));
        let names = names(&facts);
        let forward = keys(&names, &facts);
        let backward: Vec<_> = forward.iter().rev().copied().collect();
        let mut sums = Vec::new();
        for index in 1..=total {
            let part = select("timing", index, total, &forward);
            let reversed = select("timing", index, total, &backward);
            let reversed: Vec<usize> = reversed.iter().rev().map(|at| forward.len() - 1 - at).collect();
            prop_assert_eq!(&part, &reversed);
            if forward.iter().all(|key| key.duration.is_some()) {
                sums.push(part.iter().filter_map(|at| forward[*at].duration).sum::<Duration>());
            }
        }
        // Greedy: a part was the shortest one when it got its last test.
        let longest = forward.iter().filter_map(|key| key.duration).max().unwrap_or_default();
        if let (Some(most), Some(least)) = (sums.iter().max(), sums.iter().min()) {
            prop_assert!(*most <= *least + longest);
        }
    }
}

/// The parts of a release must not move to other machines with the next one.
#[test]
fn the_hash_stays() {
    let uids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let keys = uids.map(|uid| TestKey::new("Shop.Tests.dll", uid));
    let parts: Vec<Vec<usize>> = (1..=3).map(|index| select("hash", index, 3, &keys)).collect();
    assert_eq!(parts, EXPECTED.map(<[usize]>::to_vec));
}

/// Calculated by another implementation of FNV-1a.
const EXPECTED: [&[usize]; 3] = [&[0, 3, 6, 7], &[1, 4], &[2, 5]];
