//! `NetPerf`: hand-made streams of versions 1, 2 and 3, and effects of damage. No recording of versions 1 and 2 exists.

use runtap_nettrace::{Field, FieldType, PartialReason, Uuid};
use runtap_wire::Writer;

use crate::bytes::object_in;
use crate::seen::{Reading, Seen};

const PROVIDER: Uuid = Uuid::from_u128(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);
const ACTIVITY: Uuid = Uuid::from_u128(77);

/// First bytes and Trace object of version 3.
fn start_v3() -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes(b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\0\0\0\0\x05\0\0\0Trace\x06");
    clock(&mut w);
    w.u32(4).u32(99).u32(2).u32(1_000_000).u8(6);
    w.into_bytes()
}

fn clock(w: &mut Writer) {
    for part in [2017, 8, 1, 14, 10, 20, 30, 400] {
        w.u16(part);
    }
    w.i64(500).i64(1000);
}

/// Returns an event with its size, which includes `padding` bytes at its end.
fn event(id: u32, timestamp: u64, payload: &[u8], stack: &[u8], padding: usize) -> Vec<u8> {
    let size = 56 + payload.len() + stack.len() + padding;
    let mut w = Writer::new();
    w.u32(u32::try_from(size).unwrap()).u32(id).u32(7).u64(timestamp);
    w.guid(if id == 0 { Uuid::nil() } else { ACTIVITY }).guid(Uuid::nil());
    w.u32(u32::try_from(payload.len()).unwrap()).bytes(payload);
    w.u32(u32::try_from(stack.len()).unwrap()).bytes(stack).bytes(&vec![0xee; padding]);
    w.into_bytes()
}

/// Returns the part of a definition that all versions have.
fn definition(event_id: u32, name: &str) -> Writer {
    let mut w = Writer::new();
    w.u32(event_id).utf16z(name).u64(0xf0).u32(2).u32(4);
    w.u32(1).u32(9).utf16z("n");
    w
}

/// Returns the payload of a definition of version 3.
fn record_v3(id: u32, name: &str) -> Vec<u8> {
    let mut w = Writer::new();
    w.u32(id).utf16z("Demo").bytes(definition(5, name).as_bytes());
    w.into_bytes()
}

/// A stream of version 1 or 2: a definition with text and one without, and three events.
pub(crate) fn bare(version: u8) -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes(b"\x14\0\0\0!FastSerialization.1\x04\x04\x01").bytes(&[version, 0, 0, 0, 0, 0, 0, 0]);
    w.u32(38).bytes(b"Microsoft.DotNet.Runtime.EventPipeFile\x06").u32(0);
    clock(&mut w);
    let mut stream = w.into_bytes();
    let define = |stream: &mut Vec<u8>, event_id, common: &[u8]| {
        let mut w = Writer::new();
        if version == 1 {
            w.guid(PROVIDER);
        } else {
            w.utf16z("Demo");
        }
        w.u32(event_id).u32(1).u32(u32::try_from(common.len()).unwrap()).bytes(common);
        let id = u32::try_from(stream.len()).unwrap();
        stream.extend(event(0, 0, w.as_bytes(), &[], 0));
        id
    };
    let first = define(&mut stream, 5, definition(5, "Tick").as_bytes());
    stream.extend(event(first, 501, b"abcd", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0], 0));
    let second = define(&mut stream, 187, &[]);
    stream.extend(event(second, 502, &[], &[], 0));
    stream.extend(event(first, 503, b"xyz", &[], 0));
    let end = u32::try_from(stream.len()).unwrap();
    let mut w = Writer::new();
    w.u8(6).u32(1).u32(end).u32(end + 1).u32(end + 9);
    stream.extend(w.into_bytes());
    stream
}

