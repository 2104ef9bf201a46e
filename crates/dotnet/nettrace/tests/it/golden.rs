//! Hand-made streams: every object, both kinds of event headers, all parts of a definition, and each kind of damage
//! with its effect.

use runtap_nettrace::{Field, FieldType, Limits, PartialReason, Reader, StreamItem, Uuid};
use runtap_wire::Writer;

use crate::bytes::{
    self, blobs, definition, object, object_for, point, record, stacks, start, start_with_definition,
};
use crate::seen::{Reading, Seen};

const ACTIVITY: Uuid = Uuid::from_u128(0x0403_0201_0605_0807_090a_0b0c_0d0e_0f10);

/// A stream of all objects. The event block has one event with every field, two that repeat nearly all of them,
/// and one of another thread.
pub(crate) fn whole() -> Vec<u8> {
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "Demo", 7, "Tick").as_bytes())));
    object(&mut stream, "StackBlock", &stacks(1, &[&[], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0]]));
    #[rustfmt::skip]
    let events = [
        // all fields: id 1, sequence 0 + 9 + 1, capture thread 300, processor -1, thread 5, stack 2, time 1000
        0xff, 1, 9, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 5, 2, 0xe8, 7,
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1,
        3, b'a', b'b', b'c',
        // no field but time + 1; other fields as before, sequence + 1
        0, 1, b'd', b'e', b'f',
        // time - 2 (modulo 2^64), no activity, empty payload
        0xb0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0,
        // sequence 12 + (2^32 - 12) + 1 = 1, capture thread 301, processor 3, stack 1, time + 0
        0x4a, 0xf4, 0xff, 0xff, 0xff, 0x0f, 0xad, 2, 3, 1, 0,
    ];
    object(&mut stream, "EventBlock", &blobs(true, &events));
    object(&mut stream, "SPBlock", &point(1005, &[(300, 14), (301, 1)]));
    stream.push(1);
    stream
}

#[test]
fn a_complete_stream() {
    let stream = whole();
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(reading.errors(), [""; 0]);
    assert!(reading.complete && reading.partial.is_none());

    let Seen::Header(header) = &reading.items[0] else { panic!("{:?}", reading.items[0]) };
    assert_eq!((header.version, header.pointer_size, header.process_id), (4, 8, bytes::PROCESS_ID));
    assert_eq!((header.processors, header.sampling_rate_ns), (4, 1_000_000));
    assert_eq!(header.sync_time, Some(1_561_031_019_754_000_000));
    assert_eq!(header.utc_ns(1001), Some(1_561_031_019_754_000_100));

    let [metadata] = reading.metadata()[..] else { panic!() };
    assert_eq!((metadata.id, metadata.provider.as_str(), metadata.event_id), (1, "Demo", 7));
    assert_eq!((metadata.name.as_str(), metadata.keywords), ("Tick", 0xf0));
    assert_eq!((metadata.version, metadata.level, metadata.opcode), (2, 4, None));

    let [first, second, third, fourth] = reading.events()[..] else { panic!() };
    assert_eq!((first.metadata_id, first.defined, first.sequence), (1, true, 10));
    assert_eq!((first.capture_thread_id, first.processor, first.thread_id), (300, u32::MAX, 5));
    assert_eq!((first.timestamp, first.sorted), (1000, true));
    assert_eq!(first.stack, [0x0807_0605_0403_0201, 9]);
    assert_eq!(first.activity_id, Some(ACTIVITY));
    assert_eq!(first.related_activity_id, Some(Uuid::from_u128(0x0d0e_0f10_0b0c_090a_0807_0605_0403_0201)));
    assert_eq!(first.payload, b"abc");

    assert_eq!((second.sequence, second.timestamp, second.sorted), (11, 1001, false));
    assert_eq!(
        (second.activity_id, &second.stack, &second.payload[..]),
        (Some(ACTIVITY), &first.stack, &b"def"[..])
    );
    assert_eq!((third.sequence, third.timestamp, third.activity_id), (12, 999, None));
    assert_eq!((third.related_activity_id, third.payload.len()), (None, 0));
    assert_eq!((fourth.sequence, fourth.capture_thread_id, fourth.processor), (1, 301, 3));
    assert_eq!((fourth.thread_id, fourth.stack.len(), fourth.sorted), (5, 0, true));

    let [.., at_end, Seen::End] = &reading.items[..] else { panic!() };
    assert_eq!(*at_end, Seen::Point(1005, vec![(300, 14), (301, 1)]));
    assert_eq!(reading.lost, 2, "the sequence point knows of two more events");
}

