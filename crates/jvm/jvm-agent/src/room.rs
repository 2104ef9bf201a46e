//! What a thread does to write an event that its probe could not write: wait for room, drop it, or count it.
//!
//! Owns: [`put`]. Refuses to: call the JVM.

use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::WhenSlow;

use crate::ring::{CAPACITY, Kind, Raw, Ring, method_of};

/// The reason in the place of the method of a [`Kind::Drop`]: as F1 numbers them.
const FULL: u64 = 1;

/// Writes an event with what belongs to it, once there is room, or drops it. `reader` says what to do without room; `None` if
/// the rings are not read.
pub(crate) fn put(reader: impl Fn() -> Option<WhenSlow>, ring: &Ring, current: u64, events: &[Raw]) {
    let Some(first) = events.first() else { return };
    if reader().is_none() {
        // What belongs to a trace that is over is over too.
        ring.degraded.store(false, Ordering::Relaxed);
        ring.is_dropping.store(false, Ordering::Relaxed);
    }
    let is_virtual = current != ring.tid;
    if is_virtual && !ring.carries.load(Ordering::Relaxed) {
        // Before the event is written or lost: the reader looks for either in rings of carriers only.
        ring.carries.store(true, Ordering::SeqCst);
    }
    if ring.degraded.load(Ordering::Relaxed) {
        return degraded(ring, first.word);
    }
    // A switch and a drop take two each.
    let most = events.len() as u64 + 4;
    loop {
        // Who has dropped begins again only when there is much room, so that not every other event is missing.
        let needed = if ring.is_dropping.load(Ordering::Relaxed) { CAPACITY / 4 } else { most };
        if ring.has_room(needed) {
            break;
        }
        let Some(when_slow) = reader() else { return };
        // The ring's own limit says whether the program is paused. The session's flag changes before the ring has room
        // again.
        if ring.is_paused() || when_slow == WhenSlow::Block {
            ring.wait(needed);
            continue;
        }
        ring.set_slow(true);
        if when_slow == WhenSlow::Counts {
            ring.dropped_since.store(first.time, Ordering::Relaxed);
            ring.degraded.store(true, Ordering::Release);
            return degraded(ring, first.word);
        }
        ring.is_dropping.store(true, Ordering::Relaxed);
        if Kind::of(first.word) == Some(Kind::Constructed) {
            // Its call was an event, and this is none.
            return;
        }
        if is_virtual {
            ring.lose(current, first.time);
            return;
        }
        let dropped = ring.dropped.load(Ordering::Relaxed);
        if dropped == ring.dropped_reported.load(Ordering::Relaxed) {
            ring.dropped_since.store(first.time, Ordering::Relaxed);
        }
        ring.dropped.store(dropped + 1, Ordering::Release);
        return;
    }
    let mut all = Vec::with_capacity(events.len() + 4);
    ring.is_dropping.store(false, Ordering::Relaxed);
    let dropped = ring.dropped.load(Ordering::Relaxed);
    if ring.dropped_reported.swap(dropped, Ordering::Relaxed) != dropped {
        let time = ring.dropped_since.load(Ordering::Relaxed);
        all.push(Raw { time, word: Kind::Drop.word() | FULL });
        all.push(Raw { time: dropped, word: Kind::More.word() });
    }
    ring.set_slow(false);
    if ring.current().load(Ordering::Relaxed) != current {
        ring.current().store(current, Ordering::Relaxed);
        all.push(Raw { time: first.time, word: Kind::Switch.word() });
        all.push(Raw { time: current, word: Kind::More.word() });
    }
    all.extend_from_slice(events);
    ring.write(&all);
}

/// A thread that was too fast for HQ only counts.
fn degraded(ring: &Ring, word: u64) {
    match Kind::of(word) {
        Some(Kind::Entry | Kind::Called) => ring.count(method_of(word), false),
        Some(Kind::Bubble) => ring.count(method_of(word), true),
        _ => {}
    }
}
