//! Real recordings of .NET 3.0 to 10 yield the numbers that an independent reader found in them.

use std::collections::BTreeMap;

use runtap_nettrace::{Reader, StreamItem};
use runtap_testkit::Recording;
use serde_json::{Value, json};

use crate::common;

#[test]
fn every_recording_gives_its_expected_answer() {
    let mut versions = BTreeMap::new();
    for recording in common::recordings() {
        check(recording);
        *versions.entry(recording.version()).or_insert(0) += 1;
    }
    let enough = BTreeMap::from([(3, 4), (4, 30), (6, 1)]);
    let fewer = |(version, n): (&u64, &i32)| versions.get(version).is_none_or(|read| read < n);
    assert!(common::recordings().is_empty() || !enough.iter().any(fewer), "only {versions:?}");
}

fn check(recording: &Recording) {
    let name = recording.path.display();
    let expected = &recording.expected;
    let mut reader = Reader::new();
    let mut counts: BTreeMap<(String, u32, u32, String), u64> = BTreeMap::new();
    let (mut events, mut definitions, mut points, mut sorted, mut payload, mut max_payload) =
        (0, 0, 0, 0, 0, 0);
    let mut times = (u64::MAX, 0);
    let mut without_stack = 0;
    common::read(&mut reader, &recording.bytes, 50_000, |item| match item.unwrap() {
        StreamItem::Event(event) => {
            let metadata = event.metadata.unwrap();
            assert_eq!(metadata.id, event.metadata_id);
            let key = (metadata.provider.clone(), metadata.event_id, metadata.version, metadata.name.clone());
            *counts.entry(key).or_default() += 1;
            events += 1;
            sorted += u64::from(event.sorted);
            payload += event.payload.len();
            max_payload = max_payload.max(event.payload.len());
            times = (times.0.min(event.timestamp), times.1.max(event.timestamp));
            // In Nettrace 6 the id 0 means no id.
            without_stack += u64::from(event.stack.defined_bytes().is_none() && event.stack_id != 0);
        }
        StreamItem::Metadata(_) => definitions += 1,
        StreamItem::SequencePoint(_) => points += 1,
        _ => {}
    });

    let header = reader.header().unwrap();
    assert_eq!(json!(header.pointer_size), expected["pointer_size"], "{name}");
    let process_id = json!((header.process_id != 0).then_some(header.process_id));
    assert_eq!(process_id, expected["process_id"], "{name}");
    assert_eq!(json!(header.version), expected["version"], "{name}");
    assert_eq!(json!(header.qpc_frequency), expected["qpc_freq"], "{name}");
    assert_eq!(json!(header.sync_qpc), expected["sync_qpc"], "{name}");
    assert_eq!(json!(header.sync_systemtime), expected["sync_systemtime"], "{name}");
    assert!(header.sync_time.is_some(), "{name}");

    assert_eq!(json!(events), expected["events"], "{name}");
    assert_eq!(json!(definitions), expected["metadata"], "{name}");
    assert_eq!(json!(points), expected["sequence_points"], "{name}");
    // NetPerf has no such flag: all of its events are in order.
    let sorted_of_netperf = expected["events"].clone();
    let expected_sorted = if header.version < 4 { &sorted_of_netperf } else { &expected["sorted_events"] };
    assert_eq!(json!(sorted), *expected_sorted, "{name}");
    assert_eq!(json!(payload), expected["payload_bytes"], "{name}");
    assert_eq!(json!(max_payload), expected["max_payload"], "{name}");
    if events > 0 {
        assert_eq!(json!([times.0, times.1]), json!([expected["ts_min"], expected["ts_max"]]), "{name}");
    }
    assert_eq!(json!(reader.lost()), expected["dropped_by_seq_gap"], "{name}");
    let found: Vec<Value> = counts
        .into_iter()
        .map(|((provider, id, version, name), n)| {
            json!({"provider": provider, "id": id, "version": version, "name": name, "n": n})
        })
        .collect();
    let mut wanted = expected["counts"].as_array().unwrap().clone();
    let key = |count: &Value| {
        (
            count["provider"].as_str().unwrap().to_owned(),
            count["id"].as_u64(),
            count["version"].as_u64(),
            count["name"].to_string(),
        )
    };
    wanted.sort_by_key(key);
    assert_eq!(found, wanted, "{name}");

    let odd = reader.counts();
    assert_eq!(json!(odd.stacks), expected["stacks"], "{name}");
    assert_eq!(
        without_stack, 0,
        "{name}: every stack id is defined, if stacks are cleared at the right moment"
    );
    assert_eq!((odd.unknown_objects, odd.redefined_metadata, odd.damaged_metadata), (0, 0, 0), "{name}");
    assert_eq!((odd.events_without_metadata, odd.trailing_bytes), (0, 0), "{name}");
    assert_eq!(json!(reader.is_complete()), expected["end_marker"], "{name}");
    assert_eq!(reader.partial().is_none(), reader.is_complete(), "{name}");
    assert_eq!(reader.offset(), recording.bytes.len() as u64, "{name}");
}
