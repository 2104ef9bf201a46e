//! How a thread writes an event that its probe could not write: by waiting for room, dropping or counting it.
//!
//! Owns: [`put`]. Does not call the JVM.

use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::WhenSlow;

use crate::ring::{CAPACITY, EventKind, RawEvent, Ring, method_of};

/// The drop reason in a [`EventKind::Drop`], in the method's bits, with F1's number.
const FULL: u64 = 1;

/// Writes an event with its additions, once there is room, or drops it. `reader` returns the policy for a full ring, or
/// `None` if the rings are not read.
pub(crate) fn put(reader: impl Fn() -> Option<WhenSlow>, ring: &Ring, current: u64, events: &[RawEvent]) {
    let Some(first) = events.first() else { return };
    if reader().is_none() {
        // The state of a trace that is over is reset.
        ring.degraded.store(false, Ordering::Relaxed);
        ring.is_dropping.store(false, Ordering::Relaxed);
    }
    let is_virtual = current != ring.tid;
    if is_virtual && !ring.carries.load(Ordering::Relaxed) {
        // Set before the event is written or lost: the reader looks for both only in rings of carriers.
        ring.carries.store(true, Ordering::SeqCst);
    }
    if ring.degraded.load(Ordering::Relaxed) {
        return degraded(ring, first.word);
    }
    // A switch and a drop need two events each.
    let most = events.len() as u64 + 4;
    loop {
        // After a drop the thread resumes only when there is much room, so that not every other event is missing.
        let needed = if ring.is_dropping.load(Ordering::Relaxed) { CAPACITY / 4 } else { most };
        if ring.has_room(needed) {
            break;
        }
        let Some(when_slow) = reader() else { return };
        // The ring's own limit decides whether the program is paused: the session's flag changes before the ring gets room
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
        if EventKind::of(first.word) == Some(EventKind::Constructed) {
            // The constructor's call was an event; this is not, so nothing is lost.
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
        all.push(RawEvent { time, word: EventKind::Drop.word() | FULL });
        all.push(RawEvent { time: dropped, word: EventKind::More.word() });
    }
    ring.set_slow(false);
    if ring.current().load(Ordering::Relaxed) != current {
        ring.current().store(current, Ordering::Relaxed);
        all.push(RawEvent { time: first.time, word: EventKind::Switch.word() });
        all.push(RawEvent { time: current, word: EventKind::More.word() });
    }
    all.extend_from_slice(events);
    ring.write(&all);
}

/// Counts a call on a thread that was too fast for HQ.
fn degraded(ring: &Ring, word: u64) {
    match EventKind::of(word) {
        Some(EventKind::Entry | EventKind::Called) => ring.count(method_of(word), false),
        Some(EventKind::Bubble) => ring.count(method_of(word), true),
        _ => {}
    }
}
