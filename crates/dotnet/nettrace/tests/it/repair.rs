//! A stream that was truncated anywhere is repaired: the result is complete, and has everything that could be read.

use std::fs;

use proptest::prelude::*;
use runtap_nettrace::{PartialReason, Repair, Repaired};
use runtap_testkit::{Peer, Recording, require, run};
use serde_json::Value;

use crate::bytes::{blobs, definition, object, record, start};
use crate::damage::Random;
use crate::golden::uncompressed;
use crate::seen::{Reading, Seen};
use crate::{common, golden, laws, netperf, v6};

fn repair(stream: &[u8], chunk: usize) -> (Vec<u8>, Repaired) {
    let mut repair = Repair::new();
    let mut output = Vec::new();
    for part in stream.chunks(chunk.max(1)) {
        repair.feed(part);
        output.extend(repair.take_output());
    }
    let (rest, repaired) = repair.finish();
    output.extend(rest);
    assert_eq!(repaired.bytes_read, stream.len() as u64);
    assert_eq!(repaired.bytes_written, output.len() as u64);
    (output, repaired)
}

/// Checks that the repaired stream has all events of the first reading, and is complete.
fn check(stream: &[u8], chunk: usize) {
    let before = Reading::of(stream, stream.len());
    let (output, repaired) = repair(stream, chunk);
    assert_eq!(repair(stream, stream.len()), (output.clone(), repaired.clone()), "chunks do not matter");
    if !matches!(before.items.first(), Some(Seen::Header(_))) {
        assert_eq!(output, [0; 0], "nothing can be made of it");
        return;
    }
    let after = Reading::of(&output, output.len());
    assert!(after.complete && after.partial.is_none(), "{:?} {:?}", repaired, after.partial);
    assert_eq!(after.counts.unknown_objects, 0);
    let events = |reading: &Reading| -> Vec<_> { reading.events().into_iter().cloned().collect() };
    let definitions = |reading: &Reading| -> Vec<_> { reading.metadata().into_iter().cloned().collect() };
    assert_eq!(events(&after), events(&before), "{repaired:?}");
    // A reader does not wait for the definitions in a truncated block.
    assert!(definitions(&after).starts_with(&definitions(&before)));
    if !repaired.has_changed() {
        assert_eq!(output, stream[..output.len()], "a whole stream stays as it is");
        assert!(before.partial.is_none());
    }
    let (again, second) = repair(&output, chunk);
    assert_eq!(again, output, "there is nothing left to repair");
    assert!(!second.has_changed(), "{second:?}");
}

/// Truncates the stream at every `step` bytes.
fn check_cuts(stream: &[u8], step: usize) {
    check(stream, 100);
    for n in (0..stream.len()).step_by(step) {
        check(&stream[..n], 64);
    }
}

#[test]
fn hand_made_streams_cut_at_every_byte() {
    for stream in [golden::whole(), v6::whole(), netperf::version_3(), netperf::bare(1), netperf::bare(2)] {
        check_cuts(&stream, 1);
    }
}

/// Flips every bit of every hand-made stream.
#[test]
fn flipped_bits_are_repaired() {
    for stream in [golden::whole(), v6::whole(), netperf::version_3(), netperf::bare(1), netperf::bare(2)] {
        for at in 0..stream.len() * 8 {
            let mut damaged = stream.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            let (output, _) = repair(&damaged, 1000);
            if !output.is_empty() {
                let after = Reading::of(&output, 1000);
                assert!(after.complete && after.partial.is_none(), "bit {at}: {:?}", after.partial);
            }
        }
    }
}