#[test]
fn versions_1_and_2() {
    for version in [1, 2] {
        let stream = bare(version);
        let reading = Reading::of(&stream, stream.len());
        assert_eq!(reading.errors(), [""; 0]);
        assert!(reading.complete && reading.partial.is_none());
        let Seen::Header(header) = &reading.items[0] else { panic!("{:?}", reading.items[0]) };
        assert_eq!((header.version, header.pointer_size, header.process_id), (version.into(), 8, 0));
        assert_eq!((header.sync_qpc, header.qpc_frequency), (500, 1000));
        assert_eq!(header.sync_systemtime, [2017, 8, 1, 14, 10, 20, 30, 400]);

        let [tick, plain] = reading.metadata()[..] else { panic!("{:?}", reading.items) };
        let (provider, guid) =
            if version == 1 { (PROVIDER.to_string(), Some(PROVIDER)) } else { ("Demo".to_owned(), None) };
        assert_eq!((&tick.provider, tick.provider_guid), (&provider, guid));
        assert_eq!((tick.event_id, tick.name.as_str(), tick.version, tick.level), (5, "Tick", 2, 4));
        assert_eq!((tick.keywords, &tick.fields[..]), (0xf0, &[Field::new("n", FieldType::I32)][..]));
        assert_eq!((plain.event_id, plain.name.as_str(), plain.version), (187, "", 1));
        assert_eq!(
            u64::from(tick.id),
            24 + 3 + 8 + 4 + 38 + 1 + 36,
            "the offset of the event that defines it"
        );

        let [first, second, third] = reading.events()[..] else { panic!("{:?}", reading.items) };
        assert_eq!((first.metadata_id, second.metadata_id, third.metadata_id), (tick.id, plain.id, tick.id));
        assert_eq!((first.timestamp, second.timestamp, third.timestamp), (501, 502, 503));
        assert_eq!((first.payload.as_slice(), third.payload.as_slice()), (&b"abcd"[..], &b"xyz"[..]));
        assert_eq!((&first.stack[..], &second.stack[..]), (&[1, 2][..], &[][..]));
        assert_eq!((first.activity_id, first.related_activity_id), (Some(ACTIVITY), None));
        assert_eq!((first.thread_id, first.capture_thread_id, first.processor), (7, 7, u32::MAX));
        assert!(first.defined && second.defined && first.sorted && second.sorted);
        for chunk in 1..70 {
            assert_eq!(Reading::of(&stream, chunk), reading, "chunks of {chunk}");
            assert_eq!(Reading::in_place(&stream, chunk), reading, "in place, chunks of {chunk}");
        }
    }
}

#[test]
fn a_truncated_stream_of_version_2_yields_its_complete_events() {
    let stream = bare(2);
    let whole = Reading::of(&stream, stream.len());
    for n in 25..stream.len() {
        let cut = Reading::of(&stream[..n], 50);
        assert_eq!(cut.items, whole.items[..cut.items.len()], "{n}");
        let partial = cut.partial.unwrap();
        match partial.reason {
            PartialReason::NoEndMarker => assert_eq!(partial.offset, n as u64),
            PartialReason::Cut { unused } => assert_eq!(partial.offset + unused, n as u64),
            reason => panic!("{reason:?}"),
        }
    }
    assert_eq!(Reading::of(&stream[..stream.len() - 1], 50).events().len(), 3);
    let mut behind = stream;
    behind.extend(b"more");
    let reading = Reading::of(&behind, 50);
    assert_eq!((reading.complete, reading.counts.trailing_bytes), (true, 4));
}

/// A stream of version 3: definitions between events, and an object of an unknown kind.
pub(crate) fn version_3() -> Vec<u8> {
    let mut stream = start_v3();
    let mut block = event(0, 0, &record_v3(3, "Tick"), &[], 2);
    block.extend(event(3, 501, b"abcde", &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 3));
    block.extend(event(9, 502, b"", &[], 0));
    object_in(&mut stream, 4, "EventBlock", 0, &block);
    object_in(&mut stream, 4, "Strange", 0, &[1, 2, 3]);
    let mut block = event(3, 503, b"", &[], 0);
    block.extend(event(0, 0, &record_v3(3, "Again"), &[], 0));
    object_in(&mut stream, 4, "EventBlock", 0, &block);
    stream.push(1);
    stream
}

