//! What only our own version has: batches of fixed-size events, drops, counts, coverage, the agent's process.
//!
//! Owns: the values and the tables inside of messages, read in place. `docs/bytefrog-f1.md` is their specification.

use std::borrow::Cow;

use crate::JavaStr;

/// The most events of a batch, and rows of a table.
pub const MOST_ROWS: u32 = 65_536;

/// The reason that an agent gives in a "transform failed" message for a method that was running when its class got its
/// probes: neither the beginning nor the end of such a call is seen.
pub const ALREADY_RUNNING: &str = "already running when the trace began";

/// What an agent adds to the name of a class that the JVM had loaded before the trace began: methods of such a class may have
/// run before.
pub const LOADED_BEFORE: &str = "loaded before the trace began";

/// Adds [`LOADED_BEFORE`] to what an agent reports of a class: its name, with or without reasons in brackets.
pub fn mark_loaded_before(report: &str) -> String {
    match report.split_once(" (") {
        Some((class, reasons)) => format!("{class} ({LOADED_BEFORE}; {reasons}"),
        None => format!("{report} ({LOADED_BEFORE})"),
    }
}

/// Returns the report without [`LOADED_BEFORE`], and whether it had that.
pub fn strip_loaded_before(report: &str) -> (Cow<'_, str>, bool) {
    let Some((class, reasons)) = report.split_once(" (") else { return (report.into(), false) };
    match reasons.strip_prefix(LOADED_BEFORE) {
        Some(")") => (class.into(), true),
        Some(rest) => match rest.strip_prefix("; ") {
            Some(reasons) => (format!("{class} ({reasons}").into(), true),
            None => (report.into(), false),
        },
        None => (report.into(), false),
    }
}

/// What happened to a method, in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// A call has begun.
    Entry,
    /// A call has ended.
    Exit,
    /// The two kinds that F1 does not use. The raw number, 2 or 3.
    Reserved(u8),
}

/// An event of a batch: kind and method in four bytes, the time in another four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchEvent {
    /// What happened.
    pub kind: BatchKind,
    /// The method, below 2^30.
    pub method: u32,
    /// Nanoseconds since [`Batch::base`].
    pub delta: u32,
}

/// The largest id of a method that a batch can have.
pub const MOST_METHOD: u32 = (1 << 30) - 1;

impl BatchEvent {
    /// Reads the eight bytes.
    #[inline]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let both = u64::from_be_bytes(bytes);
        // The halves of a u64.
        #[expect(clippy::cast_possible_truncation, reason = "shifted to what the type has")]
        let (high, delta) = ((both >> 32) as u32, both as u32);
        let kind = match high >> 30 {
            0 => BatchKind::Entry,
            1 => BatchKind::Exit,
            2 => BatchKind::Reserved(2),
            _ => BatchKind::Reserved(3),
        };
        Self { kind, method: high & MOST_METHOD, delta }
    }

    /// The eight bytes. Bits of the method above the 30th are lost.
    #[inline]
    pub fn to_bytes(self) -> [u8; 8] {
        let kind = match self.kind {
            BatchKind::Entry => 0,
            BatchKind::Exit => 1,
            BatchKind::Reserved(raw) => u64::from(raw & 3),
        };
        (kind << 62 | u64::from(self.method & MOST_METHOD) << 32 | u64::from(self.delta)).to_be_bytes()
    }
}

/// Entries and exits of one thread, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch<'a> {
    /// Whose they are.
    pub thread: u32,
    /// The number of the first one among all events of the thread, from 0.
    pub sequence: u64,
    /// The time that those of the events are relative to, in nanoseconds.
    pub base: u64,
    /// The events.
    pub rows: Rows<'a, 8>,
}

impl<'a> Batch<'a> {
    /// The events.
    #[inline]
    pub fn events(&self) -> impl ExactSizeIterator<Item = BatchEvent> + use<'a> {
        self.rows.0.iter().map(|row| BatchEvent::from_bytes(*row))
    }
}

/// The rows of a table, of `N` bytes each, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rows<'a, const N: usize>(pub(crate) &'a [[u8; N]]);