#[test]
fn pointers_of_32_bits() {
    let mut stream = start(4);
    object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(1, "Demo", 7, "Tick").as_bytes())));
    object(&mut stream, "StackBlock", &stacks(1, &[&[1, 0, 0, 0, 0xff, 0, 0, 0x80]]));
    object(&mut stream, "EventBlock", &blobs(true, &[0x09, 1, 1, 0]));
    stream.push(1);
    let reading = Reading::of(&stream, 3);
    assert_eq!(reading.events()[0].stack, [1, 0x8000_00ff]);
}

pub(crate) fn uncompressed(id: u32, sequence: u32, payload: &[u8], padding: usize, counted: bool) -> Vec<u8> {
    let mut w = Writer::new();
    let size = 76 + payload.len() + if counted { padding } else { 0 };
    w.u32(u32::try_from(size).unwrap()).u32(id).u32(sequence).u64(21).u64(22).u32(3).u32(1).u64(500);
    w.guid(ACTIVITY).guid(Uuid::nil()).u32(u32::try_from(payload.len()).unwrap()).bytes(payload);
    w.bytes(&vec![0; padding]);
    w.into_bytes()
}

#[test]
fn uncompressed_headers_padded_or_not() {
    let mut events = uncompressed(1, 1, b"abc", 1, true);
    events.extend(uncompressed(1 | 1 << 31, 2, b"abcde", 3, true));
    events.extend(uncompressed(1, 3, b"x", 0, true));
    // The size is too small: the size of the payload applies.
    events.extend(uncompressed(1, 4, b"yz", 0, true));
    let last = events.len() - 82;
    events[last] = 0;
    let mut stream = start(8);
    object(
        &mut stream,
        "MetadataBlock",
        &blobs(false, &uncompressed(0, 0, record(1, "P", 1, "").as_bytes(), 0, true)),
    );
    object(&mut stream, "EventBlock", &blobs(false, &events));
    stream.push(1);
    let reading = Reading::of(&stream, 64);
    assert_eq!(reading.errors(), [""; 0]);
    let seen: Vec<_> = reading
        .events()
        .iter()
        .map(|e| (e.metadata_id, e.defined, e.sequence, e.sorted, e.payload.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (1, true, 1, true, b"abc".to_vec()),
            (1, true, 2, false, b"abcde".to_vec()),
            (1, true, 3, true, b"x".to_vec()),
            (1, true, 4, true, b"yz".to_vec()),
        ]
    );
    let event = reading.events()[0];
    assert_eq!(
        (event.thread_id, event.capture_thread_id, event.processor, event.timestamp),
        (21, 22, 3, 500)
    );
    assert_eq!((event.activity_id, event.related_activity_id), (Some(ACTIVITY), None));
}

#[test]
fn definitions_with_fields_and_tags() {
    let mut v1 = record(1, "P", 1, "Fields");
    v1.u32(3).u32(9).utf16z("n");
    v1.u32(1).u32(2).u32(18).utf16z("s").u32(3).utf16z("b").utf16z("o");
    v1.u32(17).utf16z("g");
    let mut v2 = record(2, "P", 2, "Tags");
    v2.u32(0);
    v2.u32(3).u8(99).bytes(b"any");
    v2.u32(1).u8(1).u8(24);
    let mut params = Writer::new();
    params.u32(3);
    params.u32(4 + 4 + 8).utf16z("a").u32(19).u32(10);
    params.u32(4 + 4 + 4).utf16z("q").u32(77);
    params
        .u32(4 + 4 + 8 + 12 + 3)
        .utf16z("o")
        .u32(1)
        .u32(1)
        .u32(4 + 4 + 4)
        .utf16z("c")
        .u32(4)
        .bytes(&[1, 2, 3]);
    v2.u32(u32::try_from(params.len()).unwrap()).u8(2).bytes(params.as_bytes());
    let mut unknown = record(3, "P", 3, "Unknown");
    unknown.u32(2).u32(9).utf16z("n").u32(2).utf16z("dbnull").u32(1).u8(1).u8(5);
    let mut cut = record(4, "P", 4, "Cut");
    cut.u32(2).u32(9).utf16z("n");
    let mut deep = record(5, "P", 5, "Deep");
    deep.u32(0).u32(4 + 4 + 4 + 400).u8(2).u32(1).u32(4 + 4 + 400).utf16z("d");
    for _ in 0..100 {
        deep.u32(19);
    }
    let mut all = Vec::new();
    for w in [v1, v2, unknown, cut, deep] {
        all.extend(definition(w.as_bytes()));
    }
    all.extend(definition(&record(6, "P", 6, "Short").into_bytes()[..20]));
    all.extend(definition(record(1, "P", 1, "Again").as_bytes()));
    let mut stream = start(8);
    object(&mut stream, "MetadataBlock", &blobs(true, &all));
    stream.push(1);

    let reading = Reading::of(&stream, 100);
    assert_eq!(reading.errors(), [""; 0]);
    let [v1, v2, unknown, cut, deep, again] = reading.metadata()[..] else { panic!("{:?}", reading.items) };
    let object =
        FieldType::Object(vec![Field::new("s", FieldType::String), Field::new("b", FieldType::Bool)]);
    assert_eq!(
        v1.fields,
        [Field::new("n", FieldType::I32), Field::new("o", object), Field::new("g", FieldType::Guid)]
    );
    assert_eq!(
        v2.fields,
        [
            Field::new("a", FieldType::Array(Box::new(FieldType::U32))),
            Field::new("q", FieldType::Other(77)),
            Field::new("o", FieldType::Object(vec![Field::new("c", FieldType::Char)])),
        ]
    );
    assert_eq!((v1.opcode, v2.opcode), (None, Some(24)));
    for lost_fields in [unknown, cut, deep] {
        assert_eq!(lost_fields.fields, [], "{}", lost_fields.name);
    }
    assert_eq!((unknown.event_id, again.name.as_str()), (3, "Again"));
    assert_eq!((reading.counts.damaged_metadata, reading.counts.redefined_metadata), (1, 1));
}

