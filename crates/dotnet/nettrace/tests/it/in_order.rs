//! Events in order of time: all of them, in order, each as the reader returns it, and without waiting longer than the
//! stream requires.

use std::collections::BTreeSet;

use proptest::prelude::*;
use runtap_nettrace::{EventToWrite, InOrder, Limits, Metadata, StreamItem, TraceHeader, Writer};

use crate::seen::{Reading, Seen, SeenEvent, seen};
use crate::{bytes, common, golden, laws, netperf, v6};

fn in_order(events: &mut InOrder, stream: &[u8], chunk: usize) -> Vec<Seen> {
    let mut items = Vec::new();
    for part in stream.chunks(chunk.max(1)).chain([&[][..]]) {
        if part.is_empty() {
            events.finish();
        } else {
            events.feed(part);
        }
        loop {
            match events.next() {
                Ok(Some(item)) => items.push(seen(item)),
                Ok(None) => break,
                Err(error) => items.push(Seen::Error(error)),
            }
        }
    }
    items
}

fn only_events(items: &[Seen]) -> Vec<&SeenEvent> {
    items.iter().filter_map(|item| if let Seen::Event(event) = item { Some(event) } else { None }).collect()
}

/// Returns the events of a whole reading, sorted between sequence points; without the descriptions of threads, which may be
/// removed meanwhile.
fn sorted(reading: &Reading) -> Vec<&SeenEvent> {
    let mut all = Vec::new();
    for epoch in reading.items.split(|item| matches!(item, Seen::Point(..))) {
        let mut events = only_events(epoch);
        events.sort_by_key(|event| event.timestamp);
        all.extend(events);
    }
    all
}

/// Checks a valid stream.
fn check(stream: &[u8], chunk: usize, what: &str) {
    let reading = Reading::of(stream, stream.len());
    let mut events = InOrder::new();
    let items = in_order(&mut events, stream, chunk);
    assert_eq!(events.out_of_order(), 0, "{what}");
    assert!(only_events(&items) == sorted(&reading), "{what}");
    assert_eq!((events.lost(), events.counts()), (reading.lost, reading.counts.clone()), "{what}");
    assert_eq!(
        (events.is_complete(), events.partial()),
        (reading.complete, reading.partial.as_ref()),
        "{what}"
    );
    assert_eq!(items.len(), reading.items.len(), "{what}");
    for (n, item) in items.iter().enumerate() {
        match item {
            Seen::Point(time, _) => {
                let after = only_events(&items[n..]);
                assert!(after.iter().all(|event| event.timestamp >= *time || *time == 0), "{what}");
            }
            Seen::Metadata(metadata) => {
                let before = only_events(&items[..n]);
                assert!(before.iter().all(|event| event.metadata_id != metadata.id), "{what}");
            }
            _ => {}
        }
    }
}

#[test]
fn recordings_in_order() {
    for recording in common::recordings() {
        // One-collect writes a last sequence point of all ones.
        if recording.version() != 6 && recording.bytes.len() < 6_000_000 {
            check(&recording.bytes, 1 << 16, &recording.path.display().to_string());
        }
    }
}

/// Runs of three threads that overlap: the first event of each run is no older than that of the run before.
fn runs() -> impl Strategy<Value = Vec<u8>> {
    let run = (0..3u64, 0..40u64, prop::collection::vec(0..30u64, 0..8), 0..10u8);
    prop::collection::vec(run, 1..12).prop_map(|runs| {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1000));
        let metadata_id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
        let (mut start, mut latest, mut n) = (0, 0, 0_u32);
        for (thread, step, steps, other) in runs {
            start += step;
            let mut time = start;
            writer.flush();
            for step in [0].into_iter().chain(steps) {
                time += step;
                latest = latest.max(time);
                n += 1;
                let event = EventToWrite {
                    metadata_id,
                    thread_id: thread,
                    capture_thread_id: thread,
                    timestamp: time,
                    stack: &[u64::from(n)],
                    payload: &n.to_le_bytes(),
                    ..EventToWrite::default()
                };
                writer.event(&event).unwrap();
            }
            if other == 0 {
                writer.sequence_point(latest);
                start = latest;
            }
        }
        writer.finish()
    })
}

