//! The writer: exact bytes, rejected calls, and the property that a reader returns what was written.

use std::collections::HashMap;

use proptest::prelude::*;
use runtap_nettrace::{
    EventToWrite, Field, FieldType, MAX_PAYLOAD, MAX_STACK_DEPTH, Metadata, TraceHeader, Uuid, WriteError,
    Writer,
};

use crate::bytes::{self, blobs, object, point, stacks, start};
use crate::seen::{Reading, Seen, SeenEvent};

pub(crate) fn header(pointer_size: u32) -> TraceHeader {
    let mut header = TraceHeader::new(1_561_031_019_754_999_999, 1000, 10_000_000);
    (header.pointer_size, header.process_id, header.processors) = (pointer_size, bytes::PROCESS_ID, 4);
    header
}

#[test]
fn exact_bytes() {
    let mut writer = Writer::new(&header(8));
    let mut expected = start(8);
    assert_eq!(writer.take_output(), expected, "the header is there at once");

    let id = writer.define_event(&Metadata::new("P", 7, "N")).unwrap();
    let event = EventToWrite {
        metadata_id: id,
        thread_id: 5,
        capture_thread_id: 300,
        processor: 3,
        stack: &[0x0102_0304, u64::MAX],
        timestamp: 1500,
        payload: b"abc",
        ..EventToWrite::default()
    };
    writer.event(&event).unwrap();
    writer.event(&EventToWrite { timestamp: 1501, payload: b"def", ..event }).unwrap();
    writer
        .event(&EventToWrite { sequence: Some(9), timestamp: 1501, stack: &[], payload: &[], ..event })
        .unwrap();
    assert!(writer.take_output().is_empty(), "the block is not full");
    writer.flush();
    writer
        .event(&EventToWrite { thread_id: 0, capture_thread_id: 0, processor: 0, timestamp: 1502, ..event })
        .unwrap();
    writer.sequence_point(1600);
    writer.event(&EventToWrite { timestamp: 1600, ..event }).unwrap();
    let output = writer.finish();

    let block = |events: &[u8], min: u64, max: u64| {
        let mut payload = blobs(true, events);
        payload[4..12].copy_from_slice(&min.to_le_bytes());
        payload[12..20].copy_from_slice(&max.to_le_bytes());
        payload
    };
    #[rustfmt::skip]
    let record = [
        // flags 0xc0 (sorted, payload size), time 1000, 36 bytes
        0xc0, 0xe8, 7, 36,
        1, 0, 0, 0, b'P', 0, 0, 0, 7, 0, 0, 0, b'N', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
    ];
    object(&mut expected, "MetadataBlock", &block(&record, 1000, 1000));
    let frames = [4, 3, 2, 1, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    object(&mut expected, "StackBlock", &stacks(1, &[&frames, &[]]));
    #[rustfmt::skip]
    let events = [
        // all but activities: id 1, sequence 0 + 0 + 1, thread 300 on 3, about thread 5, stack 1, time 1500, 3 bytes
        0xcf, 1, 0, 0xac, 2, 3, 5, 1, 0xdc, 0x0b, 3, b'a', b'b', b'c',
        0x00, 1, b'd', b'e', b'f',
        // sequence 2 + 6 + 1, stack 2, no bytes
        0x8a, 6, 0xac, 2, 3, 2, 0, 0,
    ];
    object(&mut expected, "EventBlock", &block(&events, 1500, 1501));
    // Another capture thread, with its own numbers; known stack. No state is kept between blocks.
    let events = [0xc9, 1, 1, 0xde, 0x0b, 3, b'a', b'b', b'c'];
    object(&mut expected, "EventBlock", &block(&events, 1502, 1502));
    object(&mut expected, "SPBlock", &point(1600, &[(0, 1), (300, 9)]));
    object(&mut expected, "StackBlock", &stacks(1, &[&frames]));
    let events = [0xcf, 1, 9, 0xac, 2, 3, 5, 1, 0xc0, 0x0c, 3, b'a', b'b', b'c'];
    object(&mut expected, "EventBlock", &block(&events, 1600, 1600));
    object(&mut expected, "SPBlock", &point(1600, &[(0, 1), (300, 10)]));
    expected.push(1);
    assert_eq!(output, expected[start(8).len()..]);
    assert!(Reading::of(&expected, 1000).complete);
}

#[test]
fn rejected_calls_change_nothing() {
    let mut writer = Writer::new(&header(4));
    let id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
    let event =
        EventToWrite { metadata_id: id, timestamp: 1010, capture_thread_id: 1, ..EventToWrite::default() };
    let huge = vec![0; MAX_PAYLOAD + 1];
    for (bad, error) in [
        (EventToWrite { metadata_id: 0, ..event }, WriteError::UnknownMetadata { id: 0 }),
        (EventToWrite { metadata_id: 2, ..event }, WriteError::UnknownMetadata { id: 2 }),
        (
            EventToWrite { payload: &huge, ..event },
            WriteError::TooLarge { what: "a payload", size: MAX_PAYLOAD + 1, limit: MAX_PAYLOAD },
        ),
        (EventToWrite { stack: &[1, 1 << 32], ..event }, WriteError::WideAddress { address: 1 << 32 }),
    ] {
        assert_eq!(writer.event(&bad), Err(error));
    }
    writer.event(&event).unwrap();
    writer.event(&EventToWrite { timestamp: 1020, ..event }).unwrap();
    let back = |timestamp, least| Err(WriteError::TimeGoesBack { timestamp, least });
    assert_eq!(writer.event(&EventToWrite { timestamp: 1019, ..event }), back(1019, 1020), "inside a run");
    let other = EventToWrite { capture_thread_id: 2, timestamp: 1009, ..event };
    assert_eq!(writer.event(&other), back(1009, 1010), "between the starts of runs");
    writer.event(&EventToWrite { timestamp: 1011, ..other }).unwrap();
    writer.sequence_point(0);
    assert_eq!(
        writer.event(&EventToWrite { timestamp: 1019, ..other }),
        back(1019, 1020),
        "behind a sequence point"
    );

    writer.drop_events(1, 3);
    writer.event(&EventToWrite { timestamp: 1020, ..event }).unwrap();
    let nul = Metadata::new("P", 1, "a\0b");
    assert_eq!(writer.define_event(&nul), Err(WriteError::NulInName));
    let large = Metadata::new("P", 1, "x".repeat(MAX_PAYLOAD / 2));
    assert!(matches!(writer.define_event(&large), Err(WriteError::TooLarge { what: "a definition", .. })));
    assert_eq!(writer.define_event(&Metadata::new("P", 2, "")).unwrap(), 2);

    let reading = Reading::of(&writer.finish(), 1000);
    let sequences: Vec<_> =
        reading.events().iter().map(|event| (event.capture_thread_id, event.sequence)).collect();
    assert_eq!(sequences, [(1, 1), (1, 2), (2, 1), (1, 6)]);
    assert_eq!(reading.lost, 3);
}

#[test]
fn deep_stacks_lose_their_root() {
    let mut writer = Writer::new(&header(8));
    let metadata_id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
    let stack: Vec<u64> = (0..300).collect();
    writer.event(&EventToWrite { metadata_id, stack: &stack, ..EventToWrite::default() }).unwrap();
    let reading = Reading::of(&writer.finish(), 1000);
    assert_eq!(reading.events()[0].stack, stack[..MAX_STACK_DEPTH]);
}

#[test]
fn blocks_stay_small_and_points_become_due() {
    let mut writer = Writer::new(&header(8));
    let metadata_id = writer.define_event(&Metadata::new("P", 1, "")).unwrap();
    let payload = vec![7; 40_000];
    let mut stream = Vec::new();
    for n in 0..600u64 {
        assert!(!writer.needs_sequence_point(), "{n}");
        let stack: Vec<u64> = (n..n + 100).collect();
        let size = usize::try_from(n % 7).unwrap() * 6_000;
        let event = EventToWrite {
            metadata_id,
            stack: &stack,
            payload: &payload[..size],
            timestamp: n,
            ..EventToWrite::default()
        };
        writer.event(&event).unwrap();
        for m in 0..2 {
            writer.define_event(&Metadata::new("P", 1, "n".repeat(300 * m))).unwrap();
        }
        if writer.needs_sequence_point() {
            break;
        }
        stream.extend(writer.take_output());
    }
    assert!(writer.needs_sequence_point());
    writer.sequence_point(0);
    assert!(!writer.needs_sequence_point());
    stream.extend(writer.finish());
    let objects = bytes::objects(&stream);
    let largest = objects.iter().map(|(_, payload)| payload.len()).max().unwrap();
    assert!((90_000..=100 << 10).contains(&largest), "{largest}");
}

/// One call of the writer.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Define(Metadata),
    Event(SeenEvent),
    Flush,
    Point(u64),
    Take,
}

