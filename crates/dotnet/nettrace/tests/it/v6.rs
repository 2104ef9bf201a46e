//! Nettrace 6: hand-made streams of every block, the effect of labels and threads on events, and each kind of damage with
//! its effect.

use runtap_nettrace::{Field, FieldType, Label, LabelNumber, Reader, StreamItem, Uuid};
use runtap_wire::Writer;

use crate::seen::{Reading, Seen};

const ACTIVITY: Uuid = Uuid::from_u128(0x1234);
const RELATED: Uuid = Uuid::from_u128(0x5678);

/// First bytes and the Trace block.
pub(crate) fn start() -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes(b"Nettrace").u32(0).u32(6).u32(3);
    let mut stream = w.into_bytes();
    let mut w = Writer::new();
    for part in [2025, 2, 0, 3, 4, 5, 6, 7] {
        w.u16(part);
    }
    w.i64(1000).i64(1_000_000).u32(8).u32(3);
    for (key, value) in [("HardwareThreadCount", "12"), ("ProcessId", "77"), ("Host", "büro")] {
        text(&mut w, key);
        text(&mut w, value);
    }
    block(&mut stream, 1, w.as_bytes());
    stream
}

fn text(w: &mut Writer, text: &str) {
    w.varu32(u32::try_from(text.len()).unwrap()).bytes(text.as_bytes());
}

/// Appends a block.
pub(crate) fn block(stream: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let size = u32::try_from(payload.len()).unwrap() | u32::from(kind) << 24;
    stream.extend(size.to_le_bytes());
    stream.extend(payload);
}

pub(crate) fn sized(row: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u16(u16::try_from(row.len()).unwrap()).bytes(row);
    w.into_bytes()
}

/// A definition with its size.
pub(crate) fn definition(id: u32, name: &str) -> Vec<u8> {
    let mut w = Writer::new();
    w.varu32(id);
    text(&mut w, "Demo");
    w.varu32(7);
    text(&mut w, name);
    w.u16(1).bytes(&sized(b"\x01n\x14"));
    // Keywords 2, version 3, level 5, opcode 9.
    w.u16(15).u8(3).u64(2).u8(9).u8(3).u8(8).u8(5).u8(1).u8(9);
    sized(w.as_bytes())
}

/// A thread with its size.
pub(crate) fn thread(index: u64, process: u64, id: u64) -> Vec<u8> {
    let mut w = Writer::new();
    w.varu64(index).u8(2).varu64(process).u8(3).varu64(id).u8(1);
    text(&mut w, "worker");
    sized(w.as_bytes())
}

/// An event block with compressed headers.
pub(crate) fn events(compressed: bool, events: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u16(20).u16(u16::from(compressed)).i64(0).i64(0).bytes(events);
    w.into_bytes()
}

pub(crate) fn point(timestamp: u64, flags: u32, threads: &[(u64, u32)]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u64(timestamp).u32(flags).u32(u32::try_from(threads.len()).unwrap());
    for (index, sequence) in threads {
        w.varu64(*index).varu32(*sequence);
    }
    w.into_bytes()
}

fn metadata(rows: &[&[u8]]) -> Vec<u8> {
    let mut w = Writer::new();
    w.u16(3).bytes(b"???");
    for row in rows {
        w.bytes(row);
    }
    w.into_bytes()
}

/// A block of labels: lists 1 and 2.
fn labels() -> Vec<u8> {
    let mut w = Writer::new();
    w.u32(1).u32(2);
    w.u8(1).guid(ACTIVITY).u8(2).guid(RELATED).u8(0x83).bytes(b"0123456789abcdef");
    w.u8(4).u64(99).u8(5);
    text(&mut w, "k");
    text(&mut w, "v");
    w.u8(6);
    text(&mut w, "n");
    w.varu64(3).u8(7).u8(20).u8(8).u64(1 << 40).u8(9).u8(1).u8(0x8a).u8(30);
    w.into_bytes()
}