/// A repaired definition still describes its events. If none is lost, an event without a definition ends its
/// block.
#[test]
fn repaired_definitions_are_not_lost() {
    let mut cut = record(1, "P", 1, "Cut");
    cut.u32(2).u32(9).utf16z("n");
    for (lost, events) in [(false, 1), (true, 2)] {
        let mut definitions = definition(cut.as_bytes());
        if lost {
            definitions.extend(definition(&cut.as_bytes()[..6]));
        }
        let mut stream = start(8);
        object(&mut stream, "MetadataBlock", &blobs(true, &definitions));
        let ids = [1, 9, 1].map(|id| uncompressed(id, 1, b"abc", 1, true));
        object(&mut stream, "EventBlock", &blobs(false, &ids.concat()));
        stream.push(1);
        check(&stream, 50);
        assert_eq!(Reading::of(&stream, 50).events().len(), events);
    }
}

/// A reading ends at a header at the wrong place. A repair removes the header, and the data after it can be read.
#[test]
fn headers_at_the_wrong_place_are_left_out() {
    let whole = v6::whole();
    let (magic, blocks) = whole.split_at(20);
    let header = &v6::start()[20..];
    let mut early = Vec::new();
    v6::block(&mut early, 4, &v6::point(1, 0, &[]));
    for stream in [[magic, &early, blocks].concat(), [magic, header, blocks].concat()] {
        let before = Reading::of(&stream, 1000);
        assert_eq!((before.events().len(), before.errors().len()), (0, 1));
        let (output, repaired) = repair(&stream, 7);
        assert!(repaired.has_changed());
        let after = Reading::of(&output, 1000);
        assert!(after.complete && after.partial.is_none(), "{:?}", after.partial);
        assert_eq!(after.events(), Reading::of(&whole, 1000).events());
    }
}

#[test]
fn recordings_cut_somewhere() {
    for recording in common::recordings() {
        let bytes = &recording.bytes;
        if bytes.len() < 100_000 {
            check_cuts(bytes, 997);
        } else if bytes.len() < 3_000_000 {
            check_cuts(bytes, bytes.len() / 3 - 5);
        }
    }
}

#[test]
fn the_summary_describes_the_repair() {
    let stream = golden::whole();
    let (output, repaired) = repair(&stream, 10);
    assert_eq!((output, repaired.has_changed()), (stream.clone(), false));
    let (output, repaired) = repair(&stream[..stream.len() - 1], 10);
    assert_eq!(output, stream);
    assert!(repaired.end_added);
    let partial = repaired.partial.unwrap();
    assert_eq!((partial.offset, partial.reason), (stream.len() as u64 - 1, PartialReason::NoEndMarker));
    // Inside the event block, after three of its four events.
    let events_end = stream.windows(7).position(|bytes| bytes == b"SPBlock").unwrap() - 15 - 1;
    let (output, repaired) = repair(&stream[..events_end - 1], 10);
    assert_eq!(Reading::of(&output, 1000).events().len(), 3);
    let partial = repaired.partial.clone().unwrap();
    assert_eq!(partial.reason, PartialReason::Cut { unused: 10 });
    assert_eq!(partial.offset + 10, events_end as u64 - 1);
    assert_eq!((repaired.blocks_shortened, repaired.blocks_left_out, repaired.end_added), (1, 0, true));
}