#[test]
fn blocks_of_version_3() {
    let stream = version_3();
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(reading.errors().len(), 1, "an event of no definition");
    assert!(reading.complete);
    let Seen::Header(header) = &reading.items[0] else { panic!("{:?}", reading.items[0]) };
    assert_eq!((header.version, header.pointer_size, header.process_id), (3, 4, 99));
    let events: Vec<_> =
        reading.events().iter().map(|e| (e.timestamp, e.defined, e.payload.len(), e.stack.clone())).collect();
    assert_eq!(events, [(501, true, 5, vec![1, 0xffff_ffff]), (503, true, 0, vec![])]);
    let counts = &reading.counts;
    assert_eq!((counts.unknown_objects, counts.unknown_bytes), (1, 3));
    assert_eq!((counts.events_without_metadata, counts.redefined_metadata), (1, 1));
    for chunk in 1..70 {
        assert_eq!(Reading::of(&stream, chunk), reading, "chunks of {chunk}");
        assert_eq!(Reading::in_place(&stream, chunk), reading, "in place, chunks of {chunk}");
    }
    let whole = reading;
    for n in 0..stream.len() {
        let cut = Reading::of(&stream[..n], 50);
        assert_eq!(cut.items, whole.items[..cut.items.len()], "{n}");
        assert!(cut.partial.is_some(), "{n}");
    }
}

/// Returns errors, number of events and offset of the first damage of a block whose second event of three is `damaged`.
fn around(damaged: &[u8]) -> (Vec<String>, usize, Option<u64>) {
    let mut stream = start_v3();
    let mut block = event(0, 0, &record_v3(1, "Tick"), &[], 0);
    block.extend(event(1, 1, b"", &[], 0));
    block.extend(damaged);
    block.extend(event(1, 3, b"", &[], 0));
    object_in(&mut stream, 4, "EventBlock", 0, &block);
    object_in(&mut stream, 4, "EventBlock", 0, &event(1, 4, b"", &[], 0));
    stream.push(1);
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(Reading::of(&stream, 1), reading, "chunks do not matter");
    assert!(reading.complete);
    (reading.errors(), reading.events().len(), reading.partial.map(|partial| partial.offset))
}

#[test]
fn damage_costs_an_event_or_the_rest_of_a_block() {
    let whole = event(1, 2, b"abcd", &[0; 8], 0);
    assert_eq!(around(&whole), (vec![], 4, None));
    // The block begins at 124, its second event at 300.
    let set = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    assert_eq!(
        around(&set(52, 17)),
        (vec!["event payload at offset 356: needs 17 bytes, 16 are left".to_owned()], 3, Some(300)),
        "the event's size leads to the next one"
    );
    assert_eq!(
        around(&set(60, 0x8000_0000)),
        (vec!["stack at offset 364: needs 2147483648 bytes, 8 are left".to_owned()], 3, Some(300))
    );
    assert_eq!(
        around(&set(0, 55)),
        (vec!["event size at offset 300: is less than 56".to_owned()], 2, Some(300)),
        "the start of the next event is unknown"
    );
    assert_eq!(
        around(&set(0, 0x8000_0000)),
        (vec!["event size at offset 300: is negative".to_owned()], 2, Some(300))
    );
    assert_eq!(
        around(&set(0, 1000)),
        (vec!["event at offset 304: needs 1000 bytes, 128 are left".to_owned()], 2, Some(300))
    );
    assert_eq!(
        around(&event(0, 0, &[1, 2, 3], &[], 0)),
        (vec![], 3, None),
        "a definition that cannot be read is counted"
    );
}

#[test]
fn damage_in_version_2_costs_the_event_unless_its_size_is_wrong() {
    let stream = bare(2);
    let whole = Reading::of(&stream, stream.len());
    let second = stream.windows(4).position(|bytes| bytes == b"abcd").unwrap() - 56;
    let with = |at: usize, value: u32| {
        let mut bytes = stream.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let reading = Reading::of(&bytes, bytes.len());
        assert_eq!(Reading::of(&bytes, 7), reading, "chunks do not matter");
        (reading.errors().len(), reading.events().len(), reading.complete)
    };
    assert_eq!(whole.events().len(), 3);
    assert_eq!(with(second + 52, 77), (1, 2, true));
    assert_eq!(with(second, 10), (1, 0, false));
    assert_eq!(with(second, 0x7fff_ffff), (1, 0, false), "an event of 2 GiB is not waited for");
}
