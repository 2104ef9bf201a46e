//! A stream with a hole, or without its first bytes: the data before and after the hole is kept unchanged, and nothing is
//! invented.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;

use runtap_nettrace::inspect::{Content, Inspect, Inspected};
use runtap_nettrace::{Repair, Repaired};
use runtap_testkit::{Peer, Recording, require, run};
use serde_json::Value;

use crate::bytes::{blobs, definition, object, point, record, stacks, start};
use crate::seen::{Reading, SeenEvent};
use crate::{common, golden, netperf};

const HOLE: usize = 64 << 10;

fn repair(stream: &[u8]) -> (Vec<u8>, Repaired) {
    let repaired = |chunk: usize| {
        let (mut repair, mut output) = (Repair::new(), Vec::new());
        for part in stream.chunks(chunk) {
            repair.feed(part);
            output.extend(repair.take_output());
        }
        let (rest, repaired) = repair.finish();
        output.extend(rest);
        (output, repaired)
    };
    let whole = repaired(stream.len().max(1));
    assert!(repaired(30_011) == whole, "chunks do not matter");
    whole
}

/// The kind of a hole.
#[derive(Debug, Clone, Copy)]
enum Damage {
    CutOut,
    Zeros,
}

fn damaged(stream: &[u8], hole: &Range<usize>, damage: Damage) -> Vec<u8> {
    let instead = match damage {
        Damage::CutOut => Vec::new(),
        Damage::Zeros => vec![0; hole.len()],
    };
    [&stream[..hole.start], &instead, &stream[hole.end..]].concat()
}

/// Returns the positions of the blocks of events, and the number of events in each.
fn event_blocks(stream: &[u8]) -> Vec<(Range<usize>, u64)> {
    let mut inspect = Inspect::new();
    inspect.feed(stream);
    inspect.finish();
    let place = |n: u64| usize::try_from(n).unwrap();
    let mut blocks = Vec::new();
    while let Some(found) = inspect.next() {
        if let Inspected::Block(block) = found
            && let Content::Events(events) = &block.content
        {
            let end = block.offset + block.header_bytes + block.size;
            blocks.push((place(block.offset)..place(end), events.events));
        }
    }
    blocks
}

/// Returns an event without its stack, for comparison.
fn identity(event: &SeenEvent) -> SeenEvent {
    SeenEvent { stack: Vec::new(), ..event.clone() }
}

/// Checks that every event of `after` is one of `before`, with its stack or without any.
fn check_events(before: &Reading, after: &Reading, what: &str) {
    let mut known: HashMap<(u64, u64, u32, u64), Vec<&SeenEvent>> = HashMap::new();
    let key = |event: &SeenEvent| (event.thread_id, event.capture_thread_id, event.sequence, event.timestamp);
    for event in before.events() {
        known.entry(key(event)).or_default().push(event);
    }
    for event in after.events() {
        let same = known.get_mut(&key(event)).and_then(|events| {
            let is_it = |other: &&SeenEvent| identity(other) == identity(event);
            events.iter().position(is_it).map(|place| events.swap_remove(place))
        });
        let Some(same) = same else { panic!("{what}: no such event: {event:?}") };
        assert!(event.stack.is_empty() || event.stack == same.stack, "{what}: {event:?} {same:?}");
    }
}

/// Returns the recordings of versions whose objects can be found again, with blocks around a hole.
fn large_recordings() -> impl Iterator<Item = &'static Recording> {
    common::recordings().iter().filter(|recording| {
        let size = recording.bytes.len();
        matches!(recording.version(), 3 | 4) && (4 * HOLE..4_000_000).contains(&size)
    })
}