#[test]
fn the_last_definition_of_an_id_is_used() {
    let mut reader = Reader::new();
    let mut stream = start(8);
    for name in ["Old", "New"] {
        object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(8, "P", 1, name).as_bytes())));
    }
    object(&mut stream, "EventBlock", &blobs(true, &[1, 8, 0]));
    reader.feed(&stream);
    let mut names = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let StreamItem::Event(event) = item {
            names.push(event.metadata.unwrap().name.clone());
        }
    }
    assert_eq!(names, ["New"]);
    assert_eq!(reader.metadata(8).unwrap().name, "New");
    assert_eq!(reader.metadata(9), None);
}

#[test]
fn unknown_objects_and_longer_headers_are_skipped() {
    let mut stream = start_with_definition();
    object(&mut stream, "NewBlock", &[0xff; 1000]);
    object_for(&mut stream, "EventBlock", 3, &[0xff; 10]);
    object(&mut stream, "", &[]);
    let mut w = Writer::new();
    w.u16(24).u16(1).i64(0).i64(0).u32(0xdead_beef).bytes(&[1, 1, 9]);
    object(&mut stream, "EventBlock", w.as_bytes());
    stream.push(1);
    stream.extend(b"more");
    for chunk in [1, 10, 10_000] {
        let reading = Reading::of(&stream, chunk);
        assert_eq!(reading.errors(), [""; 0]);
        assert_eq!((reading.counts.unknown_objects, reading.counts.unknown_bytes), (3, 1010));
        assert_eq!(reading.events()[0].timestamp, 9);
        assert!(reading.complete);
        assert_eq!(reading.counts.trailing_bytes, 4);
    }
}

/// Returns the errors of a stream with one valid event before and one after `damage`.
fn around(damage: impl FnOnce(&mut Vec<u8>)) -> (Vec<String>, usize, Option<u64>) {
    let mut stream = start_with_definition();
    object(&mut stream, "EventBlock", &blobs(true, &[1, 1, 1]));
    damage(&mut stream);
    object(&mut stream, "EventBlock", &blobs(true, &[1, 1, 2]));
    stream.push(1);
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(reading, Reading::of(&stream, 1), "chunks do not matter");
    assert_eq!(reading.partial.is_none(), reading.errors().is_empty());
    (reading.errors(), reading.events().len(), reading.partial.map(|partial| partial.offset))
}