proptest! {
    #[test]
    fn any_truncation_is_repaired(stream in laws::any_version(), at: prop::sample::Index, chunk in 1..80usize) {
        check(&stream[..at.index(stream.len())], chunk);
    }

    /// Damage may cost data after it that a reader still sees, but the output is complete.
    #[test]
    fn damage_is_removed(stream in laws::any_stream(), at: prop::sample::Index, bit in 0..8u8, chunk in 1..80usize) {
        let mut damaged = stream;
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        let (output, repaired) = repair(&damaged, chunk);
        prop_assert_eq!(&repair(&damaged, damaged.len()), &(output.clone(), repaired));
        if !output.is_empty() {
            let after = Reading::of(&output, 1000);
            prop_assert!(after.complete && after.partial.is_none(), "{:?}", after.partial);
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes: Vec<u8>, chunk in 1..80usize) {
        let _ = repair(&bytes, chunk);
    }
}

/// TraceEvent reads the repaired stream, and finds the events that this reader finds.
#[test]
fn real_traceevent_reads_what_is_repaired() {
    let peer = require!(Peer::available("tebench"));
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("stream.nettrace");
    let names = ["net10/killed", "net9/killed", "only_managed_samples", "record-trace-v6", "tracelogging"];
    for recording in common::recordings() {
        if !names.iter().any(|name| recording.path.to_string_lossy().contains(name)) {
            continue;
        }
        for cut in [0, 1, 7_001, recording.bytes.len() / 3] {
            let stream = &recording.bytes[..recording.bytes.len().saturating_sub(cut)];
            let (output, _) = repair(stream, 1 << 16);
            if output.is_empty() {
                continue;
            }
            fs::write(&trace, &output).unwrap();
            let mut command = peer.command();
            command.arg(&trace).args(["--mode", "parse"]);
            let output = run(command);
            let answer: Value = serde_json::from_str(output.expect_code(0).text()).unwrap();
            let ours = Reading::of(stream, 1 << 16).events().len();
            let what = format!("{} without the last {cut} bytes: {answer}", recording.path.display());
            assert_eq!(
                (&answer["error"], answer["events"].as_u64()),
                (&Value::Null, Some(ours as u64)),
                "{what}"
            );
        }
    }
}

/// For any flipped bit, TraceEvent reads the repaired stream, and finds as many events as this reader.
#[test]
fn real_traceevent_reads_what_is_repaired_of_flipped_bits() {
    let peer = require!(Peer::available("tebench"));
    let small = |recording: &&Recording| (2_000..60_000).contains(&recording.bytes.len());
    let mut random = Random(13);
    let mut refused = Vec::new();
    for recording in common::recordings().iter().filter(small) {
        for _ in 0..3 {
            refused.extend(refusal(&peer, recording, random.below(recording.bytes.len() * 8)));
        }
        // TraceEvent once rejected the result of this repair.
        if recording.path.to_string_lossy().contains("net9/killed") {
            refused.extend(refusal(&peer, recording, 108_132));
        }
    }
    assert_eq!(refused, [""; 0]);
}

/// The test above at many more positions, each in a separate process.
#[test]
#[ignore = "takes minutes"]
fn real_traceevent_reads_what_is_repaired_of_many_flipped_bits() {
    let peer = require!(Peer::available("tebench"));
    let mut random = Random(14);
    let mut refused = Vec::new();
    for recording in common::recordings().iter().filter(|recording| recording.bytes.len() < 200_000) {
        for _ in 0..60 {
            refused.extend(refusal(&peer, recording, random.below(recording.bytes.len() * 8)));
        }
    }
    assert!(refused.is_empty(), "{}: {refused:#?}", refused.len());
}

/// Returns how TraceEvent's reading of the repaired recording with a flipped bit differs from this reader's.
fn refusal(tebench: &Peer, recording: &Recording, bit: usize) -> Option<String> {
    let mut damaged = recording.bytes.clone();
    damaged[bit / 8] ^= 1 << (bit % 8);
    let (output, _) = repair(&damaged, 1 << 16);
    if output.is_empty() {
        return None;
    }
    let ours = Reading::of(&output, 1 << 16);
    let what = format!("{} with the bit {bit} flipped", recording.path.display());
    assert!(ours.partial.is_none(), "{what}: {:?}", ours.partial);
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("stream.nettrace");
    fs::write(&trace, &output).unwrap();
    let mut command = tebench.command();
    command.arg(&trace).args(["--mode", "parse", "--runs", "1", "--warmup", "0"]);
    let text = run(command).text().to_owned();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
    let agrees = answer["error"].is_null() && answer["events"].as_u64() == Some(ours.events().len() as u64);
    (!agrees).then(|| format!("{what}: {} events, the other reader: {answer}", ours.events().len()))
}
