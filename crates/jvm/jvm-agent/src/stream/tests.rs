//! Written messages are decoded by HQ's own decoder and must have the original meaning.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use runtap_bytefrog_proto::f1::{BatchKind, DropReason};
use runtap_bytefrog_proto::{Decoder, Dialect, Message, Stream as Direction};

use super::{Event, MAX_TEXT, MAX_THREADS, Stream, text};
use crate::losses::Loss;
use crate::names::Names;
use crate::ring::EventKind;

/// An operation that a test performs on a stream.
#[derive(Debug, Clone)]
enum Step {
    Event(u64, EventKind, u32),
    Discard(u64),
    Drop(u64),
    End(u64),
    /// Advances the time by this number of nanoseconds.
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        6 => Just(EventKind::Entry),
        6 => Just(EventKind::Exit),
        1 => Just(EventKind::Throw),
        1 => Just(EventKind::Bubble),
    ];
    let step = prop_oneof![
        12 => (1..4u64, kind, 0..5u32).prop_map(|(tid, kind, method)| Step::Event(tid, kind, method)),
        1 => (1..4u64).prop_map(Step::Discard),
        1 => (1..4u64).prop_map(Step::Drop),
        1 => (1..4u64).prop_map(Step::End),
        3 => (0..6_000_000_000u64).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..200)
}

fn stream(dialect: Dialect, connections: usize) -> Stream {
    let (methods, exceptions) = (Arc::new(Names::default()), Arc::new(Names::default()));
    for name in ["a", "b", "c", "d", "e"] {
        methods.id(name.as_bytes(), 100);
    }
    exceptions.id(b"x", 100);
    Stream::new(dialect, 0, connections, methods, exceptions, Arc::default())
}

/// The state of each thread: its open calls, and whether it has lost events.
type Known = HashMap<u64, (Vec<u32>, bool)>;

/// Returns whether an event is to be reported: that of a call that is open, or may be.
fn is_of_this_trace(known: &mut Known, tid: u64, kind: EventKind, method: u32) -> bool {
    let (open, lossy) = known.entry(tid).or_default();
    if kind == EventKind::Entry {
        open.push(method);
        return true;
    }
    let place = open.iter().rposition(|one| *one == method);
    if let (Some(place), EventKind::Exit | EventKind::Bubble) = (place, kind) {
        open.truncate(place);
    }
    place.is_some() || *lossy
}

/// Performs the steps; returns the events of entries and exits that are to be reported.
fn run(stream: &mut Stream, steps: &[Step]) -> Vec<(EventKind, u32, u64)> {
    let (mut time, mut events) = (0, Vec::new());
    let mut known = Known::new();
    for step in steps {
        match *step {
            Step::Event(tid, kind, method) => {
                time += 1;
                let event = Event { kind, time, method, line: 7, exception: 0 };
                stream.event(tid, Some(b"thread"), &event);
                let is_said = is_of_this_trace(&mut known, tid, kind, method);
                if is_said && matches!(kind, EventKind::Entry | EventKind::Exit) {
                    events.push((kind, method, time));
                }
            }
            Step::Discard(tid) => {
                stream.discard(tid, Some(b"thread"), time, 3);
                known.insert(tid, (Vec::new(), true));
            }
            Step::Drop(tid) => {
                stream.drop_events(tid, Some(b"thread"), time, 5, DropReason::FULL);
                known.insert(tid, (Vec::new(), true));
            }
            Step::End(tid) => {
                stream.end_thread(tid, time);
                known.remove(&tid);
            }
            Step::Later(more) => time += more,
        }
    }
    events
}

