//! Properties for any bytes: chunks do not matter, a prefix yields a prefix, and damage ends in an error and nothing
//! worse.

use proptest::prelude::*;
use runtap_nettrace::{EventToWrite, Limits, Metadata, PartialReason, Reader, TraceHeader, Writer};

use crate::bytes::{blobs, definition, object, point, record, stacks, start, start_with_definition};
use crate::seen::{Reading, Seen};
use crate::{common, golden, netperf, v6};

/// A small valid stream with everything that a runtime writes.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let event =
        (0..3u32, 0..3u64, prop::collection::vec(0..4u64, 0..3), prop::collection::vec(any::<u8>(), 0..9));
    prop::collection::vec((event, 0..12u32), 0..20).prop_map(|events| {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1000));
        let mut ids = vec![writer.define_event(&Metadata::new("P", 1, "first")).unwrap()];
        for (now, ((id, thread, stack, payload), other)) in (1..).zip(events) {
            match other {
                0 => ids.push(writer.define_event(&Metadata::new("P", now, "later")).unwrap()),
                1 => writer.flush(),
                2 => writer.sequence_point(now.into()),
                3 => writer.drop_events(thread, 3),
                _ => {}
            }
            let event = EventToWrite {
                metadata_id: ids[id as usize % ids.len()],
                thread_id: thread,
                capture_thread_id: thread,
                stack: &stack,
                timestamp: now.into(),
                payload: &payload,
                ..EventToWrite::default()
            };
            writer.event(&event).unwrap();
        }
        writer.finish()
    })
}

/// A stream of complete objects with any payload, some of which are valid.
fn chaos() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(prop_oneof![any::<u8>(), 0..4u8, Just(0xff)], 0..60);
    let names = ["EventBlock", "MetadataBlock", "StackBlock", "SPBlock", "Unknown"];
    let payload = prop_oneof![
        2 => any_bytes.clone(),
        2 => (any::<bool>(), any_bytes.clone()).prop_map(|(compressed, bytes)| blobs(compressed, &bytes)),
        1 => (0..5u32, any_bytes.clone()).prop_map(|(id, bytes)| {
            let mut record = record(id, "P", 1, "");
            record.bytes(&bytes);
            blobs(true, &definition(record.as_bytes()))
        }),
        1 => (any::<u32>(), any_bytes.clone()).prop_map(|(first, stack)| stacks(first, &[&stack, &stack])),
        1 => (0..9u64, any::<u32>()).prop_map(|(thread, sequence)| point(1, &[(thread, sequence), (0, 1)])),
    ];
    (prop::collection::vec((prop::sample::select(names.to_vec()), payload), 0..8), any_bytes).prop_map(
        |(objects, rest)| {
            let mut stream = start(8);
            for (name, payload) in objects {
                object(&mut stream, name, &payload);
            }
            stream.extend(rest);
            stream
        },
    )
}

/// A stream of version 6 of blocks with any payload.
fn chaos_v6() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(prop_oneof![any::<u8>(), 0..4u8, Just(0xff)], 0..60);
    let payload = prop_oneof![
        3 => any_bytes.clone(),
        2 => (any::<bool>(), any_bytes.clone()).prop_map(|(compressed, bytes)| v6::events(compressed, &bytes)),
        1 => (0..5u32).prop_map(|id| [vec![0, 0], v6::definition(id, "N")].concat()),
        1 => (0..5u64, any::<u64>()).prop_map(|(index, id)| v6::thread(index, 1, id)),
        1 => (0..4u32, 0..5u64, any::<u32>()).prop_map(|(flags, thread, sequence)| v6::point(1, flags, &[(thread, sequence)])),
    ];
    let blocks = prop::collection::vec((0..10u8, payload), 0..8);
    (blocks, any_bytes).prop_map(|(blocks, rest)| {
        let mut stream = v6::start();
        for (kind, payload) in blocks {
            v6::block(&mut stream, kind, &payload);
        }
        stream.extend(rest);
        stream
    })
}

/// A valid stream of any version.
pub(crate) fn any_version() -> impl Strategy<Value = Vec<u8>> {
    let hand_made =
        vec![golden::whole(), netperf::bare(1), netperf::bare(2), netperf::version_3(), v6::whole()];
    prop_oneof![stream(), prop::sample::select(hand_made)]
}

/// Any stream: valid, damaged or random.
pub(crate) fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![any_version(), chaos(), chaos_v6()]
}

/// Checks the properties of reading any bytes.
fn check_any(bytes: &[u8], chunk: usize) {
    let whole = Reading::of(bytes, bytes.len());
    assert_eq!(Reading::of(bytes, chunk), whole, "chunks of {chunk} bytes");
    for size in [chunk, bytes.len()] {
        assert_eq!(Reading::in_place(bytes, size), whole, "in place, chunks of {size} bytes");
        assert_eq!(Reading::in_place_one_by_one(bytes, size), whole, "one by one, chunks of {size} bytes");
    }
    // Every item needs at least one byte, and every error costs at least one.
    assert!(whole.items.len() <= bytes.len() + 1, "{} items", whole.items.len());
    let damaged =
        matches!(&whole.partial, Some(partial) if matches!(partial.reason, PartialReason::Damaged(_)));
    assert_eq!(damaged, !whole.errors().is_empty());
    assert_eq!(whole.partial.is_none(), whole.complete && !damaged);
    if let Some(partial) = &whole.partial {
        assert!(partial.offset <= bytes.len() as u64, "{partial:?}");
    }
}

