//! Any bytes as a stream to be repaired: no panic, the chunk size (first byte) does not matter, and the output is
//! complete, has every readable event, and needs no repair.
#![no_main]

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use runtap_fuzz::digest_content;
use runtap_nettrace::{Error, Reader, Repair, Repaired, StreamItem};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let (output, repaired) = repair(stream, usize::from(*chunk));
    assert_eq!(repair(stream, stream.len()), (output.clone(), repaired.clone()));
    if output.is_empty() {
        return;
    }
    let gaps = usize::try_from(repaired.skipped_places).unwrap_or(usize::MAX);
    assert!(
        output.len() <= stream.len() + 64 * (gaps + 1),
        "it adds a start, an end, and a sequence point for each gap"
    );
    let (events, before) = read(stream);
    let (kept, after) = read(&output);
    assert_eq!(after, End::Whole, "{repaired:?}");
    match before {
        // If damage ends a reading, a repair keeps fewer events before it, where the start of a block is unknown, and
        // more after it.
        _ if repaired.bytes_skipped > 0 || repaired.start_added => {}
        // A misplaced header ends a reading; a repair omits the header, and the following events can be read.
        End::Header => assert!(kept.starts_with(&events)),
        // Definitions are named by their offsets, so no bytes can be omitted while keeping the following ones.
        End::Oldest => assert!(events.starts_with(&kept)),
        End::Whole | End::Partial => assert_eq!(kept, events),
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

#[derive(Debug, PartialEq)]
enum End {
    Whole,
    Partial,
    Header,
    Oldest,
}

/// Returns the events, and how they end.
fn read(stream: &[u8]) -> (Vec<u64>, End) {
    let (mut reader, mut events, mut header) = (Reader::new(), Vec::new(), false);
    for part in [stream, &[]] {
        if part.is_empty() {
            reader.finish();
        }
        let mut items = reader.items(part);
        let mut visit = |item: StreamItem<'_>| {
            if let StreamItem::Event(event) = item {
                let mut hasher = DefaultHasher::new();
                digest_content(&event, &mut hasher);
                events.push(hasher.finish());
            }
        };
        while let Err(error) = items.for_each(&mut visit) {
            header |= matches!(error, Error::Decode(error) if error.field == "Trace object");
        }
    }
    let end = match reader.partial() {
        _ if header || reader.header().is_none() => End::Header,
        Some(_) if reader.header().is_some_and(|header| header.version < 3) => End::Oldest,
        None if reader.is_complete() => End::Whole,
        _ => End::Partial,
    };
    (events, end)
}
