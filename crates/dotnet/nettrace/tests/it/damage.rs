//! Recordings that are truncated, flipped, shuffled and corrupted: no panic, no hang, all events before the damage, and a
//! report of the loss.
//!
//! `every_file_a_thousand_times` takes minutes and is run by hand, optimized; docs/reliability.md has the command.

use runtap_nettrace::{Error, PartialReason, Reader, Repair, Scan, StreamItem};
use runtap_wire::Writer;

use crate::bytes::{blobs, definition, object, objects, point, record, stacks, start};
use crate::common;
use crate::seen::{Reading, Seen};

/// The bytes between two truncations; prime, so that all positions in all structures occur.
const STEP: usize = 997;

/// Pseudo-random numbers that are equal in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 20).unwrap() % end
    }
}

/// Returns the offsets after each event of a stream.
fn ends(stream: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new();
    reader.feed(stream);
    reader.finish();
    let mut ends = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let StreamItem::Event(_) = item {
            ends.push(usize::try_from(reader.offset()).unwrap());
        }
    }
    ends
}

/// Counts the remaining events in a reader of a stream without damage.
fn drain(reader: &mut Reader) -> Result<usize, Error> {
    let mut events = 0;
    while let Some(item) = reader.next()? {
        events += usize::from(matches!(item, StreamItem::Event(_)));
    }
    Ok(events)
}

/// Reads any bytes to their end and counts events and errors. More steps than bytes would mean an endless loop.
fn read_all(reader: &mut Reader, bytes: &[u8]) -> (usize, usize) {
    let (mut events, mut steps, mut errors) = (0, 0, 0);
    for part in [bytes, &[]] {
        if part.is_empty() {
            reader.finish();
        }
        let mut items = reader.items(part);
        while items
            .for_each(|item| {
                steps += 1;
                events += usize::from(matches!(item, StreamItem::Event(_)));
            })
            .is_err()
        {
            errors += 1;
            assert!(steps + errors <= bytes.len() + 2, "{steps} items and {errors} errors");
        }
    }
    (events, errors)
}

/// A stream that is truncated at every 997th byte yields the events before the truncation, and reports its position.
fn check_cuts(stream: &[u8], name: &str) {
    let ends = ends(stream);
    let mut reader = Reader::new();
    let mut events = 0;
    for (n, chunk) in stream.chunks(STEP).enumerate() {
        let cut = n * STEP;
        let mut here = reader.clone();
        here.finish();
        let found = events + drain(&mut here).unwrap();
        assert_eq!(found, ends.partition_point(|end| *end <= cut), "{name} cut at {cut}");
        let partial = here.partial().unwrap_or_else(|| panic!("{name} cut at {cut} is not whole"));
        match partial.reason {
            PartialReason::NoEndMarker => assert_eq!(partial.offset, cut as u64),
            PartialReason::Cut { unused } => assert_eq!(partial.offset + unused, cut as u64),
            ref reason => panic!("{name} cut at {cut}: {reason:?}"),
        }
        reader.feed(chunk);
        events += drain(&mut reader).unwrap();
    }
}

#[test]
fn small_recordings_cut_at_every_997th_byte() {
    cut_all(|size| size < 1_000_000);
}

#[test]
fn large_recordings_cut_at_every_997th_byte() {
    cut_all(|size| (1_000_000..5_000_000).contains(&size));
}

#[test]
fn the_largest_recordings_cut_at_every_997th_byte() {
    cut_all(|size| size >= 5_000_000);
}

fn cut_all(takes: impl Fn(usize) -> bool) {
    for recording in common::recordings() {
        if takes(recording.bytes.len()) {
            check_cuts(&recording.bytes, &recording.path.display().to_string());
        }
    }
}

/// Flips bits, one at a time, each in an intact stream.
fn check_flips(stream: &[u8], flips: usize, name: &str) {
    let mut random = Random(7);
    let whole = ends(stream);
    let mut damaged = stream.to_vec();
    for _ in 0..flips {
        let at = random.below(stream.len() * 8);
        damaged[at / 8] ^= 1 << (at % 8);
        let mut reader = Reader::new();
        let (events, errors) = read_all(&mut reader, &damaged);
        // Blocks that end before the damage are unaffected: all of their events are returned.
        let before = whole.partition_point(|end| *end < (at / 8).saturating_sub(1 << 20));
        assert!(
            events >= before,
            "{name} with bit {at} flipped: {events} events, {before} are before the damage"
        );
        assert_eq!(
            errors > 0 || !reader.is_complete(),
            reader.partial().is_some(),
            "{name} with bit {at} flipped"
        );
        damaged[at / 8] ^= 1 << (at % 8);
    }
}

#[test]
fn recordings_with_flipped_bits() {
    for recording in common::recordings() {
        let flips = (4_000_000 / recording.bytes.len()).min(1000);
        check_flips(&recording.bytes, flips, &recording.path.display().to_string());
    }
}

#[test]
#[ignore = "takes minutes, and wants to be optimised"]
fn every_file_a_thousand_times() {
    for recording in common::recordings() {
        let name = recording.path.display().to_string();
        println!("{name}");
        check_cuts(&recording.bytes, &name);
        check_flips(&recording.bytes, 1000, &name);
    }
}

