//! Reading a stream in parts gives equal items, losses, counts and damage, however small the parts.

use proptest::prelude::*;
use runtap_nettrace::{Error, Reader, Scan, StreamItem};

use crate::seen::{Reading, Seen, seen};
use crate::{common, golden, laws, netperf, v6};

/// Reads a stream in parts of at least `size` bytes and joins the results.
fn in_parts(stream: &[u8], size: u64) -> (Reading, usize) {
    let mut items = Vec::new();
    let mut whole: Option<Reader> = None;
    let parts = Scan::of(stream, size);
    for part in &parts {
        let mut reader = part.reader();
        for range in part.feed_ranges() {
            reader.seek(range.start);
            let mut these = Vec::new();
            let bytes = &stream[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            let mut pending = reader.items(bytes);
            while let Err(error) = pending.for_each(|item| these.push(seen(item))) {
                these.push(Seen::Error(error));
            }
            drop(pending);
            if range == part.range() {
                items.append(&mut these);
            } else {
                // Damage in a block of another part is reported there.
                these.retain(|item| !matches!(item, Seen::Error(_)));
                assert_eq!(these, [], "definitions are no items");
            }
        }
        reader.finish();
        while let item @ (Ok(Some(_)) | Err(_)) = reader.next() {
            items.push(item.map_or_else(Seen::Error, |item| seen(item.unwrap())));
        }
        match &mut whole {
            None => whole = Some(reader),
            Some(whole) => whole.join(reader),
        }
    }
    (Reading::end(&whole.unwrap(), items), parts.len())
}

fn check(stream: &[u8], sizes: &[u64], what: &str) -> usize {
    let whole = Reading::of(stream, stream.len());
    let mut most = 0;
    for size in sizes {
        let (parts, n) = in_parts(stream, *size);
        assert_eq!(parts, whole, "{what} in parts of {size} bytes");
        most = most.max(n);
    }
    most
}

proptest! {
    #[test]
    fn parts_do_not_matter(stream in laws::any_stream(), size in 1..500u64) {
        check(&stream, &[1, size], "a stream");
    }

    #[test]
    fn parts_of_damaged_streams_do_not_matter(
        stream in laws::any_version(),
        at: prop::sample::Index,
        bit in 0..8u8,
        size in 1..500u64,
    ) {
        let mut damaged = stream;
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        check(&damaged, &[1, size], "a damaged stream");
        check(&damaged[..at], &[1, size], "a cut stream");
    }
}

#[test]
fn hand_made_streams_in_parts() {
    assert!(check(&golden::whole(), &[1, 50, 1000], "version 4") >= 4);
    assert!(check(&v6::whole(), &[1, 50, 1000], "version 6") >= 10);
    for stream in [netperf::bare(1), netperf::bare(2), netperf::version_3()] {
        assert_eq!(check(&stream, &[1, 50], "NetPerf"), 1, "one part");
    }
    check(b"", &[1], "nothing");
    check(b"Nettrace", &[1], "a beginning");
    check(b"no trace", &[1], "something else");
}

#[test]
fn recordings_in_parts() {
    let mut most = 0;
    for recording in common::recordings() {
        if recording.bytes.len() < 3_000_000 {
            let n = check(&recording.bytes, &[1, 100_000], &recording.path.display().to_string());
            most = most.max(n);
        }
    }
    assert!(common::recordings().is_empty() || most > 50, "{most} parts");
}

/// No two parts have an epoch of stacks in common: epoch and id identify a stack over all parts.
#[test]
fn epochs_differ_between_parts() {
    let stream = golden::whole();
    let mut epochs = Vec::new();
    for part in Scan::of(&stream, 1) {
        let mut reader = part.reader();
        for range in part.feed_ranges() {
            reader.seek(range.start);
            let bytes = &stream[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            let mut seen = None;
            let see = |item: StreamItem<'_>| {
                if let StreamItem::Event(event) = item {
                    seen = Some(event.stack.epoch());
                }
            };
            let read: Result<(), Error> = reader.items(bytes).for_each(see);
            read.unwrap();
            epochs.extend(seen);
        }
    }
    let mut distinct = epochs.clone();
    distinct.dedup();
    assert_eq!((epochs.len(), distinct.len()), (1, 1));
}
