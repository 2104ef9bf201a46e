//! The parts of F1, the version of runtap: batches of fixed-size events, drops, counts, coverage, and the agent's
//! process.
//!
//! Contains the values and the tables inside of messages, which are decoded in place. The specification is
//! `docs/bytefrog-f1.md`.

use std::borrow::Cow;

use crate::JavaStr;

/// The largest number of events in a batch, and of rows in a table.
pub const MAX_ROWS: u32 = 65_536;

/// The reason in a "transform failed" message for a method that was running when its class was instrumented: the
/// trace has neither the entry nor the exit of such a call.
pub const ALREADY_RUNNING: &str = "already running when the trace began";

/// The mark that an agent adds to the name of a class that the JVM had loaded before the trace began: methods of
/// such a class may have run before.
pub const LOADED_BEFORE: &str = "loaded before the trace began";

/// Adds [`LOADED_BEFORE`] to an agent's report on a class: its name, with or without reasons in parentheses.
pub fn mark_loaded_before(report: &str) -> String {
    match report.split_once(" (") {
        Some((class, reasons)) => format!("{class} ({LOADED_BEFORE}; {reasons}"),
        None => format!("{report} ({LOADED_BEFORE})"),
    }
}

/// Removes [`LOADED_BEFORE`] from a report; also returns whether the report had that mark.
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

/// The type of an event in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// The entry of a call.
    Entry,
    /// The exit of a call.
    Exit,
    /// One of the two types that F1 does not use: the raw number, 2 or 3.
    Reserved(u8),
}

/// An event of a batch: the type and the method take four bytes, the time another four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchEvent {
    /// The type of the event.
    pub kind: BatchKind,
    /// The ID of the method, below 2^30.
    pub method: u32,
    /// The time in nanoseconds since [`Batch::base`].
    pub delta: u32,
}

/// The largest method ID that a batch can contain.
pub const MAX_METHOD: u32 = (1 << 30) - 1;

impl BatchEvent {
    /// Decodes an event.
    #[inline]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let both = u64::from_be_bytes(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "splits a u64 into its halves")]
        let (high, delta) = ((both >> 32) as u32, both as u32);
        let kind = match high >> 30 {
            0 => BatchKind::Entry,
            1 => BatchKind::Exit,
            2 => BatchKind::Reserved(2),
            _ => BatchKind::Reserved(3),
        };
        Self { kind, method: high & MAX_METHOD, delta }
    }

    /// Encodes the event. The two highest bits of the method ID are lost.
    #[inline]
    pub fn to_bytes(self) -> [u8; 8] {
        let kind = match self.kind {
            BatchKind::Entry => 0,
            BatchKind::Exit => 1,
            BatchKind::Reserved(raw) => u64::from(raw & 3),
        };
        (kind << 62 | u64::from(self.method & MAX_METHOD) << 32 | u64::from(self.delta)).to_be_bytes()
    }
}

/// Consecutive entries and exits of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch<'a> {
    /// The thread of the events.
    pub thread: u32,
    /// The number of the first event among all events of the thread, from 0.
    pub sequence: u64,
    /// The time that the times of the events are relative to, in nanoseconds.
    pub base: u64,
    /// The encoded events.
    pub rows: Rows<'a, 8>,
}

impl<'a> Batch<'a> {
    /// Returns the decoded events.
    #[inline]
    pub fn events(&self) -> impl ExactSizeIterator<Item = BatchEvent> + use<'a> {
        self.rows.0.iter().map(|row| BatchEvent::from_bytes(*row))
    }
}

/// The borrowed rows of a table, of `N` bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rows<'a, const N: usize>(pub(crate) &'a [[u8; N]]);

impl<'a, const N: usize> Rows<'a, N> {
    /// Creates a table of these rows.
    pub fn new(rows: &'a [[u8; N]]) -> Self {
        Self(rows)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of all rows.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

/// The reason why events were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DropReason(pub u8);

impl DropReason {
    /// Recording was suspended.
    pub const SUSPENDED: Self = Self(0);
    /// The buffer of the thread was full.
    pub const FULL: Self = Self(1);
    /// The agent continued with counts only.
    pub const DEGRADED: Self = Self(2);

    /// Returns the name of the reason; `None` if it is unknown.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::SUSPENDED => Some("suspended"),
            Self::FULL => Some("full"),
            Self::DEGRADED => Some("degraded"),
            _ => None,
        }
    }
}

/// Events of a thread that were dropped. They have no sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drop {
    /// The thread of the events.
    pub thread: u32,
    /// The number of the next event that the agent sends.
    pub sequence: u64,
    /// The time of the first dropped event, in nanoseconds.
    pub time: u64,
    /// The number of dropped events; [`Drop::UNKNOWN`] if it was not counted.
    pub count: u64,
    /// The reason.
    pub reason: DropReason,
}

impl Drop {
    /// The value of `count` if the number of dropped events is unknown.
    pub const UNKNOWN: u64 = u64::MAX;
}

/// A snapshot of call counts, or a part of it: a snapshot may take several messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CountRows<'a> {
    /// The number of the snapshot, from 0.
    pub snapshot: u32,
    /// The time of the snapshot, in nanoseconds.
    pub time: u64,
    /// Whether this is the last message of the snapshot.
    pub last: bool,
    /// Whether the agent reset its counts to zero after this snapshot.
    pub reset: bool,
    /// The encoded rows.
    pub rows: Rows<'a, 28>,
}

/// The calls of one method since the trace began, or since the last snapshot with a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// The ID of the method.
    pub method: u32,
    /// The number of calls that began.
    pub calls: u64,
    /// The number of calls that ended with an exception.
    pub thrown: u64,
    /// The total time of the calls that ended, including callees, in nanoseconds; 0 if the agent does not measure
    /// time.
    pub nanoseconds: u64,
}

impl CountRows<'_> {
    /// Returns the decoded rows.
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
    /// Encodes the row.
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

/// The methods and locations that ran for the first time since the trace began, or since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HitRows<'a> {
    /// The end of the interval that this message covers, in nanoseconds.
    pub time: u64,
    /// The encoded rows.
    pub rows: Rows<'a, 8>,
}

/// A method, or a location in it, that has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The ID of the method.
    pub method: u32,
    /// The ID of the location; `None` for the method itself.
    pub location: Option<u32>,
}

impl HitRows<'_> {
    /// Returns the decoded rows.
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
    /// Encodes the row.
    pub fn to_bytes(self) -> [u8; 8] {
        let [m0, m1, m2, m3] = self.method.to_be_bytes();
        let [l0, l1, l2, l3] = self.location.unwrap_or(u32::MAX).to_be_bytes();
        [m0, m1, m2, m3, l0, l1, l2, l3]
    }
}

/// The process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process<'a> {
    /// The process ID, in the namespace of the process.
    pub pid: u32,
    /// The wall-clock time at the agent's time 0, in nanoseconds since 1970.
    pub wall: u64,
    /// The resolution of the clock in nanoseconds: 1 or 1,000,000.
    pub resolution: u32,
    /// The version of the JVM.
    pub jvm: JavaStr<'a>,
    /// The class, module or JAR file that was started.
    pub main: JavaStr<'a>,
}