#[test]
fn events_after_a_hole_are_kept() {
    for recording in large_recordings() {
        let stream = &recording.bytes;
        let (before, blocks) = (Reading::of(stream, stream.len()), event_blocks(stream));
        let size = stream.len();
        for (place, length) in
            [(size / 2, HOLE), (size / 3, HOLE + 1), (size / 4 + 1, HOLE - 1), (size / 2 + 7, 4098)]
        {
            let hole = place..place + length;
            // A page of zeros may be in a single payload, where it cannot be distinguished from data.
            let damages =
                if length < HOLE - 1 { &[Damage::CutOut][..] } else { &[Damage::CutOut, Damage::Zeros] };
            for damage in damages.iter().copied() {
                let what = format!("{}: {damage:?} at {hole:?}", recording.path.display());
                let (output, repaired) = repair(&damaged(stream, &hole, damage));
                let after = Reading::of(&output, output.len());
                assert!(after.complete && after.partial.is_none(), "{what}: {:?}", after.partial);
                check_events(&before, &after, &format!("{what}: {repaired:?}"));
                let is_outside = |block: &Range<usize>| block.end <= hole.start || block.start >= hole.end;
                let outside: u64 =
                    blocks.iter().filter(|(block, _)| is_outside(block)).map(|(_, events)| events).sum();
                let kept = after.events().len() as u64;
                assert!(
                    kept + repaired.events_left_out >= outside,
                    "{what}: {kept} kept, {outside} are in blocks outside: {repaired:?}"
                );
                let around = |n: u64| usize::try_from(n).unwrap();
                let is_told = repaired.skipped.iter().any(|skipped| {
                    let range = around(skipped.offset)..around(skipped.offset + skipped.bytes);
                    range.start <= hole.end && range.end >= hole.start
                });
                assert!(is_told, "{what}: {repaired:?}");
                assert_eq!(
                    repaired.bytes_skipped,
                    repaired.skipped.iter().map(|skipped| skipped.bytes).sum::<u64>()
                );
                let (again, second) = repair(&output);
                assert!(again == output && !second.has_changed(), "{what}: {second:?}");
            }
        }
    }
}

/// The first bytes only name the format.
#[test]
fn missing_first_bytes_are_added() {
    for recording in common::recordings().iter().filter(|recording| recording.bytes.len() < 2_000_000) {
        let stream = &recording.bytes;
        let missing = match recording.version() {
            3 => 24,
            4 => 32,
            _ => continue,
        };
        let (whole, _) = repair(stream);
        for cut in [1, 8, 9, missing - 1, missing] {
            let (output, repaired) = repair(&stream[cut..]);
            assert!(output == whole, "{} without {cut} bytes: {repaired:?}", recording.path.display());
            assert!(repaired.start_added && repaired.has_changed(), "{repaired:?}");
            assert_eq!(repaired.bytes_skipped, (missing - cut) as u64);
        }
        let zeros = [&vec![0; missing], &stream[missing..]].concat();
        let (output, repaired) = repair(&zeros);
        assert!(output == whole && repaired.start_added, "{}", recording.path.display());
        // Without the clock the stream is unusable.
        assert!(repair(&stream[missing + 30..]).0.is_empty());
    }
}

/// Stack ids before a hole are invalid after it, because a sequence point in the hole may have reassigned them.
/// Definitions stay valid, and events of missing ones are removed.
#[test]
fn stack_ids_from_before_a_hole_are_undefined() {
    let event = |id: u8, stack: u8, time: u8| {
        blobs_at(u64::from(time), &[0xcf, id, 0, 1, 0, 1, stack, time, 1, b'x'])
    };
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "P", 1, "One").as_bytes())));
    object(&mut stream, "StackBlock", &stacks(1, &[&[1; 8]]));
    object(&mut stream, "EventBlock", &event(1, 1, 1));
    let hole = stream.len();
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(2, "P", 2, "Two").as_bytes())));
    object(&mut stream, "SPBlock", &point(1, &[]));
    object(&mut stream, "StackBlock", &stacks(1, &[&[2; 8]]));
    let end = stream.len();
    object(&mut stream, "EventBlock", &event(1, 1, 2));
    object(&mut stream, "EventBlock", &event(2, 1, 3));
    object(&mut stream, "StackBlock", &stacks(2, &[&[3; 8]]));
    object(&mut stream, "EventBlock", &event(1, 2, 4));
    object(&mut stream, "SPBlock", &point(4, &[(0, 4)]));
    stream.push(1);
    assert_eq!(Reading::of(&stream, 100).events().len(), 4);
    // If the hole starts at once, the end of the last event before it cannot be distinguished from the hole.
    for (from, is_first_kept) in [(hole, false), (hole + 5, true)] {
        let damaged = [&stream[..from], &[9; 70][..], &stream[end - 1..]].concat();
        let (output, repaired) = repair(&damaged);
        let after = Reading::of(&output, 100);
        assert!(after.complete && after.partial.is_none(), "{:?}", after.partial);
        let kept: Vec<_> =
            after.events().iter().map(|event| (event.timestamp, event.stack.clone())).collect();
        let ip = |n: u8| vec![u64::from_le_bytes([n; 8])];
        let all = [(1, ip(1)), (2, vec![]), (4, ip(3))];
        assert_eq!(kept, all[usize::from(!is_first_kept)..], "{repaired:?}");
        assert_eq!((repaired.events_left_out, repaired.events_without_stack), (1, 1));
        let skipped = &repaired.skipped[..];
        // The hole, and the block that only has the event without a definition.
        assert_eq!(skipped.len(), 2, "{skipped:?}");
        assert_eq!(skipped[0].offset + skipped[0].bytes, damaged.len() as u64 - (stream.len() - end) as u64);
    }
}

