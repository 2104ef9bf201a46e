//! The structure of a stream: every byte is accounted for, and the blocks are those that an independent reader found.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runtap_nettrace::inspect::{Block, Content, Inspect, Inspected};
use serde_json::json;

use crate::seen::Reading;
use crate::{common, golden, laws, netperf, v6};

fn inspect(stream: &[u8], chunk: usize) -> Vec<Inspected> {
    let mut inspect = Inspect::new();
    let mut found = Vec::new();
    for part in stream.chunks(chunk.max(1)).chain([&[][..]]) {
        if part.is_empty() {
            inspect.finish();
        }
        inspect.feed(part);
        while let Some(next) = inspect.next() {
            found.push(next);
        }
    }
    found
}

fn blocks(found: &[Inspected]) -> impl Iterator<Item = &Block> {
    found.iter().filter_map(|found| if let Inspected::Block(block) = found { Some(block) } else { None })
}

/// Events and definitions in all blocks.
fn count(found: &[Inspected]) -> (u64, u64) {
    blocks(found).fold((0, 0), |(events, definitions), block| match &block.content {
        Content::Events(content) => (events + content.events, definitions + content.definitions),
        Content::Metadata(metadata) => (events, definitions + metadata.count()),
        _ => (events, definitions),
    })
}

fn check(stream: &[u8], chunk: usize) {
    let found = inspect(stream, stream.len());
    assert_eq!(inspect(stream, chunk), found, "chunks of {chunk}");
    // Blocks follow each other with at most a tag and the first bytes between them.
    let mut end = 0;
    for block in blocks(&found) {
        assert!(block.offset >= end && block.offset - end <= 32, "{block:?} behind {end}");
        end = block.offset + block.header_bytes + block.size;
    }
    assert!(found.len() <= stream.len() + 1);
}

proptest! {
    #[test]
    fn any_stream_can_be_inspected(stream in laws::any_stream(), at: prop::sample::Index, bit in 0..8u8, chunk in 1..80usize) {
        check(&stream, chunk);
        let at = at.index(stream.len());
        check(&stream[..at], chunk);
        let mut damaged = stream;
        damaged[at] ^= 1 << bit;
        check(&damaged, chunk);
    }
}

#[test]
fn hand_made_streams() {
    let found = inspect(&golden::whole(), 10);
    let names: Vec<&str> = blocks(&found).map(|block| block.name.as_str()).collect();
    assert_eq!(names, ["Trace", "MetadataBlock", "StackBlock", "EventBlock", "SPBlock"]);
    assert_eq!(count(&found), (4, 1));
    let Some(Inspected::End { offset, end }) = found.last() else { panic!("{found:?}") };
    assert_eq!((*offset, *end), (golden::whole().len() as u64 - 1, golden::whole().len() as u64));
    let stacks = blocks(&found).nth(2).unwrap();
    assert_eq!(stacks.content, Content::Stacks { first_id: 1, count: 2 });

    let found = inspect(&v6::whole(), 10);
    let names: Vec<_> = blocks(&found).map(|block| (block.number.unwrap(), block.name.as_str())).collect();
    assert_eq!(names[..4], [(1, "Trace"), (3, "Metadata"), (200, "?"), (4, "SequencePoint")]);
    assert_eq!(count(&found), (8, 2));

    for version in [1, 2] {
        let found = inspect(&netperf::bare(version), 10);
        let names: Vec<&str> = blocks(&found).map(|block| block.name.as_str()).collect();
        assert_eq!(names, ["Microsoft.DotNet.Runtime.EventPipeFile", "events"]);
        assert_eq!(count(&found), (3, 2));
    }
}

#[test]
fn damage_and_truncation_are_reported() {
    let stream = golden::whole();
    let events_end = stream.windows(7).position(|bytes| bytes == b"SPBlock").unwrap() - 15 - 1;
    let found = inspect(&stream[..events_end - 1], 10);
    let last = blocks(&found).last().unwrap();
    assert_eq!((last.name.as_str(), last.is_truncated, &last.damage), ("EventBlock", true, &None));
    assert_eq!(count(&found), (3, 1));
    let mut damaged = stream.clone();
    let stack = stream.windows(10).position(|bytes| bytes == b"StackBlock").unwrap();
    // The length of the first stack.
    damaged[stack + 26] = 0xff;
    let found = inspect(&damaged, 10);
    let block = blocks(&found).nth(2).unwrap();
    assert_eq!(block.content, Content::Stacks { first_id: 1, count: 0 });
    assert_eq!(block.damage.as_ref().unwrap().field, "stack");
    damaged = stream;
    damaged[stack - 15] = 9;
    let Some(Inspected::Damage { offset, .. }) = inspect(&damaged, 10).pop() else { panic!() };
    assert_eq!(offset, stack as u64 - 15);
}

#[test]
fn recordings_have_the_blocks_of_another_reader() {
    for recording in common::recordings() {
        let (name, expected) = (recording.path.display(), &recording.expected);
        let found = inspect(&recording.bytes, 1 << 16);
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for block in blocks(&found) {
            let kind = block.number.map_or_else(|| block.name.clone(), |number| number.to_string());
            *kinds.entry(kind).or_default() += 1;
            assert_eq!((&block.damage, block.is_truncated), (&None, false), "{name}");
            if let Content::Events(events) = &block.content {
                // One-collect writes other times.
                assert!(
                    recording.version() == 6
                        || events.stated_times.is_none()
                        || events.stated_times == events.times
                        || events.events == 0,
                    "{name}"
                );
            }
        }
        if recording.version() == 6 && matches!(found.last(), Some(Inspected::End { .. })) {
            kinds.insert("0".to_owned(), 1);
        }
        assert_eq!(json!(kinds), expected["blocks"], "{name}");
        let (events, definitions) = count(&found);
        assert_eq!(
            (json!(events), json!(definitions)),
            (expected["events"].clone(), expected["metadata"].clone()),
            "{name}"
        );
        let reading = Reading::of(&recording.bytes, 1 << 20);
        assert_eq!(matches!(found.last(), Some(Inspected::End { .. })), reading.complete, "{name}");
    }
}
