//! Damaged recordings through everything that reads recordings: readers, parts, order, inspection, repair, fields, names,
//! counts, reports, profiles, files. No panic, no hang, all events before the damage, and the damage told.
//!
//! The tests of every day take a sample. `--ignored` takes every recording, cut at every 997th byte, with each of 1,000
//! bits flipped, its blocks in other orders, and its lengths at their extremes; docs/reliability.md has the command.
//! Small recordings are also tried as copies in versions of which there are no recordings, or few.

mod copies;
mod damage;
mod look;

use runtap_testkit::{Recording, recordings, require};

use crate::damage::{Damage, Random};
use crate::look::{look_at_everything, look_at_repaired_hole};

/// Bytes between two cuts; prime, so that all places of all structures come up.
const STEP: usize = 997;

/// The missing bytes of a hole: more than a block that a runtime writes at the end of a small recording, and no multiple of 4.
const HOLE: usize = 8191;

/// How many cuts, holes, flips, orders and lengths of a recording.
struct Extent {
    cuts: usize,
    holes: usize,
    flips: usize,
    orders: usize,
    lengths: usize,
}

/// Of small recordings, in every run of the tests.
const SAMPLE: Extent = Extent { cuts: 2, holes: 2, flips: 2, orders: 1, lengths: 2 };
/// Of recordings below a megabyte, on demand: all there is.
const WHOLE: Extent = Extent { cuts: usize::MAX, holes: 100, flips: 1000, orders: 20, lengths: usize::MAX };
/// Of larger ones. The readers alone see all of that in `runtap-nettrace`'s own tests.
const LARGE: Extent = Extent { cuts: 200, holes: 20, flips: 40, orders: 5, lengths: 60 };

/// The maximum number of bytes of a small recording.
const SMALL: usize = 120_000;
const MEGABYTE: usize = 1 << 20;

/// Every `of`-th of the small recordings from `nth` on.
fn sample(nth: usize, of: usize) {
    let recordings = require!(recordings()).iter().filter(|it| it.bytes.len() <= SMALL);
    let done: u64 = recordings.skip(nth).step_by(of).map(|recording| sweep(recording, &SAMPLE)).sum();
    assert!(done > 0);
}

/// A recording and its copies, damaged in every way.
fn sweep(recording: &Recording, extent: &Extent) -> u64 {
    let (bytes, name) = (&recording.bytes, recording.path.display());
    let mut done = sweep_one(bytes, extent, &format!("{name}"));
    if bytes.len() <= SMALL && recording.version() == 4 && recording.expected["end_marker"] == true {
        for version in [1, 2] {
            let copy = copies::in_netperf(bytes, version);
            done += sweep_one(&copy, extent, &format!("{name} in NetPerf {version}"));
        }
        done += sweep_one(&copies::in_nettrace_6(bytes), extent, &format!("{name} in Nettrace 6"));
    }
    done
}

fn sweep_one(bytes: &[u8], extent: &Extent, name: &str) -> u64 {
    let mut random = Random::of(bytes);
    let whole = look_at_everything(bytes, name);
    assert!(whole.events > 0 || bytes.len() < 2_000, "{name} has no events");
    let mut all = Vec::new();
    let cuts = bytes.len() / STEP;
    if extent.cuts < cuts {
        all.extend((0..extent.cuts).map(|_| Damage::Cut(random.below(cuts) * STEP)));
    } else {
        all.extend((0..cuts).map(|n| Damage::Cut(n * STEP)));
    }
    if bytes.len() > 2 * HOLE {
        all.extend((0..extent.holes).map(|_| Damage::Hole(random.below(bytes.len() - HOLE), HOLE)));
    }
    all.extend((0..extent.flips).map(|_| Damage::Flip(random.below(bytes.len() * 8))));
    let blocks = damage::blocks(bytes);
    all.extend((0..extent.orders).map(|_| Damage::Order(random.below(usize::MAX >> 1))));
    let mut lengths = damage::lengths(&blocks);
    while lengths.len() > extent.lengths {
        lengths.swap_remove(random.below(lengths.len()));
    }
    all.extend(lengths.into_iter().map(|(at, value)| Damage::Length(at, value)));
    let mut damages = 0;
    for damage in &all {
        let damaged = damage.to(bytes, &blocks);
        // A length that was that already, or blocks in their old order.
        if damaged == bytes {
            continue;
        }
        damages += 1;
        let what = format!("{name} with {damage:?}");
        let found = look_at_everything(&damaged, &what);
        if let Some(first) = damage.first_byte(bytes.len()) {
            let before = whole.events_before(first, &blocks);
            assert!(found.events >= before, "{what}: {} events of {before} before it", found.events);
        }
        // Blocks of Nettrace 6, and events of NetPerf 1 and 2, have nothing by which they could be found again, and the event
        // in which the hole begins can't be told from a sound one.
        if matches!(damage, Damage::Hole(..)) && blocks.iter().any(|block| block.name == "EventBlock") {
            look_at_repaired_hole(bytes, &damaged, &what);
        }
        if matches!(damage, Damage::Cut(_)) {
            assert!(found.partial, "{what} is told to be whole");
        }
    }
    assert!(damages > 0, "{name}: none of {} changes is damage", all.len());
    damages
}

#[test]
fn a_sample_of_the_first_third() {
    sample(0, 3);
}

#[test]
fn a_sample_of_the_second_third() {
    sample(1, 3);
}

#[test]
fn a_sample_of_the_last_third() {
    sample(2, 3);
}

#[test]
#[ignore = "takes twenty minutes, and wants to be optimised"]
fn every_recording() {
    let mut done = 0;
    for recording in require!(recordings()) {
        let extent = if recording.bytes.len() < MEGABYTE { &WHOLE } else { &LARGE };
        done += sweep(recording, extent);
        eprintln!("{done} damaged recordings behind {}", recording.path.display());
    }
}
