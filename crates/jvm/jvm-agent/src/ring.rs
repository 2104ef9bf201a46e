//! The ring of events of a thread.
//!
//! Owns: its layout, which the probes (`probe`) also use; writing from the slow path; reading. One thread writes
//! to a ring, and one native thread reads: no lock, no atomic read-modify-write.
//!
//! ```text
//! ring:    0  head: events written                    by the thread
//!          8  id of the Java thread whose events come by the thread
//!         16  address of its counts, or 0             by the thread
//!         64  limit: how far head may go              by the reader
//!       4096  events: two words each, time and what
//! what:    kind 8 bits, 8 bits 0, line 16 bits, method 32 bits
//! ```
//!
//! A probe writes if `head < limit`. For everything else, the limit or the head is set so that this does not hold: a
//! full ring, a paused program, dropped events that have to be reported.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use crate::losses::Losses;
use crate::region::Region;
use crate::session::locked;

/// The number of events of a ring: 128 KiB, which stay in the processor's second-level cache.
pub(crate) const CAPACITY: u64 = 8192;
/// Offsets in a ring, as described above.
pub(crate) const HEAD: usize = 0;
pub(crate) const CURRENT: usize = 8;
pub(crate) const COUNTS: usize = 16;
pub(crate) const LIMIT: usize = 64;
pub(crate) const EVENTS: usize = 4096;
/// The bit of a head that sends the probe to the slow path.
pub(crate) const SLOW: u64 = 1 << 62;
/// The limit while the rings are not read: events overwrite earlier ones.
pub(crate) const UNREAD: u64 = SLOW - 1;
/// The limit while the program is paused.
pub(crate) const PAUSED: u64 = 0;
/// The number of methods that counts and coverage have room for (`lines` has the rest of coverage's memory).
pub(crate) const MAX_METHODS: u32 = 1 << 20;
/// The size of a method's counts: calls, and calls that an exception ended.
pub(crate) const COUNT_BYTES: usize = 16;

/// The kind of an event: the upper byte of its second word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EventKind {
    Entry = 0,
    Exit = 1,
    /// Followed by the id of the exception.
    Throw = 2,
    /// Followed by the id of the exception.
    Bubble = 3,
    /// The following events belong to another thread, whose id is in the next event.
    Switch = 4,
    /// Events of the ring's own thread are missing. The next event has the number since the ring was created; the
    /// method's bits have the reason.
    Drop = 5,
    /// An addition to the event before, in the first word.
    More = 6,
    /// Never in a ring: counts a call, or a call that an exception ended.
    Count = 7,
    CountThrown = 8,
    /// The number of calls of the method that are on the stack, given in the next event; the topmost is about to end. Calls
    /// above it have ended without an event.
    Standing = 9,
    /// A constructor call for which it is still unknown whether the constructor that it calls returns: `stream/constructors`.
    Called = 10,
    /// The constructor that a [`EventKind::Called`] one calls has returned, or [`EventKind::Bubble`] follows. This is not an event of the program.
    Constructed = 11,
}

impl EventKind {
    const ALL: [Self; 12] = [
        Self::Entry,
        Self::Exit,
        Self::Throw,
        Self::Bubble,
        Self::Switch,
        Self::Drop,
        Self::More,
        Self::Count,
        Self::CountThrown,
        Self::Standing,
        Self::Called,
        Self::Constructed,
    ];

    /// Returns the second word of an event of this kind, without method and line.
    pub(crate) const fn word(self) -> u64 {
        (self as u64) << 56
    }

    pub(crate) fn of(word: u64) -> Option<Self> {
        let [kind, ..] = word.to_be_bytes();
        Self::ALL.get(usize::from(kind)).copied()
    }
}

