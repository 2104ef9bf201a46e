//! The writer of `NetPerf` 3: exact bytes, rejected calls, and the property that a reader returns what was written.

use proptest::prelude::*;
use runtap_nettrace::{EventToWrite, Label, Metadata, Uuid, Version, WriteError, Writer};

use crate::bytes::object_in;
use crate::seen::{Reading, Seen};
use crate::writer::{Call, calls, header};

fn writer(pointer_size: u32) -> Writer {
    Writer::with_version(&header(pointer_size), Version::NetPerf3)
}

#[test]
fn exact_bytes() {
    let mut writer = writer(8);
    let start = writer.take_output();
    assert!(
        start.starts_with(b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\0\0\0\0\x05\0\0\0Trace\x06")
    );
    let id = writer.define_event(&Metadata::new("P", 7, "N")).unwrap();
    let event = EventToWrite {
        metadata_id: id,
        thread_id: 5,
        stack: &[0x0102_0304],
        timestamp: 1500,
        activity_id: Some(Uuid::from_bytes_le([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])),
        payload: b"abc",
        ..EventToWrite::default()
    };
    writer.event(&event).unwrap();
    assert!(writer.take_output().is_empty(), "the block is not full");
    writer.sequence_point(9000);
    let mut expected = start;
    #[rustfmt::skip]
    let block = [
        // 92 bytes; a definition of no thread at no time
        92, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        36, 0, 0, 0,
        1, 0, 0, 0, b'P', 0, 0, 0, 7, 0, 0, 0, b'N', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
        // 68 bytes; definition 1, thread 5, time 1500
        68, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0xdc, 5, 0, 0, 0, 0, 0, 0,
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        3, 0, 0, 0, b'a', b'b', b'c',
        8, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0,
        // padding
        0,
    ];
    let mut file = expected.clone();
    object_in(&mut file, 4, "EventBlock", 0, &block);
    // The version of the block's layout is 1.
    let version = expected.len() + 3;
    file[version..version + 4].copy_from_slice(&1u32.to_le_bytes());
    file.push(1);
    expected.extend(writer.finish());
    assert_eq!(expected, file);
}

#[test]
fn decreasing_times_and_labels_are_rejected() {
    let mut writer = writer(4);
    let metadata_id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
    let event = EventToWrite { metadata_id, timestamp: 20, capture_thread_id: 1, ..EventToWrite::default() };
    writer.event(&event).unwrap();
    let other = EventToWrite { timestamp: 19, capture_thread_id: 2, ..event };
    assert_eq!(writer.event(&other), Err(WriteError::TimeGoesBack { timestamp: 19, least: 20 }));
    let labelled = EventToWrite { labels: &[Label::SpanId(1)], ..event };
    assert_eq!(writer.event(&labelled), Err(WriteError::NeedsVersion6 { what: "labels" }));
    assert!(!writer.needs_sequence_point());
    assert_eq!(Reading::of(&writer.finish(), 1000).events().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read(calls in calls(), pointer_size in prop_oneof![Just(4u32), Just(8)]) {
        let mut writer = writer(pointer_size);
        let mut stream = Vec::new();
        let (mut definitions, mut events) = (Vec::new(), Vec::new());
        let mut now = 77;
        for call in calls {
            match call {
                Call::Define(mut metadata) => {
                    metadata.id = writer.define_event(&metadata).unwrap();
                    definitions.push(metadata);
                }
                Call::Event(event) if !definitions.is_empty() => {
                    let metadata_id = event.metadata_id % u32::try_from(definitions.len()).unwrap() + 1;
                    now += event.timestamp;
                    writer.event(&EventToWrite {
                        metadata_id,
                        thread_id: event.thread_id,
                        capture_thread_id: event.capture_thread_id,
                        stack: &event.stack,
                        timestamp: now,
                        activity_id: event.activity_id,
                        related_activity_id: event.related_activity_id,
                        payload: &event.payload,
                        ..EventToWrite::default()
                    }).unwrap();
                    let thread = event.thread_id & u64::from(u32::MAX);
                    let ids = (event.activity_id, event.related_activity_id);
                    events.push((metadata_id, thread, now, event.stack, ids, event.payload));
                }
                Call::Event(_) | Call::Take => stream.extend(writer.take_output()),
                Call::Flush => writer.flush(),
                Call::Point(timestamp) => {
                    writer.sequence_point(timestamp);
                    now = now.max(timestamp);
                }
            }
        }
        stream.extend(writer.finish());
        let reading = Reading::of(&stream, 1000);
        prop_assert!(reading.complete && reading.lost == 0 && reading.errors().is_empty());
        let seen: Vec<_> = reading.items.iter().filter_map(|item| match item {
            Seen::Metadata(metadata) => Some(metadata.clone()),
            _ => None,
        }).collect();
        prop_assert_eq!(seen, definitions);
        let seen: Vec<_> = reading.events().into_iter().map(|e| {
            let ids = (e.activity_id, e.related_activity_id);
            (e.metadata_id, e.thread_id, e.timestamp, e.stack.clone(), ids, e.payload.clone())
        }).collect();
        prop_assert_eq!(seen, events);
    }
}