impl<'a, const N: usize> Rows<'a, N> {
    /// The rows.
    pub fn new(rows: &'a [[u8; N]]) -> Self {
        Self(rows)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

/// Why events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DropReason(pub u8);

impl DropReason {
    /// Recording was suspended.
    pub const SUSPENDED: Self = Self(0);
    /// The buffer of the thread was full.
    pub const FULL: Self = Self(1);
    /// The agent went on with counts only.
    pub const DEGRADED: Self = Self(2);

    /// What it means, if it is known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::SUSPENDED => Some("suspended"),
            Self::FULL => Some("full"),
            Self::DEGRADED => Some("degraded"),
            _ => None,
        }
    }
}

/// Events of a thread that were not sent. They take no sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drop {
    /// Whose they were.
    pub thread: u32,
    /// The number of the next event that is sent.
    pub sequence: u64,
    /// When the first one was missed, in nanoseconds.
    pub time: u64,
    /// How many; [`Drop::UNKNOWN`] if nobody counted.
    pub count: u64,
    /// Why.
    pub reason: DropReason,
}

impl Drop {
    /// The count of what nobody counted.
    pub const UNKNOWN: u64 = u64::MAX;
}

/// Calls of methods, or a part of them: a snapshot may take several messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CountRows<'a> {
    /// The number of the snapshot, from 0.
    pub snapshot: u32,
    /// When it was taken, in nanoseconds.
    pub time: u64,
    /// Whether this is its last message.
    pub last: bool,
    /// Whether the agent counts from zero after this snapshot.
    pub reset: bool,
    /// The rows.
    pub rows: Rows<'a, 28>,
}

/// Calls of one method since the trace began, or since the last snapshot that said reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// Which one.
    pub method: u32,
    /// Calls that began.
    pub calls: u64,
    /// Calls that an exception ended.
    pub thrown: u64,
    /// Time in those that ended, callees included, in nanoseconds; 0 if the agent measures none.
    pub nanoseconds: u64,
}

impl CountRows<'_> {
    /// The rows.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = Count> {
        self.rows.0.iter().map(|row| {
            let [m0, m1, m2, m3, rest @ ..] = *row;
            let (numbers, _) = rest.as_chunks::<8>();
            let number = |i: usize| numbers.get(i).map_or(0, |bytes| u64::from_be_bytes(*bytes));
            Count {
                method: u32::from_be_bytes([m0, m1, m2, m3]),
                calls: number(0),
                thrown: number(1),
                nanoseconds: number(2),
            }
        })
    }
}

impl Count {
    /// The bytes of a row.
    pub fn to_bytes(self) -> [u8; 28] {
        let mut row = [0; 28];
        let bytes = self
            .method
            .to_be_bytes()
            .into_iter()
            .chain([self.calls, self.thrown, self.nanoseconds].into_iter().flat_map(u64::to_be_bytes));
        for (to, from) in row.iter_mut().zip(bytes) {
            *to = from;
        }
        row
    }
}

/// What has run for the first time since the trace began, or since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HitRows<'a> {
    /// Until when, in nanoseconds.
    pub time: u64,
    /// The rows.
    pub rows: Rows<'a, 8>,
}

/// A method, or a place in it, that has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The method.
    pub method: u32,
    /// The place; `None` is the method as such.
    pub location: Option<u32>,
}

impl HitRows<'_> {
    /// The rows.
    pub fn hits(&self) -> impl ExactSizeIterator<Item = Hit> {
        self.rows.0.iter().map(|row| {
            let [m0, m1, m2, m3, l0, l1, l2, l3] = *row;
            let location = u32::from_be_bytes([l0, l1, l2, l3]);
            Hit {
                method: u32::from_be_bytes([m0, m1, m2, m3]),
                location: (location != u32::MAX).then_some(location),
            }
        })
    }
}

impl Hit {
    /// The bytes of a row.
    pub fn to_bytes(self) -> [u8; 8] {
        let [m0, m1, m2, m3] = self.method.to_be_bytes();
        let [l0, l1, l2, l3] = self.location.unwrap_or(u32::MAX).to_be_bytes();
        [m0, m1, m2, m3, l0, l1, l2, l3]
    }
}

/// The process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process<'a> {
    /// Its id, in its own namespace.
    pub pid: u32,
    /// Nanoseconds since 1970 at the agent's time 0.
    pub wall: u64,
    /// The clock moves in steps of so many nanoseconds: 1, or 1,000,000.
    pub resolution: u32,
    /// The version of the JVM.
    pub jvm: JavaStr<'a>,
    /// The class, module or jar that was started.
    pub main: JavaStr<'a>,
}