fn fields(layout_of_today: bool) -> impl Strategy<Value = Vec<Field>> {
    let plain = prop::sample::select(vec![
        FieldType::Bool,
        FieldType::Char,
        FieldType::I8,
        FieldType::U8,
        FieldType::I16,
        FieldType::U16,
        FieldType::I32,
        FieldType::U32,
        FieldType::I64,
        FieldType::U64,
        FieldType::F32,
        FieldType::F64,
        FieldType::Decimal,
        FieldType::DateTime,
        FieldType::Guid,
        FieldType::String,
    ]);
    let field_type = plain.prop_recursive(3, 12, 4, move |inner| {
        let object = prop::collection::vec(("[^\0]{0,3}", inner.clone()), 0..4).prop_map(|fields| {
            FieldType::Object(fields.into_iter().map(|(n, t)| Field::new(n, t)).collect())
        });
        if layout_of_today {
            prop_oneof![
                object,
                inner.prop_map(|element| FieldType::Array(Box::new(element))),
                Just(FieldType::Other(200))
            ]
            .boxed()
        } else {
            object.boxed()
        }
    });
    prop::collection::vec(("[^\0]{0,8}", field_type), 0..5).prop_map(|fields| {
        fields.into_iter().map(|(name, field_type)| Field::new(name, field_type)).collect()
    })
}

