//! Microsoft's TraceEvent reads the writer's output: equal events, losses and header.

use std::fs;

use runtap_nettrace::{
    EventToWrite, Field, FieldType, Label, LabelNumber, Metadata, Thread, TraceHeader, Uuid, Version, Writer,
};
use runtap_testkit::{Peer, Recording, require, run};
use serde_json::{Value, json};

use crate::common;
use crate::rewrite::rewrite;
use crate::seen::Reading;

#[test]
fn real_traceevent_reads_what_is_written() {
    let peer = require!(Peer::available("tebench"));
    let versions = [(Version::Nettrace4, 41), (Version::NetPerf3, 0)];
    for (pointer_size, (version, lost)) in [4, 8].into_iter().flat_map(|size| versions.map(|v| (size, v))) {
        let (stream, counts) = stream(pointer_size, version);
        let ours = Reading::of(&stream, 4096);
        assert_eq!((ours.errors().len(), ours.events().len(), ours.lost), (0, 9010, lost), "{version:?}");
        let answer = traceevent_counts(&peer, &stream);
        assert_eq!(answer["error"], Value::Null, "{answer}");
        assert_eq!(answer["events"], 9010, "{answer}");
        assert_eq!(answer["events_lost"], lost, "{answer}");
        assert_eq!(answer["pointer_size"], pointer_size);
        assert_eq!(answer["processors"], 6);
        assert_eq!(answer["session_start_utc"], "2023-11-14T22:13:20.1230000Z");
        let times = [&answer["first_event_ms"], &answer["last_event_ms"]].map(Value::as_f64);
        assert_eq!(times, [Some(1.0), Some(901.0)]);
        assert_eq!(answer["counts"], counts);
    }
}

/// 9,000 ticks of three threads that alternate every hundred, ten events with all kinds of fields, three sequence points;
/// and the counts that TraceEvent should report.
fn stream(pointer_size: u32, version: Version) -> (Vec<u8>, Value) {
    let mut header = TraceHeader::new(1_700_000_000_123_456_789, 5_000_000, 1_000_000_000);
    (header.pointer_size, header.process_id, header.processors) = (pointer_size, 4242, 6);
    let mut writer = Writer::with_version(&header, version);
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

/// Returns TraceEvent's counts of a stream; TraceEvent also decodes every field of every event.
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

/// Recordings with samples, method names, arrays among the fields, and events of many threads.
fn recordings() -> Vec<&'static Recording> {
    named(&["only_managed_samples", "cpu-spin.", "arraytypes", "net9/web", "runtime-net10-loaded"])
}

/// Recordings with CPU samples.
fn sampled() -> Vec<&'static Recording> {
    named(&["only_managed_samples", "cpu-spin."])
}

fn named(names: &[&str]) -> Vec<&'static Recording> {
    let is_one =
        |recording: &&Recording| names.iter().any(|name| recording.path.to_string_lossy().contains(name));
    let found: Vec<_> = common::recordings().iter().filter(is_one).collect();
    assert!(common::recordings().is_empty() || found.len() == names.len());
    found
}

/// TraceEvent finds equal counts, losses and times in a copy and in the original.
#[test]
fn real_traceevent_counts_in_copies_what_it_counts_in_the_original() {
    let peer = require!(Peer::available("tebench"));
    for recording in recordings() {
        let original = traceevent_counts(&peer, &recording.bytes);
        for version in [Version::Nettrace4, Version::Nettrace6] {
            let copy = rewrite(&recording.bytes, version).unwrap();
            let counted = traceevent_counts(&peer, &copy.stream);
            let what = format!("{version:?} of {}", recording.path.display());
            assert_eq!(counted["error"], Value::Null, "{what}");
            for key in ["events", "events_lost", "pointer_size", "session_start_utc", "counts"] {
                assert_eq!(counted[key], original[key], "{key} of {what}");
            }
            for key in ["first_event_ms", "last_event_ms"] {
                assert_eq!(counted[key], original[key], "{key} of {what}");
            }
        }
    }
}

/// TraceEvent also finds as many stacks, of equal depth and with as many names.
#[test]
fn real_traceevent_finds_the_stacks_of_the_original_in_copies() {
    let peer = require!(Peer::available("tebench"));
    let stacks = |stream: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("stream.nettrace");
        fs::write(&trace, stream).unwrap();
        let mut command = peer.command();
        command.arg(&trace).args(["--mode", "tracelog"]);
        let output = run(command);
        let answer: Value = serde_json::from_str(output.expect_code(0).text()).unwrap();
        assert_eq!(answer["error"], Value::Null);
        (answer["events"].as_u64().unwrap(), answer["detail"].as_str().unwrap().to_owned())
    };
    for recording in sampled() {
        let original = stacks(&recording.bytes);
        assert!(!original.1.starts_with("0 stacks"), "{original:?}");
        for version in [Version::Nettrace4, Version::Nettrace6] {
            let copy = rewrite(&recording.bytes, version).unwrap();
            assert_eq!(stacks(&copy.stream), original, "{version:?} of {}", recording.path.display());
        }
    }
}