/// Returns a block whose header states this time for its events.
fn blobs_at(time: u64, events: &[u8]) -> Vec<u8> {
    let mut block = blobs(true, events);
    block[4..12].copy_from_slice(&time.to_le_bytes());
    block[12..20].copy_from_slice(&time.to_le_bytes());
    block
}

/// Zeros are a valid header, of an event like the previous one.
#[test]
fn zeros_are_not_events() {
    let mut events = vec![0xc1, 1, 1, 40];
    events.extend([b'x'; 40]);
    events.extend([0, 1]);
    events.extend([b'y'; 40]);
    let second = events.len() - 42;
    let sound = events.clone();
    events.resize(3000, 0);
    // The data before the hole ends in zeros itself, perhaps in the hole.
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "P", 1, "One").as_bytes())));
    object(&mut stream, "EventBlock", &blobs(true, &events));
    object(&mut stream, "EventBlock", &blobs(true, &sound));
    stream.push(1);
    let (output, repaired) = repair(&stream);
    let after = Reading::of(&output, 100);
    let payloads: Vec<_> = after.events().iter().map(|event| event.payload[0]).collect();
    assert_eq!(payloads, *b"xyxy", "{repaired:?}");
    assert_eq!((repaired.bytes_skipped, repaired.skipped_places), (3000 - sound.len() as u64, 1));

    // The hole starts in the second event.
    let mut events = sound[..second + 10].to_vec();
    events.resize(3000, 0);
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "P", 1, "One").as_bytes())));
    object(&mut stream, "EventBlock", &blobs(true, &events));
    stream.push(1);
    let (output, repaired) = repair(&stream);
    let after = Reading::of(&output, 100);
    assert_eq!(after.events().len(), 1, "{repaired:?}");
    assert_eq!(repaired.bytes_skipped, 3000 - second as u64);
}

/// Small streams without any range of bytes: nothing is invented.
#[test]
fn small_streams_with_any_bytes_missing() {
    for stream in [golden::whole(), netperf::version_3()] {
        let before = Reading::of(&stream, stream.len());
        for from in 0..stream.len() {
            for length in [1, 2, 5, 40] {
                let cut = [&stream[..from], stream.get(from + length..).unwrap_or_default()].concat();
                let (output, repaired) = repair(&cut);
                if output.is_empty() {
                    continue;
                }
                let after = Reading::of(&output, output.len());
                assert!(after.complete && after.partial.is_none(), "{from} {length}: {repaired:?}");
                assert!(after.events().len() <= before.events().len() + 1);
            }
        }
    }
}

