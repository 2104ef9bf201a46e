//! A ring of events for each thread.
//!
//! Owns: its layout, which the probes (`probe`) know too; writing from the slow path; reading. One thread writes
//! into a ring, and one native thread reads: no lock, no atomic read-modify-write.
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
//! A probe writes if `head < limit`. Everything that is not writing an event is made by a limit, or a head, for which that
//! does not hold: a full ring, a program that is paused, events that were dropped and have to be told.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use crate::losses::Losses;
use crate::region::Region;
use crate::session::locked;

/// Events of a ring: 128 KiB, which stay in the processor's second cache.
pub(crate) const CAPACITY: u64 = 8192;
/// Offsets, see above.
pub(crate) const HEAD: usize = 0;
pub(crate) const CURRENT: usize = 8;
pub(crate) const COUNTS: usize = 16;
pub(crate) const LIMIT: usize = 64;
pub(crate) const EVENTS: usize = 4096;
/// The bit of a head that sends the probe to the slow path.
pub(crate) const SLOW: u64 = 1 << 62;
/// The limit when nobody reads: events go around for ever.
pub(crate) const NOBODY: u64 = SLOW - 1;
/// The limit while the program is paused.
pub(crate) const PAUSED: u64 = 0;
/// Methods that counts have room for, and coverage too (`lines` has what it has besides).
pub(crate) const MOST_METHODS: u32 = 1 << 20;
/// Bytes of the counts of a method: calls, and those that an exception ended.
pub(crate) const COUNT_BYTES: usize = 16;

/// What an event is: the upper byte of its second word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Entry = 0,
    Exit = 1,
    /// Followed by the id of the exception.
    Throw = 2,
    /// Followed by the id of the exception.
    Bubble = 3,
    /// Events of another thread follow, whose id is in the next event.
    Switch = 4,
    /// Events of the ring's own thread are missing; how many since the ring was made is in the next event, why in the place
    /// of the method.
    Drop = 5,
    /// What belongs to the event before, in its first word.
    More = 6,
    /// Never in a ring: count a call, or one that an exception ended.
    Count = 7,
    CountThrown = 8,
    /// So many calls of the method are on the stack, and the topmost is about to end: those above it have ended without a
    /// word. The number is in the next event.
    Standing = 9,
    /// A call of a constructor of which it is not known yet whether the one that it calls returns: `stream/constructors`.
    Called = 10,
    /// That one has returned, or [`Kind::Bubble`] follows. It is no event of the program.
    Constructed = 11,
}

impl Kind {
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

    /// The second word of an event, without its method and line.
    pub(crate) const fn word(self) -> u64 {
        (self as u64) << 56
    }

    pub(crate) fn of(word: u64) -> Option<Self> {
        let [kind, ..] = word.to_be_bytes();
        Self::ALL.get(usize::from(kind)).copied()
    }
}

