//! Real recordings, compared with results of other tools: event counts, and the samples of a program whose call tree is known.

use std::collections::BTreeMap;

use runtap_clr::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::{Observe, Reader, StreamItem};
use runtap_testkit::{Skip, recordings, require, shared_data};
use serde_json::{Value, json};

/// A recording for which TraceEvent or the program itself provides the results, by its name without extension.
fn recording(name: &str) -> Result<(Vec<u8>, Value), Skip> {
    let answers = shared_data(format!("nettrace/{name}.json"))?;
    Ok((shared_data(format!("nettrace/{name}.nettrace.zst"))?, serde_json::from_slice(&answers).unwrap()))
}

fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    for chunk in bytes.chunks(100_000) {
        reader.feed(chunk);
        while let Some(item) = reader.next().unwrap() {
            visit(&item);
        }
    }
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        visit(&item);
    }
}

fn profile(bytes: &[u8]) -> Trace {
    let mut builder = ProfileBuilder::new();
    read(bytes, |item| builder.item(item));
    assert_eq!(builder.malformed(), 0);
    builder.finish(&ProfileOptions::default())
}

/// The samples in which a frame is on the stack, by the frame's name without arguments.
fn inclusive(trace: &Trace, tid: u64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let (_, thread) = trace.threads().find(|(_, thread)| thread.tid() == tid).unwrap();
    for sample in thread.samples(View::ThreadTime) {
        let mut names: Vec<&str> = sample.stack.map_or_else(Vec::new, |stack| {
            trace
                .stacks()
                .frames(stack)
                .map(|frame| trace.frame(frame).name.split('(').next().unwrap())
                .collect()
        });
        names.sort_unstable();
        names.dedup();
        for name in names {
            *counts.entry(name.to_owned()).or_default() += u64::from(sample.ticks);
        }
    }
    counts
}

#[test]
fn samples_of_a_known_program_are_named_and_counted() {
    let (bytes, expected) = require!(recording("net10/cpu-spin"));
    let trace = profile(&bytes);
    assert_eq!(trace.process().name.as_deref(), Some("spin"));
    assert_eq!(trace.ticks(View::ThreadTime), expected["samples"]["total"].as_u64().unwrap());
    assert_eq!(trace.ticks(View::Cpu), expected["samples"]["by_kind"]["2"].as_u64().unwrap());
    let threads = expected["samples"]["threads"].as_array().unwrap();
    assert!(threads.len() >= 4);
    for thread in threads {
        let counts = inclusive(&trace, thread["thread"].as_u64().unwrap());
        for row in thread["top_inclusive"].as_array().unwrap() {
            let (name, n) = (row[0].as_str().unwrap(), row[1].as_u64().unwrap());
            assert_eq!(counts.get(name), Some(&n), "{name} of thread {}", thread["thread"]);
        }
    }
}

#[test]
fn every_managed_frame_is_named_if_there_is_a_rundown() {
    for name in ["net10/cpu-spin", "net9/cpu-async-stacks"] {
        let trace = profile(&require!(recording(name)).0);
        let totals = runtap_model::FrameTotals::new(&trace, View::ThreadTime, None);
        let (mut named, mut all) = (0, 0);
        for (handle, frame) in trace.all_frames() {
            all += totals.total_weight(handle);
            if !frame.name.starts_with("0x") && frame.module.is_some() {
                named += totals.total_weight(handle);
            }
        }
        assert!(all > 0 && named * 1000 >= all * 995, "{name}: {named} of {all}");
    }
}

#[test]
fn counts_equal_those_of_other_readers() {
    let mut checked = 0;
    for recording in require!(recordings()) {
        let (path, expected) = (recording.path.display(), &recording.expected);
        let mut counts = EventCounts::new();
        read(&recording.bytes, |item| match item {
            StreamItem::Event(event) => counts.add(event),
            StreamItem::Metadata(metadata) => counts.redefined(metadata.id),
            _ => {}
        });
        assert_eq!(counts.total(), expected["events"].as_u64().unwrap(), "{path}");
        // Other tools have only the names in the stream, not those of the runtime's native events.
        let of_stream =
            |name: &str| expected["counts"].as_array().unwrap().iter().any(|row| row["name"] == name);
        let rows: Vec<Value> = counts
            .rows()
            .into_iter()
            .map(|row| {
                let name = if of_stream(&row.name) { row.name.as_str() } else { "" };
                json!({"provider": row.provider, "id": row.id, "version": row.version, "name": name, "n": row.n})
            })
            .collect();
        let mut wanted = expected["counts"].as_array().unwrap().clone();
        wanted.sort_by_key(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("provider"), row["id"].as_u64(), row["version"].as_u64(), text("name"))
        });
        assert_eq!(rows, wanted, "{path}");
        checked += 1;
    }
    assert!(checked >= 20, "only {checked} recordings were found");
}