/// dotnet-trace converts a copy to a profile that is equal to that of the original.
#[test]
fn real_dotnet_trace_converts_copies_as_the_original() {
    let peer = require!(Peer::available("dotnet-trace"));
    let convert = |stream: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("stream.nettrace");
        fs::write(&trace, stream).unwrap();
        let mut command = peer.command();
        command.arg("convert").arg(&trace).args(["--format", "Speedscope"]);
        run(command).expect_code(0);
        let profile = fs::read(folder.path().join("stream.speedscope.json")).unwrap();
        serde_json::from_slice::<Value>(&profile).unwrap()
    };
    for recording in sampled() {
        let original = convert(&recording.bytes);
        let events: usize = original["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|profile| profile["events"].as_array().unwrap().len())
            .sum();
        assert!(events > 100, "{events} events");
        for version in [Version::Nettrace4, Version::Nettrace6] {
            let copy = rewrite(&recording.bytes, version).unwrap();
            let converted = convert(&copy.stream);
            for key in ["shared", "profiles"] {
                assert!(
                    converted[key] == original[key],
                    "{key}: {version:?} of {}",
                    recording.path.display()
                );
            }
        }
    }
}

/// TraceEvent reads labels, threads of several processes and complete definitions.
#[test]
fn real_traceevent_reads_all_of_version_6() {
    let peer = require!(Peer::available("tebench"));
    let mut header = TraceHeader::new(1_700_000_000_123_000_000, 1_000, 1_000_000);
    (header.process_id, header.processors) = (4242, 6);
    let mut writer = Writer::with_version(&header, Version::Nettrace6);
    let mut metadata = Metadata::new("Runtap-Six", 5, "Everything");
    metadata.description = Some("what it means".into());
    metadata.message_template = Some("{small} of {text}".into());
    metadata.attributes = vec![("key".into(), "value".into())];
    metadata.provider_guid = Some(Uuid::from_u128(77));
    (metadata.keywords, metadata.version, metadata.opcode) = (0xf0, 2, Some(12));
    let unit = || Box::new(FieldType::Utf8Unit);
    metadata.fields = vec![
        Field::new("small", FieldType::VarInt),
        Field::new("large", FieldType::VarUInt),
        Field::new("text", FieldType::Array(unit())),
        Field::new("fixed", FieldType::FixedArray(Box::new(FieldType::U16), 2)),
        Field::new("relative", FieldType::RelLoc(unit())),
        Field::new("absolute", FieldType::DataLoc(unit())),
    ];
    let id = writer.define_event(&metadata).unwrap();
    // -1, 300, "abc", [1, 2], 2 bytes at 4 after the field, 1 byte at 20.
    let payload = [1, 0xac, 2, 3, 0, b'a', b'b', b'c', 1, 0, 2, 0, 4, 0, 2, 0, 20, 0, 1, 0, b'x', b'y', b'z'];
    let mut thread = Thread::new(70);
    (thread.process_id, thread.thread_id, thread.name) = (Some(9), Some(10), Some("worker".into()));
    writer.define_thread(&thread).unwrap();
    let labels = [
        Label::TraceId(*b"0123456789abcdef"),
        Label::SpanId(5),
        Label::Text("k".into(), "v".into()),
        Label::Number("n".into(), LabelNumber::new(-5)),
        Label::Level(3),
        Label::Version(9),
    ];
    for n in 0..100 {
        let event = EventToWrite {
            metadata_id: id,
            // TraceEvent 4.0 rejects an index that is used again after its removal.
            thread_id: if n % 2 == 0 && n <= 80 { 70 } else { 71 },
            capture_thread_id: 71,
            timestamp: 1_000 + n,
            activity_id: (n % 3 == 0).then_some(Uuid::from_u128(n.into())),
            labels: if n % 5 == 0 { &labels } else { &[] },
            payload: &payload,
            ..EventToWrite::default()
        };
        writer.event(&event).unwrap();
        match n {
            30 => writer.sequence_point(1_000 + n),
            60 => writer.drop_events(71, 7),
            80 => writer.remove_thread(70).unwrap(),
            _ => {}
        }
    }
    let stream = writer.finish();
    assert_eq!(Reading::of(&stream, 1000).events().len(), 100);
    let answer = traceevent_counts(&peer, &stream);
    assert_eq!(answer["error"], Value::Null, "{answer}");
    assert_eq!((&answer["events"], &answer["events_lost"]), (&json!(100), &json!(7)), "{answer}");
    let versions: Vec<_> = answer["counts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| (count["version"].as_u64().unwrap(), count["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(versions, [(2, 80), (9, 20)], "{answer}");
}