/// A stream of all blocks.
pub(crate) fn whole() -> Vec<u8> {
    let mut stream = start();
    block(&mut stream, 3, &metadata(&[&definition(1, "Tick"), &definition(2, "Tock")]));
    block(&mut stream, 200, b"from the future");
    block(&mut stream, 4, &point(1000, 0, &[]));
    block(&mut stream, 5, &[1, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    block(&mut stream, 6, &[thread(300, 4242, 11), thread(2, 4243, 12), sized(&[5])].concat());
    block(&mut stream, 8, &labels());
    #[rustfmt::skip]
    let rows = [
        // all fields: id 1, sequence 0 + 0 + 1, capture thread 2, processor 3, thread 300, stack 1, time 1000, labels 1
        0xff, 1, 0, 2, 3, 0xac, 2, 1, 0xe8, 7, 1, 3, b'a', b'b', b'c',
        // no field but time + 1; bit 32 means nothing
        0x20, 1, b'd', b'e', b'f',
        // labels 2, id 2
        0x11, 2, 1, 2, b'g', b'h', b'i',
        // thread 5, which the stream does not describe; no labels, no payload
        0x94, 5, 1, 0, 0,
        // thread 6, which is unknown
        0x04, 6, 1,
    ];
    block(&mut stream, 2, &events(true, &rows));
    block(&mut stream, 7, &[0xac, 2, 0, 2, 6]);
    let mut row = Writer::new();
    row.u32(52 - 4 + 2).u32(2).u32(9).u64(5).u64(5).u32(1).u32(1).u64(1500).u32(2).u32(2).bytes(b"xy");
    let mut second = Writer::new();
    // Padded, with the padding included in the size.
    second
        .u32(52 - 4 + 1 + 3)
        .u32(1 | 1 << 31)
        .u32(10)
        .u64(5)
        .u64(5)
        .u32(1)
        .u32(0)
        .u64(1501)
        .u32(0)
        .u32(1)
        .bytes(b"z\0\0\0");
    block(&mut stream, 2, &events(false, &[row.into_bytes(), second.into_bytes()].concat()));
    block(&mut stream, 4, &point(2000, 0, &[(5, 12)]));
    block(&mut stream, 2, &events(true, &[0xcf, 1, 0, 5, 1, 5, 1, 0xd0, 0x0f, 0]));
    block(&mut stream, 0, &[]);
    stream
}

#[test]
fn a_complete_stream() {
    let stream = whole();
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(reading.errors(), [""; 0]);
    assert!(reading.complete && reading.partial.is_none());
    let Seen::Header(header) = &reading.items[0] else { panic!("{:?}", reading.items[0]) };
    assert_eq!((header.version, header.pointer_size, header.process_id), (6, 8, 77));
    assert_eq!((header.processors, header.sampling_rate_ns, header.attributes.len()), (12, 0, 3));
    assert_eq!(header.attributes[2], ("Host".into(), "büro".into()));
    assert_eq!((header.sync_qpc, header.qpc_frequency), (1000, 1_000_000));

    let [tick, tock] = reading.metadata()[..] else { panic!("{:?}", reading.items) };
    assert_eq!((tick.id, tick.provider.as_str(), tick.event_id, tick.name.as_str()), (1, "Demo", 7, "Tick"));
    assert_eq!((tick.keywords, tick.version, tick.level, tick.opcode), (2, 3, 5, Some(9)));
    assert_eq!(tick.fields, [Field::new("n", FieldType::VarInt)]);
    assert_eq!((tock.id, tock.name.as_str()), (2, "Tock"));

    let events = reading.events();
    let basics: Vec<_> = events
        .iter()
        .map(|e| {
            (e.metadata_id, e.defined, e.sequence, e.thread_id, e.capture_thread_id, e.timestamp, e.sorted)
        })
        .collect();
    assert_eq!(
        basics,
        [
            (1, true, 1, 11, 12, 1000, true),
            (1, true, 2, 11, 12, 1001, false),
            (2, true, 3, 11, 12, 1002, false),
            (2, true, 4, 5, 12, 1003, false),
            (2, true, 5, 6, 12, 1004, false),
            (2, true, 9, 5, 5, 1500, true),
            (1, true, 10, 5, 5, 1501, false),
            (1, true, 1, 5, 5, 2000, true),
        ],
        "ids where the stream tells them, else indexes"
    );
    let payloads: Vec<_> = events.iter().map(|event| event.payload.as_slice()).collect();
    assert_eq!(payloads, [&b"abc"[..], b"def", b"ghi", b"", b"", b"xy", b"z", b""]);
    let stacks: Vec<_> = events.iter().map(|event| event.stack.len()).collect();
    assert_eq!(stacks, [1, 1, 1, 1, 1, 1, 0, 0], "stacks end with the sequence point");
    assert_eq!((events[0].activity_id, events[0].related_activity_id), (Some(ACTIVITY), Some(RELATED)));
    assert_eq!((events[2].activity_id, events[2].related_activity_id), (None, None));
    assert_eq!(events[0].more.as_ref().unwrap().thread.as_ref().unwrap().name.as_deref(), Some("worker"));
    assert_eq!(events[3].more.as_ref().unwrap().thread.as_ref().unwrap().thread_id, None);
    assert!(events[4].more.is_none());
    // Thread 2 has tried to write 6, 300 none; 5 wrote 9 as its first and 12 as its last.
    assert_eq!(reading.lost, 1 + 8 + 2);
    assert_eq!((reading.counts.unknown_objects, reading.counts.unknown_bytes), (1, 15));
    assert_eq!((reading.counts.events_without_metadata, reading.counts.stacks), (0, 1));
    assert!(reading.items.contains(&Seen::Point(2000, vec![(5, 12)])));
    for chunk in 1..90 {
        assert_eq!(Reading::of(&stream, chunk), reading, "chunks of {chunk}");
        assert_eq!(Reading::in_place(&stream, chunk), reading, "in place, chunks of {chunk}");
    }
    for n in 0..stream.len() {
        let cut = Reading::of(&stream[..n], 50);
        assert_eq!(cut.items, reading.items[..cut.items.len()], "{n}");
        assert!(cut.partial.is_some() && cut.errors().is_empty(), "{n}");
    }
}

#[test]
fn labels_override_the_definition() {
    let mut reader = Reader::new();
    let stream = whole();
    let mut items = reader.items(&stream);
    let mut seen = Vec::new();
    let mut all = Vec::new();
    items
        .for_each(|item| {
            if let StreamItem::Event(event) = item {
                seen.push((event.level(), event.version(), event.keywords(), event.opcode()));
                all.push((event.process_id, event.labels.trace_id(), event.labels.span_id()));
                if event.timestamp == 1002 {
                    let number = Label::Number("n".into(), LabelNumber { raw: 3 });
                    assert!(event.labels.iter().any(|label| label == number));
                    assert_eq!(LabelNumber { raw: 3 }.value(), -2);
                }
            }
        })
        .unwrap();
    let of_definition = (Some(5), Some(3), Some(2), Some(9));
    let of_labels = (Some(1), Some(30), Some(1 << 40), Some(20));
    let mut expected = [of_definition; 8];
    (expected[2], expected[5]) = (of_labels, of_labels);
    assert_eq!(seen, expected);
    assert_eq!(all[0], (Some(4242), Some(*b"0123456789abcdef"), None));
    assert_eq!(all[2], (Some(4242), None, Some(99)));
    assert_eq!(all[3], (None, None, None));
}

#[test]
fn removed_threads_are_forgotten() {
    let mut stream = start();
    block(&mut stream, 3, &metadata(&[&definition(1, "Tick")]));
    let event = events(true, &[0x87, 1, 0, 2, 0, 2, 1, 0]);
    block(&mut stream, 6, &thread(2, 4243, 12));
    block(&mut stream, 2, &event);
    block(&mut stream, 7, &[2, 1]);
    block(&mut stream, 2, &event);
    block(&mut stream, 6, &thread(2, 4243, 13));
    block(&mut stream, 2, &event);
    block(&mut stream, 6, &thread(2, 4243, 14));
    block(&mut stream, 2, &event);
    block(&mut stream, 0, &[]);
    let reading = Reading::of(&stream, 50);
    let threads: Vec<_> = reading.events().iter().map(|event| event.thread_id).collect();
    assert_eq!(threads, [12, 2, 13, 14]);
    assert_eq!((reading.lost, reading.counts.redefined_threads), (0, 1));
}

#[test]
fn sequence_points_reset_the_flagged_ids() {
    for flags in 0..4 {
        let mut stream = start();
        let event = events(true, &[0x87, 1, 0, 2, 0, 2, 1, 0]);
        block(&mut stream, 3, &metadata(&[&definition(1, "Tick")]));
        block(&mut stream, 6, &thread(2, 4243, 12));
        block(&mut stream, 2, &event);
        block(&mut stream, 4, &point(2000, flags, &[(2, 3)]));
        block(&mut stream, 2, &event);
        block(&mut stream, 0, &[]);
        let reading = Reading::of(&stream, 50);
        let undefined = usize::from(flags & 2 != 0);
        assert_eq!(reading.events().len(), 2 - undefined);
        if undefined == 0 {
            assert_eq!(reading.events()[1].thread_id, if flags & 1 == 0 { 12 } else { 2 });
        }
        assert_eq!(reading.lost, 2, "told before anything is forgotten");
        let counted = reading.counts.events_without_metadata;
        assert_eq!((reading.errors().len(), counted), (undefined, undefined as u64));
    }
}

#[test]
fn a_second_trace_block_ends_the_reading() {
    let mut stream = start();
    block(&mut stream, 1, &[]);
    block(&mut stream, 0, &[]);
    let reading = Reading::of(&stream, 5);
    assert_eq!((reading.errors().len(), reading.items.len(), reading.complete), (1, 2, false));
}

/// Returns errors, number of events and first damage of a stream with one event before and one after `damage`.
fn around(damage: impl FnOnce(&mut Vec<u8>)) -> (Vec<String>, usize, Option<u64>) {
    let event = events(true, &[0x83, 1, 0, 9, 0, 1, 0]);
    let mut stream = start();
    block(&mut stream, 3, &metadata(&[&definition(1, "Tick")]));
    block(&mut stream, 2, &event);
    damage(&mut stream);
    block(&mut stream, 2, &event);
    block(&mut stream, 0, &[]);
    let reading = Reading::of(&stream, stream.len());
    assert_eq!(Reading::of(&stream, 1), reading, "chunks do not matter");
    assert_eq!(reading.partial.is_none(), reading.errors().is_empty());
    assert!(reading.complete);
    (reading.errors(), reading.events().len(), reading.partial.map(|partial| partial.offset))
}

#[test]
fn damage_in_a_block_costs_the_rest_of_the_block() {
    let definitions = metadata(&[&definition(1, "Tick")]).len() as u64;
    let here = start().len() as u64 + 4 + definitions + 4 + 27 + 4;
    let told = |what: &str, at: u64| vec![what.replace('@', &(here + at).to_string())];
    assert_eq!(around(|_| {}), (vec![], 2, None));
    assert_eq!(
        around(|s| block(s, 3, &metadata(&[&definition(1, "Tick")[..9]]))),
        (told("definition at offset @: needs 36 bytes, 7 are left", 7), 2, Some(here + 5))
    );
    assert_eq!(
        around(|s| block(s, 3, &[9])).0,
        told("size of the block header at offset @: needs 2 bytes, 1 are left", 0)
    );
    assert_eq!(around(|s| block(s, 3, &metadata(&[&sized(&[1, 200])]))), (vec![], 2, None), "counted");
    assert_eq!(
        around(|s| block(s, 6, &[sized(&[4, 1, 100]), thread(1, 2, 3)].concat())),
        (vec![], 2, None),
        "counted"
    );
    assert_eq!(
        around(|s| block(s, 6, &[9, 0, 1])).0,
        told("thread at offset @: needs 9 bytes, 1 are left", 2)
    );
    assert_eq!(
        around(|s| block(s, 8, &[1, 0, 0, 0, 2, 0, 0, 0, 0x87, 1, 4, 1])).0,
        told("span id at offset @: needs 8 bytes, 1 are left", 11)
    );
    assert_eq!(
        around(|s| block(s, 8, &[1, 0, 0, 0, 2, 0, 0, 0, 0x87, 1, 50, 1])),
        (vec![], 2, None),
        "counted"
    );
    assert_eq!(
        around(|s| block(s, 4, &point(1, 0, &[(1, 2)])[..17])).0,
        told("sequence number at offset @: needs 1 bytes, 0 are left", 17)
    );
    assert_eq!(
        around(|s| block(s, 7, &[1])).0,
        told("sequence number at offset @: needs 1 bytes, 0 are left", 1)
    );
    assert_eq!(
        around(|s| block(s, 2, &events(true, &[0x80, 1, 9]))).0,
        told("event payload at offset @: needs 9 bytes, 0 are left", 23)
    );
}
