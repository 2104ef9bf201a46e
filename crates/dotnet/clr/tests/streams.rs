//! Streams in pieces and truncated streams, and their blocks.

use runtap_clr::layout::{self, GapKind, Layout};
use runtap_clr::lines::{Choice, Chooser, Lines, LiveLines, Style};
use runtap_clr::{EventCounts, Filter};
use runtap_nettrace::inspect::{Inspect, Inspected};
use runtap_nettrace::{Reader, StreamItem};
use runtap_testkit::{require, shared_data};

fn recording(name: &str) -> Result<Vec<u8>, runtap_testkit::Skip> {
    shared_data(format!("nettrace/{name}.nettrace.zst"))
}

/// Reads a stream in pieces of this size. Returns the lines, the number of items, and whether it is complete.
fn live(bytes: &[u8], piece: usize) -> (Vec<u8>, usize, bool) {
    let mut lines = Vec::new();
    let mut seen = 0;
    let mut live =
        LiveLines::new(Lines::new(Chooser::new(Choice::default(), None), Style::Json, false, &mut lines));
    for piece in bytes.chunks(piece) {
        live.feed(piece, |_| seen += 1).unwrap();
    }
    live.finish(|_| seen += 1).unwrap();
    let whole = live.partial().is_none();
    drop(live);
    (lines, seen, whole)
}

#[test]
fn pieces_make_no_difference() {
    let bytes = require!(recording("net8/logs"));
    let (lines, seen, whole) = live(&bytes, usize::MAX);
    assert!(whole && seen > 10 && lines.ends_with(b"\n"));
    for piece in [7, 1_000, 20_000] {
        assert!(live(&bytes, piece) == (lines.clone(), seen, true), "pieces of {piece}");
    }
    let (some, _, whole) = live(&bytes[..bytes.len() / 2], 1_000);
    assert!(!whole && !some.is_empty() && some.len() < lines.len());
}

#[test]
fn only_output_before_a_failure_is_written() {
    let bytes = require!(recording("net8/logs"));
    let mut room = [0; 500];
    let mut live =
        LiveLines::new(Lines::new(Chooser::new(Choice::default(), None), Style::Json, false, &mut room[..]));
    assert!(live.feed(&bytes, |_| {}).is_err());
}

#[test]
fn selected_events_are_counted() {
    let bytes = require!(recording("net8/exceptions"));
    let count = |filter: Option<&str>| {
        let choice =
            Choice { filter: filter.map(|filter| filter.parse::<Filter>().unwrap()), ..Choice::default() };
        let (mut chooser, mut counts) = (Chooser::new(choice, None), EventCounts::new());
        let mut reader = Reader::new();
        reader.items(&bytes).for_each(|item: StreamItem<'_>| counts.chosen(&mut chooser, &item)).unwrap();
        counts
    };
    let all = count(None);
    let thrown = count(Some("name = Exception/Start"));
    let [row] = &thrown.rows()[..] else { panic!("one kind: {:?}", thrown.rows()) };
    assert!(row.n > 0 && row.n == thrown.total() && thrown.total() < all.total());
    assert!(all.rows().contains(row));
}

/// Returns the elements of a stream, and its blocks as JSON.
fn look(bytes: &[u8]) -> (Layout, Vec<serde_json::Value>) {
    let (mut layout, mut blocks) = (Layout::default(), Vec::new());
    let mut inspect = Inspect::new();
    inspect.feed(bytes);
    inspect.finish();
    while let Some(found) = inspect.next() {
        layout.see(&found);
        if let Inspected::Block(block) = &found {
            blocks.push(layout::json(block));
        }
    }
    (layout, blocks)
}

#[test]
fn the_blocks_of_a_stream() {
    let mut bytes = require!(recording("net8/logs"));
    let (whole, blocks) = look(&bytes);
    let length = bytes.len() as u64;
    assert_eq!((whole.gap, whole.is_damaged, whole.blocks_count), (None, false, blocks.len() as u64));
    assert_eq!((whole.end.map(|(_, end)| end), blocks[0]["content"].as_str()), (Some(length), Some("trace")));

    bytes.extend_from_slice(b"more");
    assert_eq!(look(&bytes).0.trailing_bytes(length + 4), 4);

    let last = blocks.last().unwrap();
    let begin = usize::try_from(last["offset"].as_u64().unwrap()).unwrap();
    let (cut, fewer) = look(&bytes[..begin + 40]);
    let gap = cut.gap.as_ref().unwrap();
    assert_eq!((gap.offset, fewer.len(), cut.end), (begin as u64, blocks.len(), None));
    assert_eq!(gap.kind, GapKind::TruncatedBlock(last["name"].as_str().unwrap().to_owned()));
    assert_eq!(cut.trailing_bytes(7), 0);
}