prop_compose! {
    fn definition()(
        names in ("[^\0]{0,20}", "[^\0]{0,20}"),
        numbers: (u32, u64, u32, u32),
        opcode: Option<u8>,
        fields in prop_oneof![fields(false), fields(true)],
    ) -> Metadata {
        let mut metadata = Metadata::new(names.0, numbers.0, names.1);
        (metadata.keywords, metadata.version, metadata.level) = (numbers.1, numbers.2, numbers.3);
        (metadata.opcode, metadata.fields) = (opcode, fields);
        metadata
    }
}

prop_compose! {
    // The metadata id is taken modulo the number of definitions, the time stamp is a step.
    fn event()(
        ids: (u32, u64, u32),
        capture_thread_id in 0..4u64,
        sequence in prop_oneof![4 => Just(0), 1 => any::<u32>()],
        stack in prop_oneof![prop::collection::vec(any::<u32>(), 0..5), Just(vec![1, 2]), Just(vec![])],
        step in prop_oneof![4 => 0..1000u64, 1 => 0..1u64 << 50],
        activities in (prop::option::weighted(0.3, 1..u128::MAX), prop::option::weighted(0.3, 1..u128::MAX)),
        payload in prop_oneof![prop::collection::vec(any::<u8>(), 0..40), (any::<u8>(), 0..40_000usize).prop_map(|(byte, n)| vec![byte; n])],
    ) -> SeenEvent {
        SeenEvent {
            metadata_id: ids.0,
            defined: true,
            thread_id: ids.1,
            capture_thread_id,
            processor: ids.2,
            sequence,
            stack: stack.into_iter().map(u64::from).collect(),
            timestamp: step,
            activity_id: activities.0.map(Uuid::from_u128),
            related_activity_id: activities.1.map(Uuid::from_u128),
            sorted: false,
            payload,
            more: None,
        }
    }
}

pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        2 => definition().prop_map(Call::Define),
        20 => event().prop_map(Call::Event),
        1 => Just(Call::Flush),
        1 => any::<u32>().prop_map(|timestamp| Call::Point(timestamp.into())),
        1 => Just(Call::Take),
    ];
    prop::collection::vec(call, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn what_is_written_is_read(calls in calls(), pointer_size in prop_oneof![Just(4u32), Just(8)], frequency in 1..i64::MAX) {
        let mut header = TraceHeader::new(frequency, 77, frequency);
        header.pointer_size = pointer_size;
        let mut writer = Writer::new(&header);
        let mut stream = Vec::new();
        let mut definitions = Vec::new();
        let mut events = Vec::new();
        let mut sequences: HashMap<u64, u32> = HashMap::new();
        let (mut now, mut run) = (77, None);
        for call in calls {
            match call {
                Call::Define(mut metadata) => {
                    metadata.id = writer.define_event(&metadata).unwrap();
                    definitions.push(Seen::Metadata(metadata));
                }
                Call::Event(mut event) if !definitions.is_empty() => {
                    event.metadata_id = event.metadata_id % u32::try_from(definitions.len()).unwrap() + 1;
                    now += event.timestamp;
                    event.timestamp = now;
                    let explicit = (event.sequence > 0).then_some(event.sequence);
                    let last = sequences.entry(event.capture_thread_id).or_default();
                    *last = explicit.unwrap_or_else(|| last.wrapping_add(1));
                    event.sequence = *last;
                    event.sorted = run.replace(event.capture_thread_id) != Some(event.capture_thread_id);
                    writer.event(&EventToWrite {
                        metadata_id: event.metadata_id,
                        thread_id: event.thread_id,
                        capture_thread_id: event.capture_thread_id,
                        sequence: explicit,
                        processor: event.processor,
                        stack: &event.stack,
                        timestamp: event.timestamp,
                        activity_id: event.activity_id,
                        related_activity_id: event.related_activity_id,
                        labels: &[],
                        payload: &event.payload,
                    }).unwrap();
                    events.push(Seen::Event(event));
                }
                Call::Event(_) | Call::Take => stream.extend(writer.take_output()),
                Call::Flush => {
                    writer.flush();
                    run = None;
                }
                Call::Point(timestamp) => {
                    writer.sequence_point(timestamp);
                    now = now.max(timestamp);
                    run = None;
                    events.push(Seen::Point(now, Vec::new()));
                }
            }
        }
        stream.extend(writer.finish());
        events.push(Seen::Point(now, Vec::new()));

        let reading = Reading::of(&stream, 3000);
        prop_assert!(reading.complete && reading.partial.is_none());
        let mut read_definitions = Vec::new();
        let mut read_events = Vec::new();
        for item in reading.items {
            match item {
                Seen::Header(read) => prop_assert_eq!(read, header.clone()),
                Seen::Metadata(_) => read_definitions.push(item),
                Seen::Point(timestamp, _) => read_events.push(Seen::Point(timestamp, Vec::new())),
                Seen::Event(_) => read_events.push(item),
                Seen::End => {}
                Seen::Error(error) => prop_assert!(false, "{}", error),
            }
        }
        prop_assert_eq!(read_definitions, definitions);
        prop_assert_eq!(read_events, events);
        for (name, payload) in bytes::objects(&stream) {
            prop_assert!(payload.len() <= 100 << 10, "{}", name);
        }
    }
}
