//! Segments of a trace, from markers.
//!
//! A marker starts a segment with its key and value, which lasts until the next marker with the same key. The value
//! `E` only ends a segment: the request filter of the original agent sends `S` and `E`.

use runtap_bytefrog_proto::{JavaStr, JavaString};
use runtap_model::order;

/// The maximum number of open segments, which have different keys.
const MAX_OPEN: usize = 32;
/// The maximum length of a key or value that is kept, in bytes; longer ones are truncated.
const MAX_TEXT: usize = 1024;

/// A part of a trace between two markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The key of the marker.
    pub key: JavaString,
    /// The value of the marker.
    pub value: JavaString,
    /// The start, in units of the clock.
    pub start: i64,
    /// The end, in units of the clock; `None` if the segment is open.
    pub end: Option<i64>,
    /// The sequence IDs of the markers at the start and the end. 0 and `None` in F1, where each thread has its own
    /// IDs.
    pub sequences: (u64, Option<u64>),
    /// The number of calls that began in the segment, by method index; methods without calls are omitted.
    pub(crate) calls: Vec<(u32, u64)>,
    /// The number of calls that began in the segment.
    pub entries: u64,
    /// Whether the calls of each method exceeded a limit.
    pub truncated: bool,
}

#[derive(Debug)]
struct OpenSegment {
    segment: Segment,
    /// The number of calls of each method at the start.
    before: Vec<u64>,
    entries: u64,
}

#[derive(Debug)]
pub(crate) struct Segments {
    open: Vec<OpenSegment>,
    closed: Vec<Segment>,
    limit: usize,
    /// The remaining capacity for call counts.
    remaining: usize,
    /// The number of markers that exceeded a limit.
    pub(crate) beyond: u64,
}

pub(super) fn truncated(text: JavaStr<'_>) -> JavaString {
    JavaStr::from_bytes(text.as_bytes().get(..MAX_TEXT).unwrap_or(text.as_bytes())).into()
}

impl Segments {
    /// Creates a table of at most `limit` segments with at most `max_counts` call counts together.
    pub(crate) fn new(limit: usize, max_counts: usize) -> Self {
        Self { open: Vec::new(), closed: Vec::new(), limit, remaining: max_counts, beyond: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.closed.len()
    }

    /// Handles a marker at this time and with this sequence ID. The calls of the methods are requested only if the
    /// marker starts or ends a segment, because collecting them is expensive.
    pub(crate) fn marker(
        &mut self,
        key: JavaStr<'_>,
        value: JavaStr<'_>,
        (time, sequence): (i64, u64),
        calls: impl FnOnce() -> Vec<u64>,
    ) {
        let key = truncated(key);
        let open = self.open.iter().position(|open| open.segment.key == key);
        let ends = value.as_bytes() == b"E";
        let others = self.open.len() - usize::from(open.is_some());
        let has_room = others < MAX_OPEN && self.closed.len() + self.open.len() < self.limit;
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
            self.remaining += open.before.len();
            open.segment.end = Some(time);
            open.segment.sequences.1 = Some(sequence);
            measure(&mut open, &calls);
            if open.segment.calls.len() <= self.remaining {
                self.remaining -= open.segment.calls.len();
            } else {
                open.segment.calls = Vec::new();
                open.segment.truncated = true;
            }
            self.closed.push(open.segment);
        }
        if !begins {
            return;
        }
        let remaining = self.remaining.checked_sub(calls.len());
        self.remaining = remaining.unwrap_or(self.remaining);
        let segment = Segment {
            key,
            value: truncated(value),
            start: time,
            end: None,
            sequences: (sequence, None),
            calls: Vec::new(),
            entries: 0,
            truncated: remaining.is_none(),
        };
        let entries = calls.iter().sum();
        let before = if remaining.is_some() { calls } else { Vec::new() };
        self.open.push(OpenSegment { segment, before, entries });
    }

    /// Returns all segments, sorted by start; open ones as of these call counts.
    pub(crate) fn all(&self, calls: &[u64]) -> Vec<Segment> {
        let mut all = self.closed.clone();
        for open in &self.open {
            let mut open = OpenSegment {
                segment: open.segment.clone(),
                before: open.before.clone(),
                entries: open.entries,
            };
            measure(&mut open, calls);
            all.push(open.segment);
        }
        order::sort_by_key(&mut all, |segment| segment.start);
        all
    }
}

fn measure(open: &mut OpenSegment, calls: &[u64]) {
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
    fn markers_beyond_the_limit_do_not_request_calls() {
        let mut segments = Segments::new(3, 100);
        let text = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
        let mut requested = 0;
        for number in 0..50 {
            segments.marker(text("k"), text("v"), (number, 0), || {
                requested += 1;
                vec![1, 2]
            });
        }
        // Three segments; the fourth marker ends the last one.
        assert_eq!((requested, segments.beyond, segments.all(&[1, 2]).len()), (4, 47, 3));
        segments.marker(text("other"), text("E"), (0, 0), || unreachable!("nothing ends"));
    }
}