#[test]
fn damage_in_a_block_costs_the_rest_of_the_block() {
    // The object starts at offset 272, after an end tag; its payload is at 304, for a name of 10 characters.
    assert_eq!(around(|_| {}), (vec![], 2, None));
    assert_eq!(
        around(|s| object(s, "EventBlock", &blobs(true, &[1, 1, 7, 0x80, 7, 200, 0]))),
        (vec!["event payload at offset 331: needs 72 bytes, 0 are left".to_owned()], 3, Some(327))
    );
    let overlong = [1, 1, 7, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        around(|s| object(s, "EventBlock", &blobs(true, &overlong))),
        (
            vec!["metadata id at offset 328: is a variable-length integer of more than 5 bytes".to_owned()],
            3,
            Some(327)
        )
    );
    assert_eq!(
        around(|s| object(s, "EventBlock", &[19, 0, 1, 0, 0])),
        (vec!["block header size at offset 304: is 19, less than 20".to_owned()], 2, Some(304))
    );
    assert_eq!(
        around(|s| object(s, "EventBlock", &[])),
        (vec!["block header size at offset 304: needs 2 bytes, 0 are left".to_owned()], 2, Some(304))
    );
    assert_eq!(
        around(|s| object(s, "MetadataBlock", &blobs(true, &[0x80, 0, 9]))),
        (vec!["event payload at offset 331: needs 9 bytes, 0 are left".to_owned()], 2, Some(328))
    );
    assert_eq!(
        around(|s| object(s, "StackBlock", &[1, 0, 0, 0, 9, 0, 0, 0, 255, 255, 255, 255])),
        (vec!["stack at offset 316: needs 4294967295 bytes, 0 are left".to_owned()], 2, Some(304))
    );
    assert_eq!(
        around(|s| object(s, "SPBlock", &[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255])),
        (
            vec!["sequence numbers of threads at offset 312: needs 51539607540 bytes, 0 are left".to_owned()],
            2,
            Some(300)
        )
    );
}

#[test]
fn damage_between_blocks_ends_the_reading() {
    let (errors, events, offset) = around(|s| s.extend([5, 5, 9]));
    assert_eq!(errors, ["type tag at offset 274: is 0x9, expected a null reference"]);
    assert_eq!((events, offset), (1, Some(272)));
    let (errors, events, _) = around(|s| *s.last_mut().unwrap() = 7);
    assert_eq!(errors, ["object tag at offset 271: is 0x7, expected the end of an object"]);
    assert_eq!(events, 1);
    let (errors, ..) = around(|s| s.extend([5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0]));
    assert_eq!(errors, ["object name length at offset 283: is 256, more than the allowed 255"]);
    let (errors, ..) = around(|s| {
        s.extend([5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0]);
        s.extend(b"SPBlock\x06\0\0\0\x80");
    });
    assert_eq!(errors, ["block size at offset 295: is 2147483648, more than the allowed 67108864"]);
    let (errors, ..) = around(|s| {
        s.extend([5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0]);
        s.extend(b"SPBlock\x06\0\0\0\x7f");
    });
    assert_eq!(errors, ["block size at offset 295: is 2130706432, more than the allowed 67108864"]);
    let (errors, ..) = around(|s| s.extend(&start(8)[32..]));
    assert_eq!(errors, ["Trace object at offset 272: does not occur exactly once, as the first object"]);
}

#[test]
fn other_files_are_distinguished() {
    let of = |bytes: &[u8]| {
        let reading = Reading::of(bytes, 1);
        assert_eq!(reading, Reading::of(bytes, bytes.len()), "chunks do not matter");
        (reading.errors(), reading.partial.unwrap().reason)
    };
    let (errors, _) = of(b"Netscape");
    assert_eq!(errors, ["not a nettrace stream"]);
    assert_eq!(of(b"Nettrace\x14\0\0\0!FastSerialisation.1").0, ["not a nettrace stream"]);
    let six = of(b"Nettrace\0\0\0\0\x06\0\0\0\xff\0\0\0");
    assert_eq!(six, (vec![], PartialReason::NoEndMarker), "any minor version is read");
    assert_eq!(of(b"Nettrace\0\0\0\0\x05\0\0\0").0, ["nettrace version 5 is not supported"]);
    assert_eq!(of(b"Nettrace\0\0\0\0\x07\0\0\0").0, ["nettrace version 7 is not supported"]);
    let netperf = |name: &[u8], version: u8| {
        let mut bytes = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01".to_vec();
        bytes.extend([version, 0, 0, 0, 0, 0, 0, 0, u8::try_from(name.len()).unwrap(), 0, 0, 0]);
        bytes.extend(name);
        bytes.push(6);
        of(&bytes).0
    };
    assert_eq!(netperf(b"Trace", 3), [""; 0]);
    assert_eq!(netperf(b"Trace", 4), ["nettrace version 4 is not supported"]);
    assert_eq!(netperf(b"Microsoft.DotNet.Runtime.EventPipeFile", 1), [""; 0]);
    assert_eq!(
        netperf(b"Microsoft.DotNet.Runtime.EventPipeFile", 3),
        ["nettrace version 3 is not supported"]
    );
    assert_eq!(netperf(b"GCHeapDump", 10), ["not a nettrace stream"]);
    let mut newer = start(8);
    newer[35] = 5;
    newer[39] = 5;
    assert_eq!(of(&newer).0, ["nettrace version 5 is not supported"]);
    let mut extended = start(8);
    extended[35] = 5;
    assert_eq!(of(&extended), (vec![], PartialReason::NoEndMarker), "version 5 that version 4 can read");
    assert_eq!(of(b"Nettr"), (vec![], PartialReason::Cut { unused: 5 }));
    assert_eq!(of(b""), (vec![], PartialReason::NoEndMarker));
    for (at, value, error) in [
        (53 + 24, 0, "tick frequency at offset 77: is 0x0, expected 1 or more"),
        (53 + 32, 6, "pointer size at offset 85: is 0x6, expected 4 or 8"),
    ] {
        let mut bytes = start(8);
        bytes[at..at + 8].fill(0);
        bytes[at] = value;
        assert_eq!(of(&bytes).0, [error]);
    }
    let mut early = start(8)[..32].to_vec();
    object(&mut early, "SPBlock", &point(0, &[]));
    assert_eq!(of(&early).0, ["Trace object at offset 32: does not occur exactly once, as the first object"]);
}