/// TraceEvent reads the repaired stream with a hole, and finds as many events as this reader.
#[test]
fn real_traceevent_reads_what_is_repaired_of_holes() {
    let peer = require!(Peer::available("tebench"));
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("stream.nettrace");
    let names = ["net9/threadpool", "net10/cpu-spin", "net8/exceptions", "net9/cpu-netperf", "net8-heap"];
    for recording in large_recordings() {
        if !names.iter().any(|name| recording.path.to_string_lossy().contains(name)) {
            continue;
        }
        let middle = recording.bytes.len() / 2;
        let without_start = recording.bytes[24..].to_vec();
        let holes = [Damage::CutOut, Damage::Zeros]
            .map(|damage| damaged(&recording.bytes, &(middle..middle + HOLE), damage));
        for stream in holes.into_iter().chain([without_start]) {
            let (output, repaired) = repair(&stream);
            fs::write(&trace, &output).unwrap();
            let mut command = peer.command();
            command.arg(&trace).args(["--mode", "parse", "--runs", "1", "--warmup", "0"]);
            let answer = run(command);
            let answer: Value = serde_json::from_str(answer.expect_code(0).text()).unwrap();
            let ours = Reading::of(&output, 1 << 16).events().len() as u64;
            let what = format!("{}: {answer}, {repaired:?}", recording.path.display());
            assert_eq!((&answer["error"], answer["events"].as_u64()), (&Value::Null, Some(ours)), "{what}");
        }
    }
}

/// Appends a round for [`skipped_bytes_are_counted_once`]: a valid block, and one without valid tags after it, so that the
/// end of its last event is unknown. Returns where the valid part of the second block ends.
fn damaged_round(stream: &mut Vec<u8>) -> u64 {
    let event = |kind: u8| [0xcf, 1, 0, 1, 0, 1, 0, 0, 1, kind];
    object(stream, "EventBlock", &blobs_at(0, &event(b'a')));
    object(stream, "EventBlock", &blobs_at(0, &[event(b'b'), event(b'c')].concat()));
    // The end tag of an object.
    let end = stream.len() - 1 - event(b'c').len();
    stream.extend([9; 50]);
    end as u64
}

/// Also if there are more places than are listed.
#[test]
fn skipped_bytes_are_counted_once() {
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "P", 1, "One").as_bytes())));
    let rounds = Repaired::MAX_SKIPPED as u64 + 200;
    let places: Vec<(u64, u64)> =
        (0..rounds).map(|_| (damaged_round(&mut stream), stream.len() as u64)).collect();
    object(&mut stream, "SPBlock", &point(1, &[]));
    stream.push(1);
    let (output, repaired) = repair(&stream);
    assert_eq!(Reading::of(&output, output.len()).events().len() as u64, 2 * rounds);
    assert_eq!(repaired.skipped_places, rounds);
    assert_eq!(repaired.bytes_skipped, places.iter().map(|(from, to)| to - from).sum::<u64>());
    let listed: Vec<_> =
        repaired.skipped.iter().map(|place| (place.offset, place.offset + place.bytes)).collect();
    assert_eq!(listed, places[..Repaired::MAX_SKIPPED]);
}

/// The bytes of the next object are within the size of a block from which bytes are missing.
#[test]
fn objects_within_a_damaged_block_are_not_skipped() {
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "P", 1, "One").as_bytes())));
    let long = [&[0xcf, 1, 0, 1, 0, 1, 0, 0, 0xac, 2][..], &[b'y'; 300]].concat();
    object(
        &mut stream,
        "EventBlock",
        &blobs_at(0, &[&[0xcf, 1, 0, 1, 0, 1, 0, 0, 1, b'x'], &long[..]].concat()),
    );
    let (from, missing) = (stream.len() - 1 - long.len(), 100);
    stream.drain(stream.len() - 1 - missing..stream.len() - 1);
    let next = stream.len();
    object(&mut stream, "EventBlock", &blobs_at(0, &long));
    object(&mut stream, "SPBlock", &point(1, &[]));
    stream.push(1);
    let (output, repaired) = repair(&stream);
    let payloads: Vec<_> =
        Reading::of(&output, output.len()).events().iter().map(|event| event.payload[0]).collect();
    assert_eq!(payloads, *b"xy", "{repaired:?}");
    let [place] = &repaired.skipped[..] else { panic!("{repaired:?}") };
    assert_eq!((place.offset, place.offset + place.bytes), (from as u64, next as u64));
    assert_eq!(repaired.bytes_skipped, (next - from) as u64);
}
