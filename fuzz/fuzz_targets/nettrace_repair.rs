//! Any bytes through the repair of a stream: no panic, the size of the chunks (first byte) does not matter, and what comes
//! out is whole, has every event that could be read, and needs no repair.
#![no_main]

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use runtap_fuzz::digest_content;
use runtap_nettrace::{Item, Reader, Repair, Repaired};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let (output, repaired) = repair(stream, usize::from(*chunk));
    assert_eq!(repair(stream, stream.len()), (output.clone(), repaired.clone()));
    if output.is_empty() {
        return;
    }
    assert!(output.len() <= stream.len() + 64, "it adds an end, not more");
    let events = read(stream);
    let kept = read(&output).expect("it has a header");
    assert!(kept.1, "{repaired:?}");
    // What stands in front of the header ends a reading, and is left out by a repair.
    if let Some(events) = events {
        assert_eq!(kept.0, events.0);
    }
    let (again, second) = repair(&output, output.len());
    assert!(again == output && !second.has_changed(), "{second:?}");
});

fn repair(stream: &[u8], chunk: usize) -> (Vec<u8>, Repaired) {
    let (mut repair, mut output) = (Repair::new(), Vec::new());
    for part in stream.chunks(chunk.max(1)) {
        repair.feed(part);
        output.extend(repair.take_output());
    }
    let (rest, repaired) = repair.finish();
    output.extend(rest);
    (output, repaired)
}

/// The events, and whether the stream is whole; `None` without a header.
fn read(stream: &[u8]) -> Option<(Vec<u64>, bool)> {
    let (mut reader, mut events) = (Reader::new(), Vec::new());
    let mut items = reader.items(stream);
    let mut visit = |item: Item<'_>| {
        if let Item::Event(event) = item {
            let mut hasher = DefaultHasher::new();
            digest_content(&event, &mut hasher);
            events.push(hasher.finish());
        }
    };
    while items.for_each(&mut visit).is_err() {}
    drop(items);
    reader.finish();
    let mut items = reader.items(&[]);
    while items.for_each(&mut visit).is_err() {}
    drop(items);
    reader.header().map(|_| (events, reader.is_complete() && reader.partial().is_none()))
}