#[test]
fn a_truncated_stream_reports_how_much_is_lost() {
    let stream = whole();
    let cut = |n: usize| Reading::of(&stream[..stream.len() - n], 1000);
    let partial = |n| cut(n).partial.unwrap();
    assert_eq!((partial(1).reason, partial(1).offset), (PartialReason::NoEndMarker, stream.len() as u64 - 1));
    assert_eq!(partial(2).reason, PartialReason::NoEndMarker, "the last block is whole");
    assert_eq!(partial(3).reason, PartialReason::Cut { unused: 35 }, "of the 36 bytes of the sequence point");
    assert_eq!(
        partial(3).to_string(),
        format!("truncated: 35 bytes from offset {} could not be used", stream.len() - 38)
    );
    let name = stream.windows(7).position(|bytes| bytes == b"SPBlock").unwrap();
    let events_end = name - 15 - 1;
    let in_last_event = Reading::of(&stream[..events_end - 1], 1000);
    assert_eq!(in_last_event.events().len(), 3);
    assert_eq!(in_last_event.partial.unwrap().reason, PartialReason::Cut { unused: 10 });
    assert_eq!(Reading::of(&stream[..events_end - 12], 1000).events().len(), 2);
    let behind_events = Reading::of(&stream[..events_end], 1000);
    assert_eq!(
        (behind_events.events().len(), behind_events.partial.unwrap().reason),
        (4, PartialReason::NoEndMarker)
    );
}

#[test]
fn limits_hold() {
    let mut limits = Limits::default();
    limits.max_metadata = 2;
    limits.max_stack_bytes = 20;
    let mut stream = start(8);
    for id in [1, 2, 2, 3, 1] {
        object(&mut stream, "MetadataBlock", &blobs(true, &definition(record(id, "P", 1, "").as_bytes())));
    }
    object(&mut stream, "StackBlock", &stacks(1, &[&[0; 8]]));
    object(&mut stream, "StackBlock", &stacks(2, &[&[0; 8]]));
    object(&mut stream, "SPBlock", &point(1, &[]));
    object(&mut stream, "StackBlock", &stacks(1, &[&[0; 8]]));
    stream.push(1);
    let reading = Reading::with(&mut Reader::with_limits(limits), &stream, 100);
    let [metadata, stack] = &reading.errors()[..] else { panic!("{:?}", reading.errors()) };
    assert!(metadata.starts_with("event definitions at offset "), "{metadata}");
    assert!(metadata.ends_with(": is 3, more than the allowed 2"), "{metadata}");
    assert!(stack.starts_with("stacks since the last sequence point at offset "), "{stack}");
    assert_eq!(reading.metadata().len(), 4);
    assert_eq!(reading.counts.stacks, 2);
    assert!(reading.complete);

    limits.max_block = 64;
    limits.max_metadata_bytes = 50;
    let reading = Reading::with(&mut Reader::with_limits(limits), &stream, 100);
    assert!(reading.errors()[0].contains("block size"), "{:?}", reading.errors());
    assert_eq!((reading.errors().len(), reading.items.len()), (1, 2));
    limits.max_block = 100;
    let reading = Reading::with(&mut Reader::with_limits(limits), &stream, 100);
    assert!(reading.errors()[0].ends_with(", more than the allowed 50"), "{:?}", reading.errors());
}