/// A stream of version 6 in which everything is defined before its use, and anything may be redefined or removed while
/// events are held back. Times are arbitrary.
fn changing() -> impl Strategy<Value = Vec<u8>> {
    let event = (0..3u32, 0..4u64, 0..4u32, 0..3u32, 0..40u64, any::<bool>());
    let step = (0..9u8, 0..4u32, any::<u8>(), prop::collection::vec(event, 1..5));
    prop::collection::vec(step, 1..30).prop_map(|steps| {
        let mut stream = v6::start();
        let mut defined: [BTreeSet<u32>; 4] = Default::default();
        for (kind, id, value, events) in steps {
            // The ids 0 of stacks and labels mean none.
            let id = if matches!(kind, 3 | 4) { id.max(1) } else { id };
            let [metadata, threads, stacks, labels] = &mut defined;
            match kind {
                0 => {
                    metadata.insert(id);
                    let rows = [vec![0, 0], v6::definition(id, &format!("N{value}"))].concat();
                    v6::block(&mut stream, 3, &rows);
                }
                1 => {
                    threads.insert(id);
                    v6::block(&mut stream, 6, &v6::thread(id.into(), 1, value.into()));
                }
                2 => {
                    threads.remove(&id);
                    let removed = [u8::try_from(id).unwrap(), 0];
                    v6::block(&mut stream, 7, &removed);
                }
                3 => {
                    stacks.insert(id);
                    v6::block(&mut stream, 5, &bytes::stacks(id, &[&[value, 0, 0, 0, 0, 0, 0, 0]]));
                }
                4 => {
                    labels.insert(id);
                    let list = [&id.to_le_bytes()[..], &[1, 0, 0, 0, 0x87, value]].concat();
                    v6::block(&mut stream, 8, &list);
                }
                5 if value < 100 => {
                    stacks.clear();
                    labels.clear();
                    let flags = u32::from(value % 4);
                    if flags & 1 != 0 {
                        threads.clear();
                    }
                    if flags & 2 != 0 {
                        metadata.clear();
                    }
                    v6::block(&mut stream, 4, &v6::point(value.into(), flags, &[]));
                }
                _ => v6::block(&mut stream, 2, &v6::events(true, &rows(&events, &defined))),
            }
        }
        v6::block(&mut stream, 0, &[]);
        stream
    })
}

/// Returns the events whose references are defined.
fn rows(events: &[(u32, u64, u32, u32, u64, bool)], defined: &[BTreeSet<u32>; 4]) -> Vec<u8> {
    let [metadata, threads, stacks, labels] = defined;
    let (mut w, mut before) = (runtap_wire::Writer::new(), 0);
    for (id, thread, stack, label, time, sorted) in events {
        let has = |set: &BTreeSet<u32>, id: u32| id == 0 || set.contains(&id);
        let known = metadata.contains(id) && threads.contains(&u32::try_from(*thread).unwrap());
        if known && has(stacks, *stack) && has(labels, *label) {
            w.u8(0x9f | u8::from(*sorted) << 6)
                .varu32(*id)
                .varu32(0)
                .varu64(*thread)
                .varu32(0)
                .varu64(*thread);
            w.varu32(*stack).varu64(time.wrapping_sub(before)).varu32(*label).varu32(1).u8(0x55);
            before = *time;
        }
    }
    w.into_bytes()
}

/// Sorts events by their contents, independently of their positions.
fn as_a_set(events: Vec<&SeenEvent>) -> Vec<String> {
    let mut texts: Vec<_> = events.into_iter().map(|event| format!("{event:?}")).collect();
    texts.sort();
    texts
}

proptest! {
    /// Events keep the references of their position, although they are returned later.
    #[test]
    fn nothing_changes_while_events_wait(stream in changing(), chunk in 1..300usize, most: bool) {
        let whole = Reading::of(&stream, stream.len());
        let mut limits = Limits::default();
        if most {
            limits.max_held_back = 500;
        }
        let mut events = InOrder::with_limits(limits);
        let items = in_order(&mut events, &stream, chunk);
        prop_assert_eq!(as_a_set(only_events(&items)), as_a_set(whole.events()));
        prop_assert_eq!(events.counts(), whole.counts);
        prop_assert_eq!(events.lost(), whole.lost);
        prop_assert!(events.is_complete());
        // Items other than events keep their order.
        let others = |items: &[Seen]| -> Vec<Seen> {
            items.iter().filter(|item| !matches!(item, Seen::Event(_))).cloned().collect()
        };
        prop_assert_eq!(others(&items), others(&whole.items));
    }

    #[test]
    fn runs_are_merged(stream in runs(), chunk in 1..300usize) {
        check(&stream, chunk, "runs");
    }

    /// For any stream: no panic, no event lost or invented, and the chunks do not matter.
    #[test]
    fn any_stream_gives_all_its_events(
        stream in laws::any_stream(),
        at: prop::sample::Index,
        bit in 0..8u8,
        chunk in 1..80usize,
    ) {
        let at = at.index(stream.len());
        let mut damaged = stream.clone();
        damaged[at] ^= 1 << bit;
        for bytes in [&stream[..], &stream[..at], &damaged] {
            let whole = Reading::of(bytes, bytes.len());
            let mut numbers: Vec<_> = whole.events().iter().map(|e| (e.timestamp, e.sequence, e.payload.clone())).collect();
            let mut events = InOrder::new();
            let items = in_order(&mut events, bytes, chunk);
            let mut found: Vec<_> =
                only_events(&items).iter().map(|e| (e.timestamp, e.sequence, e.payload.clone())).collect();
            numbers.sort();
            found.sort();
            prop_assert_eq!(found, numbers);
            prop_assert_eq!(events.lost(), whole.lost);
            prop_assert_eq!(events.partial().cloned(), whole.partial);
        }
    }
}