/// Returns the method of an event.
#[inline]
pub(crate) fn method_of(word: u64) -> u32 {
    let [.., a, b, c, d] = word.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Returns the line of an event.
#[inline]
pub(crate) fn line_of(word: u64) -> u16 {
    let [_, _, high, low, ..] = word.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// An event as stored in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) time: u64,
    pub(crate) word: u64,
}

/// The ring of a platform thread.
#[derive(Debug)]
pub(crate) struct Ring {
    region: Region,
    /// `Thread.tid`.
    pub(crate) tid: u64,
    /// The thread's name at its first event, in modified UTF-8.
    pub(crate) name: Vec<u8>,
    /// The handle to wake the thread while it waits for room.
    thread: Thread,
    waits: AtomicBool,
    /// Whether the thread has ended and writes no more.
    pub(crate) ended: AtomicBool,
    /// Whether the reader has adopted the ring.
    pub(crate) adopted: AtomicBool,
    /// Whether the thread has carried a virtual thread.
    pub(crate) carries: AtomicBool,
    /// The number of the thread's own events that were dropped since the ring was created; written by the thread.
    pub(crate) dropped: AtomicU64,
    /// The time of the first dropped event that no [`EventKind::Drop`] reports yet.
    pub(crate) dropped_since: AtomicU64,
    /// The number of dropped events that the last [`EventKind::Drop`] has reported; used by the thread only.
    pub(crate) dropped_reported: AtomicU64,
    /// Whether the thread has dropped an event and has not had much room since; used by the thread only.
    pub(crate) is_dropping: AtomicBool,
    losses: Mutex<Losses>,
    /// Whether the thread has switched to counts.
    pub(crate) degraded: AtomicBool,
    counts: Mutex<Option<Region>>,
}

impl Ring {
    /// Creates a ring for the calling thread.
    pub(crate) fn new(tid: u64, name: Vec<u8>, limit: u64) -> io::Result<Self> {
        let length = EVENTS + usize::try_from(CAPACITY).unwrap_or(0) * 16;
        let ring = Self {
            region: Region::new(length)?,
            tid,
            name,
            thread: std::thread::current(),
            waits: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            adopted: AtomicBool::new(false),
            carries: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            dropped_since: AtomicU64::new(0),
            dropped_reported: AtomicU64::new(0),
            is_dropping: AtomicBool::new(false),
            losses: Mutex::default(),
            degraded: AtomicBool::new(false),
            counts: Mutex::new(None),
        };
        ring.region.word(CURRENT).store(tid, Ordering::Relaxed);
        ring.region.word(LIMIT).store(limit, Ordering::Release);
        Ok(ring)
    }

    pub(crate) fn address(&self) -> u64 {
        self.region.address()
    }

    /// Returns the number of events written.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.region.word(HEAD).load(Ordering::Acquire) & !SLOW
    }

    /// Returns an event by its number, which must be below [`head`](Self::head) and at most the capacity behind it.
    #[inline]
    pub(crate) fn event(&self, number: u64) -> RawEvent {
        let at = Self::place(number);
        RawEvent {
            time: self.region.word(at).load(Ordering::Relaxed),
            word: self.region.word(at + 8).load(Ordering::Relaxed),
        }
    }

    fn place(number: u64) -> usize {
        EVENTS + usize::try_from(number % CAPACITY).unwrap_or(0) * 16
    }

    /// Reader: sets how far the thread may write.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.region.word(LIMIT).store(limit, Ordering::Release);
        if self.waits.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// Reader: starts to read a ring that was not read before, and whose events were overwritten. Returns the number of the
    /// first event to read; no event from there on is overwritten before it is read.
    pub(crate) fn begin_reading(&self) -> u64 {
        self.set_limit(self.head() + CAPACITY);
        // Not the earlier head: more events than the ring has room for may be written in between.
        self.head()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.region.word(LIMIT).load(Ordering::Acquire)
    }

    /// Thread: returns whether the reader lets it write nothing at all, so that waiting loses nothing.
    pub(crate) fn is_paused(&self) -> bool {
        self.limit() == PAUSED
    }

    /// Thread: returns whether this number of events can be written now.
    pub(crate) fn has_room(&self, events: u64) -> bool {
        self.head() + events <= self.limit()
    }

    /// Thread: waits a short time, or until the limit changes.
    pub(crate) fn wait(&self, events: u64) {
        self.waits.store(true, Ordering::SeqCst);
        if !self.has_room(events) {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        self.waits.store(false, Ordering::SeqCst);
    }

    /// Thread: writes events for which there is room, all at once.
    pub(crate) fn write(&self, events: &[RawEvent]) {
        let word = self.region.word(HEAD);
        let head = word.load(Ordering::Relaxed);
        let mut number = head & !SLOW;
        for event in events {
            let at = Self::place(number);
            self.region.word(at).store(event.time, Ordering::Relaxed);
            self.region.word(at + 8).store(event.word, Ordering::Relaxed);
            number += 1;
        }
        word.store(number | head & SLOW, Ordering::Release);
    }

    /// Thread: sets whether its next probe takes the slow path in any case.
    pub(crate) fn set_slow(&self, slow: bool) {
        let word = self.region.word(HEAD);
        let head = word.load(Ordering::Relaxed) & !SLOW;
        word.store(if slow { head | SLOW } else { head }, Ordering::Release);
    }

    /// Returns the id of the Java thread to which the next events belong.
    pub(crate) fn current(&self) -> &AtomicU64 {
        self.region.word(CURRENT)
    }

    /// Thread: notes an event of a virtual thread that had no room.
    pub(crate) fn lose(&self, tid: u64, time: u64) {
        locked(&self.losses).add(tid, time);
    }

    /// Reader: returns the events of virtual threads that had no room since the last call.
    pub(crate) fn take_losses(&self) -> Losses {
        std::mem::take(&mut locked(&self.losses))
    }

    /// Thread: counts a call.
    pub(crate) fn count(&self, method: u32, thrown: bool) {
        let mut counts = locked(&self.counts);
        if counts.is_none() {
            let length = MAX_METHODS as usize * COUNT_BYTES;
            // Without memory, nothing is counted, and the program continues.
            let Ok(region) = Region::new(length) else { return };
            self.region.word(COUNTS).store(region.address(), Ordering::Release);
            *counts = Some(region);
        }
        if let Some(region) = counts.as_ref()
            && method < MAX_METHODS
        {
            let word = region.word(method as usize * COUNT_BYTES + usize::from(thrown) * 8);
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Adds this ring's counts to `sums`: calls, and calls that an exception ended, by method.
    pub(crate) fn add_counts(&self, sums: &mut [[u64; 2]]) {
        let counts = locked(&self.counts);
        let Some(region) = counts.as_ref() else { return };
        for (method, sum) in sums.iter_mut().enumerate().take(MAX_METHODS as usize) {
            for (half, sum) in sum.iter_mut().enumerate() {
                *sum += region.word(method * COUNT_BYTES + half * 8).load(Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> RawEvent {
        RawEvent { time: number, word: EventKind::Exit.word() | 0xffff << 32 | (number % 7) }
    }

    #[test]
    fn what_is_written_is_read_around_the_end_too() {
        let ring = Ring::new(9, b"main".to_vec(), CAPACITY).unwrap();
        for number in 0..CAPACITY {
            assert!(ring.has_room(1));
            ring.write(&[event(number)]);
        }
        assert!(!ring.has_room(1), "it is full");
        ring.set_limit(CAPACITY + 3);
        ring.write(&[event(CAPACITY), event(CAPACITY + 1), event(CAPACITY + 2)]);
        assert!(!ring.has_room(1));
        assert_eq!(ring.head(), CAPACITY + 3);
        for number in 3..CAPACITY + 3 {
            assert_eq!(ring.event(number), event(number));
        }
        let word = ring.event(10).word;
        assert_eq!(
            (EventKind::of(word), method_of(word), line_of(word)),
            (Some(EventKind::Exit), 3, u16::MAX)
        );
    }

    #[test]
    fn a_slow_head_is_above_every_limit_and_counts_the_same() {
        let ring = Ring::new(9, Vec::new(), UNREAD).unwrap();
        ring.write(&[event(0)]);
        ring.set_slow(true);
        assert!(ring.region.word(HEAD).load(Ordering::Relaxed) > UNREAD);
        ring.write(&[event(1)]);
        assert_eq!(ring.head(), 2);
        ring.set_slow(false);
        assert_eq!(ring.region.word(HEAD).load(Ordering::Relaxed), 2);
    }

    #[test]
    fn events_after_the_reader_has_started_are_not_overwritten() {
        let ring = Ring::new(9, Vec::new(), UNREAD).unwrap();
        for number in 0..3 * CAPACITY {
            assert!(ring.has_room(1));
            ring.write(&[event(number)]);
        }
        let tail = ring.begin_reading();
        assert_eq!(tail, 3 * CAPACITY);
        let written = (tail..).take_while(|number| {
            let room = ring.has_room(1);
            if room {
                ring.write(&[event(*number)]);
            }
            room
        });
        assert_eq!(written.count() as u64, CAPACITY);
        assert_eq!((ring.head(), ring.event(tail)), (tail + CAPACITY, event(tail)));
    }

    #[test]
    fn counts_are_of_each_method() {
        let ring = Ring::new(1, Vec::new(), CAPACITY).unwrap();
        ring.count(3, false);
        ring.count(3, false);
        ring.count(3, true);
        ring.count(MAX_METHODS, false);
        let mut sums = vec![[1, 1]; 5];
        ring.add_counts(&mut sums);
        assert_eq!(sums, [[1, 1], [1, 1], [1, 1], [3, 2], [1, 1]]);
    }
}
