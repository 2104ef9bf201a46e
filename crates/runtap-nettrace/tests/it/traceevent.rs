//! Microsoft's TraceEvent reads what the writer writes: the same events, losses and header.

use std::fs;

use runtap_nettrace::{EventToWrite, Field, FieldType, Metadata, TraceHeader, Uuid, Writer};
use runtap_testkit::{Peer, require, run};
use serde_json::{Value, json};

use crate::seen::Reading;

#[test]
fn traceevent_reads_what_is_written() {
    let peer = require!(Peer::available("tebench"));
    for pointer_size in [4, 8] {
        let (stream, counts) = stream(pointer_size);
        let ours = Reading::of(&stream, 4096);
        assert_eq!((ours.errors().len(), ours.events().len(), ours.lost), (0, 9010, 41));
        let answer = traceevent_counts(&peer, &stream);
        assert_eq!(answer["error"], Value::Null, "{answer}");
        assert_eq!(answer["events"], 9010, "{answer}");
        assert_eq!(answer["events_lost"], 41, "{answer}");
        assert_eq!(answer["pointer_size"], pointer_size);
        assert_eq!(answer["processors"], 6);
        assert_eq!(answer["session_start_utc"], "2023-11-14T22:13:20.1230000Z");
        let times = [&answer["first_event_ms"], &answer["last_event_ms"]].map(Value::as_f64);
        assert_eq!(times, [Some(1.0), Some(901.0)]);
        assert_eq!(answer["counts"], counts);
    }
}

/// 9,000 ticks of three threads in turns of a hundred, ten events with all kinds of fields, three sequence points;
/// and what TraceEvent should count in it.
fn stream(pointer_size: u32) -> (Vec<u8>, Value) {
    let mut header = TraceHeader::new(1_700_000_000_123_456_789, 5_000_000, 1_000_000_000);
    (header.pointer_size, header.process_id, header.processors) = (pointer_size, 4242, 6);
    let mut writer = Writer::new(&header);
    let mut tick = Metadata::new("Runtap-Writer", 1, "Tick");
    tick.fields = vec![Field::new("number", FieldType::U32), Field::new("text", FieldType::String)];
    let tick = writer.define_event(&tick).unwrap();
    let mut all = Metadata::new("Runtap-Writer-Other", 77, "AllKindsOfFields");
    (all.version, all.level, all.keywords, all.opcode) = (3, 5, 0xf000_0000_0001, Some(24));
    all.fields = vec![
        Field::new("flag", FieldType::Bool),
        Field::new("bytes", FieldType::Array(Box::new(FieldType::U8))),
        Field::new(
            "pair",
            FieldType::Object(vec![Field::new("a", FieldType::I64), Field::new("b", FieldType::Guid)]),
        ),
    ];
    let mut all_id = None;
    let mut output = Vec::new();
    for n in 0..9_000u32 {
        let turn = n / 100;
        let thread = u64::from(turn % 3);
        let mut payload = n.to_le_bytes().to_vec();
        payload.extend([b'x', 0].repeat(n as usize % 50));
        payload.extend([0, 0]);
        let stack: Vec<u64> = (0..u64::from(n % 120)).map(|i| 0x1000 + i * 16 + thread).collect();
        let event = EventToWrite {
            metadata_id: tick,
            thread_id: 100 + thread,
            capture_thread_id: 200 + thread,
            processor: n % 6,
            stack: &stack,
            timestamp: 6_000_000 + u64::from(n) * 100_000,
            payload: &payload,
            ..EventToWrite::default()
        };
        if n == 4_200 {
            writer.drop_events(event.capture_thread_id, 41);
        }
        writer.event(&event).unwrap();
        if n % 1_000 == 500 {
            let all_id = *all_id.get_or_insert_with(|| writer.define_event(&all).unwrap());
            let payload = [
                1, 0, 0, 0, 3, 0, 7, 8, 9, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                14, 15, 16,
            ];
            let activity_id = Some(Uuid::from_u128(u128::from(n)));
            writer
                .event(&EventToWrite {
                    metadata_id: all_id,
                    activity_id,
                    sequence: None,
                    payload: &payload,
                    ..event
                })
                .unwrap();
        }
        match n {
            1_234 => writer.flush(),
            3_000 | 7_777 => writer.sequence_point(event.timestamp + 50),
            8_999 => {
                let mut last = event;
                last.timestamp = 906_000_000;
                writer.event(&last).unwrap();
            }
            _ => {}
        }
        if n % 17 == 0 {
            output.extend(writer.take_output());
        }
    }
    output.extend(writer.finish());
    let count = |provider: &str, id: u32, version: u32, opcode: u8, name: &str, n: u32| json!({"provider": provider, "id": id, "version": version, "opcode": opcode, "name": name, "n": n});
    let counts = json!([
        count("Runtap-Writer", 1, 0, 0, "Tick", 9_001),
        count("Runtap-Writer-Other", 77, 3, 24, "AllKindsOfFields/24", 9),
    ]);
    (output, counts)
}

/// What TraceEvent counts in a stream; it also decodes every field of every event.
fn traceevent_counts(tebench: &Peer, stream: &[u8]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (trace, counts) = (folder.path().join("stream.nettrace"), folder.path().join("counts.json"));
    fs::write(&trace, stream).unwrap();
    let mut command = tebench.command();
    command.arg(&trace).args(["--mode", "dynamic", "--counts"]).arg(&counts);
    let output = run(command);
    assert!(output.expect_code(0).text().contains(", 0 failed"), "{output}");
    serde_json::from_slice(&fs::read(&counts).unwrap()).unwrap()
}