#[test]
fn hand_made_streams_in_order() {
    for (stream, n) in [(v6::whole(), 8), (netperf::bare(2), 3), (netperf::version_3(), 2)] {
        let mut events = InOrder::new();
        let items = in_order(&mut events, &stream, 20);
        assert_eq!((only_events(&items).len(), events.out_of_order()), (n, 0));
    }
    // Its third event is older than the second of that run.
    let mut events = InOrder::new();
    let items = in_order(&mut events, &golden::whole(), 20);
    assert_eq!((only_events(&items).len(), events.out_of_order()), (4, 1));
}

/// Events older than the newest run are returned at once, before the stream continues.
#[test]
fn a_live_stream_does_not_wait_for_its_end() {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1000));
    let metadata_id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
    let mut events = InOrder::new();
    let mut given = Vec::new();
    for (thread, time) in [(1, 10), (1, 40), (2, 20), (2, 30), (3, 35), (1, 50)] {
        let event = EventToWrite {
            metadata_id,
            thread_id: thread,
            capture_thread_id: thread,
            timestamp: time,
            ..EventToWrite::default()
        };
        writer.event(&event).unwrap();
        if [40, 30, 35, 50].contains(&time) {
            writer.flush();
            events.feed(&writer.take_output());
            while let Some(item) = events.next().unwrap() {
                if let StreamItem::Event(event) = item {
                    given.push(event.timestamp);
                }
            }
            let expected: &[u64] = match time {
                40 => &[],
                30 => &[10],
                35 => &[10, 20, 30],
                _ => &[10, 20, 30, 35, 40],
            };
            assert_eq!(given, expected, "after {time}");
        }
    }
}

/// `release_all` returns all waiting events, and the order is kept from there on.
#[test]
fn release_all_returns_waiting_events() {
    let mut stream = bytes::start_with_definition();
    let mut events = InOrder::new();
    let mut given = Vec::new();
    let mut fed = 0;
    for times in [[10, 40], [20, 50]] {
        // Two runs of one event each: only an id, a time, and the flag of a run.
        let [first, second] = times;
        let block = bytes::blobs(true, &[0x41, 1, first, 0x40, second - first]);
        bytes::object(&mut stream, "EventBlock", &block);
        events.feed(&stream[fed..]);
        fed = stream.len();
        for in_a_hurry in [false, true] {
            if in_a_hurry {
                events.release_all();
            }
            while let Some(item) = events.next().unwrap() {
                if let StreamItem::Event(event) = item {
                    given.push((event.timestamp, in_a_hurry));
                }
            }
        }
    }
    assert_eq!(given, [(10, false), (40, true), (20, false), (50, true)]);
    assert_eq!(events.out_of_order(), 1);
}

/// A stream without runs is returned in its own order when too much of it would wait.
#[test]
fn held_back_events_are_limited() {
    let mut stream = bytes::start_with_definition();
    for n in 0..100_u8 {
        let block = bytes::blobs(true, &[0x81, 1, n, 3, 1, 2, 3, 0x80, n, 3, 1, 2, 3]);
        bytes::object(&mut stream, "EventBlock", &block);
    }
    stream.push(1);
    let mut limits = Limits::default();
    limits.max_held_back = 500;
    let mut events = InOrder::with_limits(limits);
    let mut first = None;
    for (n, part) in stream.chunks(50).enumerate() {
        events.feed(part);
        while let Some(item) = events.next().unwrap() {
            if let StreamItem::Event(_) = item {
                first.get_or_insert(n);
            }
        }
    }
    assert!(first.is_some_and(|n| n < 30), "{first:?}");
}
