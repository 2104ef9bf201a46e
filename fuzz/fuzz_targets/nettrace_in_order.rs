//! Any bytes as input of the reader that sorts events by time: no panic, the chunk size (first byte; its lowest bit
//! selects the memory limit) does not matter, and the events are those of the plain reader.
#![no_main]

use runtap_fuzz::digest;
use runtap_nettrace::{Event, InOrder, Limits, Reader, StreamItem};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, stream)) = input.split_first() else { return };
    let (chunk, most) = (usize::from(first >> 1), if first & 1 == 0 { usize::MAX } else { 300 });
    let (items, mut events, end) = in_order(stream, stream.len(), most);
    assert_eq!(in_order(stream, chunk, most), (items, events.clone(), end.clone()));
    events.sort_unstable();
    let (mut plain, its_end) = plain(stream);
    plain.sort_unstable();
    assert_eq!(events, plain);
    assert_eq!(end, its_end);
});

/// The parts of an event that do not refer to others.
type Own = (u64, u32, u32, u32, Vec<u8>);

fn own(event: &Event<'_>) -> Own {
    (event.timestamp, event.sequence, event.metadata_id, event.stack_id, event.payload.to_vec())
}

fn in_order(stream: &[u8], chunk: usize, most: usize) -> (Vec<u64>, Vec<Own>, String) {
    let mut limits = Limits::default();
    limits.max_held_back = most;
    let (mut reader, mut items, mut events) = (InOrder::with_limits(limits), Vec::new(), Vec::new());
    for part in stream.chunks(chunk.max(1)).chain([&[][..]]) {
        if part.is_empty() {
            reader.finish();
        } else {
            reader.feed(part);
        }
        loop {
            match reader.next() {
                Ok(None) => break,
                Ok(Some(item)) => {
                    if let StreamItem::Event(event) = &item {
                        events.push(own(event));
                    }
                    items.push(digest(&item));
                }
                Err(_) => items.push(0),
            }
        }
    }
    (items, events, format!("{:?} {:?} {}", reader.partial(), reader.counts(), reader.lost()))
}

fn plain(stream: &[u8]) -> (Vec<Own>, String) {
    let (mut reader, mut events) = (Reader::new(), Vec::new());
    for part in [stream, &[]] {
        if part.is_empty() {
            reader.finish();
        }
        let mut items = reader.items(part);
        let mut visit = |item: StreamItem<'_>| {
            if let StreamItem::Event(event) = item {
                events.push(own(&event));
            }
        };
        while items.for_each(&mut visit).is_err() {}
    }
    (events, format!("{:?} {:?} {}", reader.partial(), reader.counts(), reader.lost()))
}