/// A prefix of a valid stream yields a prefix of its items, and is reported as incomplete.
fn check_prefix(bytes: &[u8], whole: &Reading, n: usize, chunk: usize) {
    let prefix = Reading::of(&bytes[..n], chunk);
    assert_eq!(prefix.items, whole.items[..prefix.items.len()], "first {n} bytes");
    let partial = prefix.partial.unwrap_or_else(|| panic!("the first {n} bytes are not whole"));
    match partial.reason {
        PartialReason::NoEndMarker => assert_eq!(partial.offset, n as u64),
        PartialReason::Cut { unused } => assert_eq!(partial.offset + unused, n as u64),
        reason => panic!("{reason:?}"),
    }
    // A truncation costs at most the data after its offset.
    let mut again = Reader::new();
    let start = usize::try_from(partial.offset).unwrap();
    let kept = Reading::with(&mut again, &bytes[..start], bytes.len());
    assert_eq!(kept.items, prefix.items);
}

proptest! {
    #[test]
    fn chunks_do_not_matter(stream in any_stream(), chunk in 1..80usize) {
        check_any(&stream, chunk);
    }

    #[test]
    fn a_prefix_gives_a_prefix(stream in stream(), chunk in 1..80usize) {
        let whole = Reading::of(&stream, stream.len());
        prop_assert!(whole.complete);
        for n in 0..stream.len() {
            check_prefix(&stream, &whole, n, chunk);
        }
    }

    #[test]
    fn flipped_bits_are_harmless(
        stream in any_version(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..4),
        chunk in 1..80usize,
    ) {
        let mut damaged = stream;
        for (at, bit) in flips {
            let at = at.index(damaged.len());
            damaged[at] ^= 1 << bit;
        }
        check_any(&damaged, chunk);
    }

    #[test]
    fn overwritten_fields_are_harmless(
        stream in any_version(),
        at: prop::sample::Index,
        field in prop::sample::select(vec![u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x00ff_ffff, 1 << 20]),
        chunk in 1..80usize,
    ) {
        let mut damaged = stream;
        let at = at.index(damaged.len() - 3);
        damaged[at..at + 4].copy_from_slice(&field.to_le_bytes());
        check_any(&damaged, chunk);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes: Vec<u8>, chunk in 1..80usize) {
        check_any(&bytes, chunk);
        let mut behind_magic = start(8)[..32].to_vec();
        behind_magic.extend(&bytes);
        check_any(&behind_magic, chunk);
        check_any(&[&v6::start()[..20], &bytes].concat(), chunk);
        check_any(&[&netperf::bare(2)[..114], &bytes].concat(), chunk);
        check_any(&[&netperf::version_3()[..97], &bytes].concat(), chunk);
    }
}

#[test]
fn recordings_have_the_properties() {
    for recording in common::recordings() {
        let (bytes, name) = (&recording.bytes, recording.path.display());
        if bytes.len() > 130_000 {
            continue;
        }
        println!("{name}");
        let whole = Reading::of(bytes, bytes.len());
        for chunk in [1, 1000] {
            assert_eq!(Reading::of(bytes, chunk), whole, "{name} in chunks of {chunk}");
        }
        check_any(bytes, 777);
        let step = bytes.len() / 40 + 1;
        for n in (0..bytes.len()).step_by(step) {
            check_prefix(bytes, &whole, n, 4096);
            let mut damaged = bytes.clone();
            damaged[n] ^= 1 << (n % 8);
            check_any(&damaged, 4096);
        }
    }
}

/// Real streams stay far below the limits that protect memory from damaged ones.
#[test]
fn recordings_stay_within_a_sixteenth_of_the_limits() {
    let mut limits = Limits::default();
    limits.max_block /= 16;
    limits.max_metadata /= 16;
    limits.max_metadata_bytes /= 16;
    limits.max_stack_bytes /= 16;
    limits.max_threads /= 16;
    limits.max_label_bytes /= 16;
    limits.max_thread_bytes /= 16;
    for recording in common::recordings() {
        let mut reader = Reader::with_limits(limits);
        common::read(&mut reader, &recording.bytes, 1 << 16, |item| {
            item.unwrap();
        });
        assert_eq!(reader.is_complete(), recording.expected["end_marker"] == true);
    }
}

/// An error in a block is reported once; reading continues after it.
#[test]
fn reading_continues_after_a_damaged_block() {
    let mut stream = start_with_definition();
    object(&mut stream, "EventBlock", &blobs(true, &[1, 1, 1, 0x80]));
    object(&mut stream, "SPBlock", &point(9, &[]));
    stream.push(1);
    let items = Reading::of(&stream, 5).items;
    let [Seen::Header(_), Seen::Metadata(_), Seen::Event(_), Seen::Error(_), Seen::Point(9, _), Seen::End] =
        &items[..]
    else {
        panic!("{items:?}");
    };
}