proptest! {
    #[test]
    fn f1_says_all_events_and_numbers_them(steps in steps(), connections in 1..4usize) {
        let mut stream = stream(Dialect::F1, connections);
        let mut expected = run(&mut stream, &steps);
        let mut found = Vec::new();
        for bytes in stream.buffers() {
            // By thread, because a thread stays on its connection.
            let mut next: HashMap<u32, u64> = HashMap::new();
            let mut decoder = Decoder::new(Direction::data_from_agent(Some(Dialect::F1)));
            let mut wrong = None;
            decoder.feed(bytes, |_, message| {
                let mut number = |thread: u32, sequence: u64, count: u64| {
                    let expected = next.entry(thread).or_default();
                    if *expected != sequence {
                        wrong = Some(format!("{sequence} of thread {thread} is to be {expected}"));
                    }
                    *expected = sequence + count;
                };
                match message {
                    Message::Batch(batch) => {
                        number(batch.thread, batch.sequence, batch.rows.len() as u64);
                        for event in batch.events() {
                            let kind = if event.kind == BatchKind::Entry { EventKind::Entry } else { EventKind::Exit };
                            found.push((kind, event.method, batch.base + u64::from(event.delta)));
                        }
                    }
                    Message::Exception { at, .. } | Message::Bubble { at, .. } => number(at.thread, at.sequence, 1),
                    Message::Drop(drop) => number(drop.thread, drop.sequence, 0),
                    _ => {}
                }
                None
            }).unwrap();
            prop_assert_eq!(wrong, None);
        }
        let key = |event: &(EventKind, u32, u64)| (event.2, event.1);
        expected.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn version_1_numbers_all_threads_together(steps in steps()) {
        let mut stream = stream(Dialect::V1, 1);
        let expected = run(&mut stream, &steps);
        let (mut next, mut found) = (0, 0);
        let mut decoder = Decoder::new(Direction::data_from_agent(Some(Dialect::V1)));
        let mut wrong = None;
        for bytes in stream.buffers() {
            decoder.feed(bytes, |_, message| {
                if let Message::Entry { at, .. } | Message::Exit { at, .. } = message {
                    found += 1;
                    if at.sequence != next {
                        wrong = Some(at.sequence);
                    }
                }
                if let Message::Entry { .. } | Message::Exit { .. } | Message::Exception { .. } | Message::Bubble { .. } = message {
                    next += 1;
                }
                None
            }).unwrap();
        }
        prop_assert_eq!((wrong, found), (None, expected.len()));
    }
}

#[test]
fn calls_above_one_that_ends_have_ended() {
    let mut stream = stream(Dialect::F1, 1);
    let at = |kind, method, time| Event { kind, time, method, line: 0, exception: 0 };
    for (time, method) in [(1, 0), (2, 1), (3, 2), (4, 2)] {
        stream.event(1, None, &at(EventKind::Entry, method, time));
    }
    stream.event(1, None, &at(EventKind::Exit, 0, 9));
    let mut bubbles = Vec::new();
    let mut decoder = Decoder::new(Direction::data_from_agent(Some(Dialect::F1)));
    for bytes in stream.buffers() {
        decoder
            .feed(bytes, |_, message| {
                if let Message::Bubble { method, .. } = message {
                    bubbles.push(method);
                }
                None
            })
            .unwrap();
    }
    assert_eq!(bubbles, [2, 2, 1]);
}

/// Returns the reported drops: thread, number and reason.
fn drops(stream: &mut Stream) -> Vec<(u32, u64, DropReason)> {
    let bytes = stream.buffers().concat();
    let mut drops = Vec::new();
    Decoder::new(Direction::data_from_agent(Some(Dialect::F1)))
        .feed(&bytes, |_, message| {
            if let Message::Drop(drop) = message {
                drops.push((drop.thread, drop.count, drop.reason));
            }
            None
        })
        .unwrap();
    drops
}

/// If a thread makes no more events after a suspension, its discarded events are reported when it, or the trace, ends.
#[test]
fn what_was_thrown_away_is_told_at_the_end() {
    let mut stream = stream(Dialect::F1, 1);
    let event = |kind, time| Event { kind, time, method: 0, line: 0, exception: 0 };
    for tid in 1..4 {
        stream.event(tid, Some(b"thread"), &event(EventKind::Entry, 1));
        stream.discard(tid, Some(b"thread"), 2, tid);
    }
    stream.end_thread(2, 3);
    assert_eq!(drops(&mut stream), [(1, 2, DropReason::SUSPENDED)]);
    for buffer in stream.buffers() {
        buffer.clear();
    }
    stream.report_all_missing();
    assert_eq!(drops(&mut stream), [(0, 1, DropReason::SUSPENDED), (2, 3, DropReason::SUSPENDED)]);
}

/// If a carrier has lost events of an unknown virtual thread, the loss is reported for each thread that has open
/// calls or ends one, and not for a thread that starts its first call.
#[test]
fn what_a_carrier_has_lost_may_be_of_any_virtual_thread() {
    let mut stream = stream(Dialect::F1, 1);
    let event = |kind, time| Event { kind, time, method: 0, line: 0, exception: 0 };
    stream.event(1, None, &event(EventKind::Entry, 1));
    stream.event(2, None, &event(EventKind::Entry, 2));
    stream.event(2, None, &event(EventKind::Exit, 3));
    stream.event(3, Some(b"platform"), &event(EventKind::Entry, 4));
    stream.lose(None, Loss { first: 4, last: 4, count: u64::MAX });
    for time in 5..9 {
        stream.event(1, None, &event(EventKind::Exit, time));
    }
    stream.event(2, None, &event(EventKind::Entry, 9));
    stream.event(3, Some(b"platform"), &event(EventKind::Exit, 10));
    stream.event(4, None, &event(EventKind::Exit, 11));
    let unknown = u64::MAX;
    assert_eq!(drops(&mut stream), [(0, unknown, DropReason::FULL), (3, unknown, DropReason::FULL)]);
}

/// If a virtual thread has lost events on a full carrier and continues on another one, the loss is reported before its first
/// event there, and only there.
#[test]
fn what_a_virtual_thread_has_lost_is_told_before_its_next_event() {
    let mut stream = stream(Dialect::F1, 1);
    let event = |kind, time, method| Event { kind, time, method, line: 0, exception: 0 };
    stream.event(1, None, &event(EventKind::Entry, 1, 0));
    stream.lose(Some(1), Loss { first: 3, last: 4, count: 2 });
    stream.event(1, None, &event(EventKind::Entry, 2, 1));
    assert_eq!(drops(&mut stream), []);
    stream.event(2, None, &event(EventKind::Entry, 5, 0));
    stream.event(1, None, &event(EventKind::Exit, 5, 2));
    let expected = [(0, 2, DropReason::FULL)];
    assert_eq!(drops(&mut stream), expected);
    stream.event(1, None, &event(EventKind::Exit, 6, 0));
    stream.end_round(false);
    stream.end_round(true);
    assert_eq!(drops(&mut stream), expected);
}

/// If the last events of a virtual thread are missing, the loss is reported once all earlier events were read.
#[test]
fn what_a_virtual_thread_has_lost_at_its_end_is_told() {
    let mut stream = stream(Dialect::F1, 1);
    let event = |kind, time| Event { kind, time, method: 0, line: 0, exception: 0 };
    stream.event(1, None, &event(EventKind::Entry, 1));
    for tid in 1..3 {
        stream.lose(Some(tid), Loss { first: 3, last: 4, count: tid });
    }
    stream.end_round(false);
    assert_eq!(drops(&mut stream), []);
    stream.event(1, None, &event(EventKind::Entry, 2));
    stream.end_round(false);
    assert_eq!(drops(&mut stream), [(0, 1, DropReason::FULL), (1, 2, DropReason::FULL)]);
}

#[test]
fn texts_are_cut_between_characters() {
    let long = "é".repeat(40_000);
    let cut = text(long.as_bytes());
    assert_eq!(cut.as_bytes().len(), MAX_TEXT - 1);
    assert!(cut.is_valid());
    assert_eq!(text(b"short").as_bytes(), b"short");
}

/// The topmost calls at a stack overflow end without an event; the next call that ends has the number of remaining ones.
#[test]
fn calls_that_ended_silently_are_closed_before_what_comes_later() {
    let mut stream = stream(Dialect::F1, 1);
    let mut at = 0;
    let mut event = |stream: &mut Stream, kind, method| {
        at += 1;
        stream.event(1, Some(b"thread"), &Event { kind, time: at, method, line: 0, exception: 0 });
    };
    for method in [0, 1, 2, 1, 2, 1, 1] {
        event(&mut stream, EventKind::Entry, method);
    }
    // Two of four calls of method 1 remain; calls of an unknown method, and too large numbers, change nothing.
    for (method, standing) in [(1, 9), (4, 1), (1, 0), (1, 2)] {
        stream.settle(1, Some(b"thread"), 8, method, standing);
    }
    let open = |stream: &Stream| stream.current.as_ref().map(|(_, thread)| thread.stack.clone());
    assert_eq!(open(&stream), Some(vec![0, 1, 2, 1]));
    for method in [1, 2, 1] {
        event(&mut stream, EventKind::Bubble, method);
    }
    event(&mut stream, EventKind::Entry, 3);
    assert_eq!(open(&stream), Some(vec![0, 3]), "the next call is the caller's");
    let bytes = stream.buffers().concat();
    let mut bubbles = Vec::new();
    Decoder::new(Direction::data_from_agent(Some(Dialect::F1)))
        .feed(&bytes, |_, message| {
            if let Message::Bubble { method, .. } = message {
                bubbles.push(method);
            }
            None
        })
        .unwrap();
    assert_eq!(bubbles, [1, 1, 2, 1, 2, 1], "each call has its end");
}

/// Versions 1 to 4: missing events are reported once, and a thread that reuses an id inherits no calls. F1 reports them by
/// drops.
#[test]
fn breaks_are_where_events_are_missing() {
    for dialect in Dialect::ALL {
        let mut stream = stream(dialect, 1);
        let event = |kind, time| Event { kind, time, method: 0, line: 0, exception: 0 };
        stream.event(1, Some(b"first"), &event(EventKind::Entry, 1));
        stream.drop_events(1, Some(b"first"), 2, 7, DropReason::FULL);
        stream.drop_events(1, Some(b"first"), 3, 7, DropReason::FULL);
        stream.end_thread(1, 4);
        stream.event(2, Some(b"second"), &event(EventKind::Entry, 5));
        stream.event(2, Some(b"second"), &event(EventKind::Exit, 6));
        stream.end_thread(2, 7);
        stream.event(3, Some(b"third"), &event(EventKind::Entry, 8));
        // The thread has lost nothing, and its call is open.
        stream.end_thread(3, 9);
        let expected: &[u32] = if dialect == Dialect::F1 { &[] } else { &[1, 4] };
        assert_eq!(stream.take_breaks(), expected, "{dialect}");
        assert_eq!(stream.take_breaks(), [0; 0], "{dialect}");
    }
}

/// With many virtual threads, those without an open call are forgotten, and the others are kept; the cost of the search per
/// thread does not depend on the number of threads.
#[test]
fn many_virtual_threads_are_remembered_while_they_call() {
    let mut stream = stream(Dialect::F1, 1);
    let event = |kind| Event { kind, time: 1, method: 0, line: 0, exception: 0 };
    let most = MAX_THREADS as u64;
    for tid in 0..most {
        stream.event(tid, None, &event(EventKind::Entry));
        if tid % 2 == 0 {
            stream.event(tid, None, &event(EventKind::Exit));
        }
    }
    for tid in most..most + 2 {
        stream.event(tid, None, &event(EventKind::Entry));
    }
    // All threads without open calls are forgotten; the next search is due when the number of threads has doubled.
    assert_eq!((stream.threads.len(), stream.many), (MAX_THREADS / 2 + 1, MAX_THREADS));
    for tid in 2 * most..4 * most {
        stream.event(tid, None, &event(EventKind::Entry));
    }
    assert!(stream.many >= 4 * MAX_THREADS && stream.threads.len() > 2 * MAX_THREADS, "{}", stream.many);
    // Each thread keeps its state: the end of a call is matched with its own start.
    for tid in (1..most).step_by(2).chain(2 * most..4 * most) {
        stream.event(tid, None, &event(EventKind::Exit));
        assert_eq!(
            stream.current.as_ref().map(|(_, thread)| (thread.stack.len(), thread.sequence > 0)),
            Some((0, true))
        );
    }
}