/// The method of an event.
#[inline]
pub(crate) fn method_of(word: u64) -> u32 {
    let [.., a, b, c, d] = word.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The line of an event.
#[inline]
pub(crate) fn line_of(word: u64) -> u16 {
    let [_, _, high, low, ..] = word.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// An event as it stands in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) time: u64,
    pub(crate) word: u64,
}

/// The ring of a platform thread.
#[derive(Debug)]
pub(crate) struct Ring {
    region: Region,
    /// `Thread.tid`.
    pub(crate) tid: u64,
    /// Its name when it made its first event, in modified UTF-8.
    pub(crate) name: Vec<u8>,
    /// To wake it while it waits for room.
    thread: Thread,
    waits: AtomicBool,
    /// It is gone, and writes no more.
    pub(crate) ended: AtomicBool,
    /// The reader has it.
    pub(crate) adopted: AtomicBool,
    /// It has carried a virtual thread.
    pub(crate) carries: AtomicBool,
    /// The thread's own events that were dropped since the ring was made; written by the thread.
    pub(crate) dropped: AtomicU64,
    /// The time of the first dropped event that no [`Kind::Drop`] reports yet.
    pub(crate) dropped_since: AtomicU64,
    /// The number of dropped events that the last [`Kind::Drop`] has reported; used by the thread only.
    pub(crate) dropped_reported: AtomicU64,
    /// The thread has dropped an event and has not had much room since; used by the thread only.
    pub(crate) is_dropping: AtomicBool,
    losses: Mutex<Losses>,
    /// It has gone over to counts.
    pub(crate) degraded: AtomicBool,
    counts: Mutex<Option<Region>>,
}

impl Ring {
    /// A ring of the calling thread.
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

    /// Events that are written.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.region.word(HEAD).load(Ordering::Acquire) & !SLOW
    }

    /// The event of a number: one below [`head`](Self::head) and not more than a capacity behind it.
    #[inline]
    pub(crate) fn event(&self, number: u64) -> Raw {
        let at = Self::place(number);
        Raw {
            time: self.region.word(at).load(Ordering::Relaxed),
            word: self.region.word(at + 8).load(Ordering::Relaxed),
        }
    }

    fn place(number: u64) -> usize {
        EVENTS + usize::try_from(number % CAPACITY).unwrap_or(0) * 16
    }

    /// The reader: how far the thread may write.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.region.word(LIMIT).store(limit, Ordering::Release);
        if self.waits.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// The reader: begins to read a ring that nobody has read, whose events went around, and says from which number on. No
    /// event from there on is written over before it is read.
    pub(crate) fn begin_reading(&self) -> u64 {
        self.set_limit(self.head() + CAPACITY);
        // Not the head of before: what is written in between may be more than the ring has room for.
        self.head()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.region.word(LIMIT).load(Ordering::Acquire)
    }

    /// The thread: whether the reader lets it write nothing at all, and nothing is lost by waiting.
    pub(crate) fn is_paused(&self) -> bool {
        self.limit() == PAUSED
    }

    /// The thread: whether so many events can be written now.
    pub(crate) fn has_room(&self, events: u64) -> bool {
        self.head() + events <= self.limit()
    }

    /// The thread: waits a little, or until the limit moves.
    pub(crate) fn wait(&self, events: u64) {
        self.waits.store(true, Ordering::SeqCst);
        if !self.has_room(events) {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        self.waits.store(false, Ordering::SeqCst);
    }

    /// The thread: writes events that there is room for, all at once.
    pub(crate) fn write(&self, events: &[Raw]) {
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

    /// The thread: whether its next probe takes the slow path in any case.
    pub(crate) fn set_slow(&self, slow: bool) {
        let word = self.region.word(HEAD);
        let head = word.load(Ordering::Relaxed) & !SLOW;
        word.store(if slow { head | SLOW } else { head }, Ordering::Release);
    }

    /// The id of the Java thread whose events come.
    pub(crate) fn current(&self) -> &AtomicU64 {
        self.region.word(CURRENT)
    }

    /// The thread: an event of a virtual thread had no room.
    pub(crate) fn lose(&self, tid: u64, time: u64) {
        locked(&self.losses).add(tid, time);
    }

    /// The reader: the events of virtual threads that had no room since the last call.
    pub(crate) fn take_losses(&self) -> Losses {
        std::mem::take(&mut locked(&self.losses))
    }

    /// The thread: counts a call.
    pub(crate) fn count(&self, method: u32, thrown: bool) {
        let mut counts = locked(&self.counts);
        if counts.is_none() {
            let length = MOST_METHODS as usize * COUNT_BYTES;
            // Without memory, nothing is counted: the program goes on.
            let Ok(region) = Region::new(length) else { return };
            self.region.word(COUNTS).store(region.address(), Ordering::Release);
            *counts = Some(region);
        }
        if let Some(region) = counts.as_ref()
            && method < MOST_METHODS
        {
            let word = region.word(method as usize * COUNT_BYTES + usize::from(thrown) * 8);
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Adds its counts to those of others: calls, and those that an exception ended, by method.
    pub(crate) fn add_counts(&self, sums: &mut [[u64; 2]]) {
        let counts = locked(&self.counts);
        let Some(region) = counts.as_ref() else { return };
        for (method, sum) in sums.iter_mut().enumerate().take(MOST_METHODS as usize) {
            for (half, sum) in sum.iter_mut().enumerate() {
                *sum += region.word(method * COUNT_BYTES + half * 8).load(Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Raw {
        Raw { time: number, word: Kind::Exit.word() | 0xffff << 32 | (number % 7) }
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
        assert_eq!((Kind::of(word), method_of(word), line_of(word)), (Some(Kind::Exit), 3, u16::MAX));
    }

    #[test]
    fn a_slow_head_is_above_every_limit_and_counts_the_same() {
        let ring = Ring::new(9, Vec::new(), NOBODY).unwrap();
        ring.write(&[event(0)]);
        ring.set_slow(true);
        assert!(ring.region.word(HEAD).load(Ordering::Relaxed) > NOBODY);
        ring.write(&[event(1)]);
        assert_eq!(ring.head(), 2);
        ring.set_slow(false);
        assert_eq!(ring.region.word(HEAD).load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_comes_once_somebody_reads_is_not_written_over() {
        let ring = Ring::new(9, Vec::new(), NOBODY).unwrap();
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
        ring.count(MOST_METHODS, false);
        let mut sums = vec![[1, 1]; 5];
        ring.add_counts(&mut sums);
        assert_eq!(sums, [[1, 1], [1, 1], [1, 1], [3, 2], [1, 1]]);
    }
}
