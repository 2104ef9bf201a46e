//! Markers as segments of a trace.
//!
//! Owns: [`Segments`]. A marker begins a segment with its key and value, which lasts until the next marker with the same key.
//! The value `E` only ends: the request filter of the original sends `S` and `E`.

use runtap_bytefrog_proto::{JavaStr, JavaString};

/// Segments with different keys that may be open at a time.
const MOST_OPEN: usize = 32;
/// The longest key and value that are kept, in bytes; longer ones are cut.
const LONGEST: usize = 1024;

/// A part of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The key of the marker.
    pub key: JavaString,
    /// Its value.
    pub value: JavaString,
    /// When it began, in units of the clock.
    pub start: i64,
    /// When it ended; `None`: it has not.
    pub end: Option<i64>,
    /// The sequence ids of the markers that begin and end it. 0 and `None` in F1, where each thread has its own.
    pub sequences: (u64, Option<u64>),
    /// Calls that began in it, for each method by its index; methods without calls are left out.
    pub(crate) calls: Vec<(u32, u64)>,
    /// Calls that began in it.
    pub entries: u64,
    /// Whether there was no room for the calls of each method.
    pub truncated: bool,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    /// Calls of each method when it began.
    before: Vec<u64>,
    entries: u64,
}

#[derive(Debug)]
pub(crate) struct Segments {
    open: Vec<Open>,
    closed: Vec<Segment>,
    limit: usize,
    /// Numbers of calls that may still be kept.
    room: usize,
    /// Markers that had no room.
    pub(crate) beyond: u64,
}

pub(super) fn cut(text: JavaStr<'_>) -> JavaString {
    JavaStr::from_bytes(text.as_bytes().get(..LONGEST).unwrap_or(text.as_bytes())).into()
}

impl Segments {
    /// At most `limit` segments with `room` numbers of calls together.
    pub(crate) fn new(limit: usize, room: usize) -> Self {
        Self { open: Vec::new(), closed: Vec::new(), limit, room, beyond: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.closed.len()
    }

    /// A marker at this time and with this sequence id. What calls the methods had is asked only for a marker that begins or
    /// ends a segment: there are more methods than bytes of a marker.
    pub(crate) fn marker(
        &mut self,
        key: JavaStr<'_>,
        value: JavaStr<'_>,
        (time, sequence): (i64, u64),
        calls: impl FnOnce() -> Vec<u64>,
    ) {
        let key = cut(key);
        let open = self.open.iter().position(|open| open.segment.key == key);
        let ends = value.as_bytes() == b"E";
        let others = self.open.len() - usize::from(open.is_some());
        let has_room = others < MOST_OPEN && self.closed.len() + self.open.len() < self.limit;
        if !ends && !has_room {
            self.beyond += 1;
        }
        let begins = !ends && has_room;
        if open.is_none() && !begins {
            return;
        }
        let calls = calls();
        if let Some(at) = open {
            let mut open = self.open.swap_remove(at);
            self.room += open.before.len();
            open.segment.end = Some(time);
            open.segment.sequences.1 = Some(sequence);
            measure(&mut open, &calls);
            if open.segment.calls.len() <= self.room {
                self.room -= open.segment.calls.len();
            } else {
                open.segment.calls = Vec::new();
                open.segment.truncated = true;
            }
            self.closed.push(open.segment);
        }
        if !begins {
            return;
        }
        let room = self.room.checked_sub(calls.len());
        self.room = room.unwrap_or(self.room);
        let segment = Segment {
            key,
            value: cut(value),
            start: time,
            end: None,
            sequences: (sequence, None),
            calls: Vec::new(),
            entries: 0,
            truncated: room.is_none(),
        };
        let entries = calls.iter().sum();
        let before = if room.is_some() { calls } else { Vec::new() };
        self.open.push(Open { segment, before, entries });
    }

    /// All segments by their beginning; those that are open as they are with these calls.
    pub(crate) fn all(&self, calls: &[u64]) -> Vec<Segment> {
        let mut all = self.closed.clone();
        for open in &self.open {
            let mut open =
                Open { segment: open.segment.clone(), before: open.before.clone(), entries: open.entries };
            measure(&mut open, calls);
            all.push(open.segment);
        }
        all.sort_by_key(|segment| segment.start);
        all
    }
}

fn measure(open: &mut Open, calls: &[u64]) {
    open.segment.entries = calls.iter().sum::<u64>().saturating_sub(open.entries);
    if open.segment.truncated {
        return;
    }
    let before = open.before.iter().copied().chain(std::iter::repeat(0));
    let more = (0..).zip(calls.iter().zip(before)).map(|(method, (now, before))| (method, now - before));
    open.segment.calls = more.filter(|(_, more)| *more > 0).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_without_room_ask_for_no_calls() {
        let mut segments = Segments::new(3, 100);
        let text = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
        let mut asked = 0;
        for number in 0..50 {
            segments.marker(text("k"), text("v"), (number, 0), || {
                asked += 1;
                vec![1, 2]
            });
        }
        // Three segments, of which the last one ends with the fourth marker.
        assert_eq!((asked, segments.beyond, segments.all(&[1, 2]).len()), (4, 47, 3));
        segments.marker(text("other"), text("E"), (0, 0), || unreachable!("nothing ends"));
    }
}