/// Blocks in any order: stacks and definitions after the events that use them, sequence points anywhere. Loses the events
/// before their definitions.
#[test]
fn blocks_may_be_in_any_order() {
    for recording in common::recordings() {
        if recording.version() != 4
            || recording.expected["end_marker"] != true
            || recording.bytes.len() > 1_000_000
        {
            continue;
        }
        let name = recording.path.display();
        let mut blocks = objects(&recording.bytes);
        let in_order = Reading::of(&recording.bytes, 1 << 20).events().len();
        let mut random = Random(9);
        for _ in 0..5 {
            for n in (1..blocks.len()).rev() {
                blocks.swap(n, random.below(n + 1));
            }
            let mut stream = recording.bytes[..start(8).len()].to_vec();
            for (name, payload) in &blocks {
                object(&mut stream, name, payload);
            }
            stream.push(1);
            let reading = Reading::of(&stream, 1 << 20);
            assert!(reading.events().iter().all(|event| event.defined), "{name}");
            assert!(reading.events().len() <= in_order && reading.complete, "{name}");
            let undefined = reading.counts.events_without_metadata;
            assert_eq!(undefined, reading.errors().len() as u64, "{name}: each ends its block");
            assert!(undefined > 0 || blocks.len() < 20, "{name}");
        }
    }
}

/// Extreme lengths and counts, in place of every four-byte number of a recording that could be one.
#[test]
fn lengths_at_their_extremes() {
    let smallest = common::recordings().iter().filter(|recording| recording.bytes.len() < 4_000);
    for recording in smallest {
        let bytes = &recording.bytes;
        for value in [0_u32, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            for at in 0..bytes.len() - 4 {
                let mut damaged = bytes.clone();
                damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
                read_all(&mut Reader::new(), &damaged);
                let mut repair = Repair::new();
                repair.feed(&damaged);
                let (output, _) = repair.finish();
                assert!(output.len() <= damaged.len() + 64);
                let _ = Scan::of(&damaged, 100);
            }
        }
    }
}

/// A definition with the id 0 or its own id, undefined stacks, events without a definition: each loses only itself.
#[test]
fn undefined_references_lose_only_themselves() {
    let mut stream = start(8);
    let mut all = definition(record(0, "P", 1, "Zero").as_bytes());
    // A definition in the form of an event of another one, with an id other than 0 in its header.
    let own = record(7, "P", 2, "Own").into_bytes();
    let mut w = Writer::new();
    w.u8(0x81).varu32(7).varu64(1).varu32(u32::try_from(own.len()).unwrap()).bytes(&own);
    all.extend(w.into_bytes());
    object(&mut stream, "MetadataBlock", &blobs(true, &all));
    object(&mut stream, "StackBlock", &stacks(u32::MAX, &[&[1; 8], &[2; 8]]));
    let events = [0x8b, 7, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0x09, 8, 9, 1, 0x01, 0, 1];
    object(&mut stream, "EventBlock", &blobs(true, &events));
    object(&mut stream, "SPBlock", &point(0, &[(u64::MAX, u32::MAX), (0, 0)]));
    object(&mut stream, "SPBlock", &point(u64::MAX, &[]));
    stream.push(1);
    let reading = Reading::of(&stream, 100);
    assert_eq!(reading.errors().len(), 2);
    let seen: Vec<_> =
        reading.events().iter().map(|e| (e.metadata_id, e.defined, e.stack.len(), e.payload.len())).collect();
    assert_eq!(seen, [(7, true, 1, 0)]);
    assert_eq!(reading.counts.events_without_metadata, 2);
    assert!(reading.items.contains(&Seen::End));
}

/// If no definition was lost, an event with an undefined id is damage, and so is the rest of its block. If one was lost,
/// only the events of that id are missing.
#[test]
fn events_without_a_definition_are_not_returned() {
    // Ids 1, 2, 1, with a payload of one byte each, 1 tick apart.
    let events = blobs(true, &[0xc1, 1, 1, 1, b'a', 1, 2, 1, b'b', 1, 1, 1, b'c', 0, 1, b'd']);
    let stream = |second: &[u8]| {
        let mut stream = start(8);
        let mut all = definition(record(1, "P", 1, "One").as_bytes());
        all.extend(second);
        object(&mut stream, "MetadataBlock", &blobs(true, &all));
        object(&mut stream, "EventBlock", &events);
        object(&mut stream, "EventBlock", &events);
        object(&mut stream, "SPBlock", &point(9, &[(0, 8)]));
        stream.push(1);
        stream
    };
    let damaged = definition(&record(2, "P", 1, "Two").as_bytes()[..9]);
    for (second, expected, errors) in [(Vec::new(), "aa", 2), (damaged, "acdacd", 2)] {
        let stream = stream(&second);
        let mut repair = Repair::new();
        repair.feed(&stream);
        let (repaired, done) = repair.finish();
        assert!(done.partial.is_some());
        for (stream, errors) in [(&stream, errors), (&repaired, 0)] {
            for reading in [Reading::of(stream, 7), Reading::in_place(stream, stream.len())] {
                let payloads: Vec<_> =
                    reading.events().iter().flat_map(|event| event.payload.clone()).collect();
                assert_eq!(String::from_utf8(payloads).unwrap(), expected);
                assert_eq!((reading.errors().len(), reading.partial.is_some()), (errors, errors > 0));
                assert_eq!(reading.counts.events_without_metadata, errors as u64);
                let times: Vec<_> =
                    reading.events().iter().map(|event| (event.timestamp, event.sequence)).collect();
                assert!(!expected.contains('d') || times[..3] == [(1, 1), (3, 3), (4, 4)], "{times:?}");
            }
        }
    }
}
