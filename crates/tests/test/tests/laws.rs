//! Laws of all formats: any chunking gives the same, any prefix and any text is read without a panic, and a prefix has no
//! result that the whole has not.

use proptest::prelude::*;
use runtap_test::TestOutcome;
use runtap_test::formats::{Event, Format, Parser};

const RECORDED: [(Format, &[u8]); 11] = [
    (Format::Libtest, include_bytes!("fixtures/libtest.txt")),
    (Format::Libtest, include_bytes!("fixtures/libtest-list.txt")),
    (Format::LibtestJson, include_bytes!("fixtures/libtest.json")),
    (Format::Nextest, include_bytes!("fixtures/nextest.json")),
    (Format::GoJson, include_bytes!("fixtures/go.json")),
    (Format::Tap, include_bytes!("fixtures/node.tap")),
    (Format::Junit, include_bytes!("fixtures/pytest.xml")),
    (Format::Libtest, include_bytes!("fixtures/libtest-target-dies.txt")),
    (Format::GoJson, include_bytes!("fixtures/go-no-newline.json")),
    (Format::GoJson, include_bytes!("fixtures/go-after-tests.json")),
    (Format::Tap, include_bytes!("fixtures/node-hook.tap")),
];

fn read(format: Format, bytes: &[u8], size: usize) -> Vec<Event> {
    let mut parser = Parser::new(format);
    let mut events: Vec<_> = bytes.chunks(size).flat_map(|piece| parser.feed(piece)).collect();
    events.extend(parser.finish());
    events
}

/// Uids that have ended.
fn ended(events: &[Event]) -> Vec<(&str, TestOutcome)> {
    let ended = events.iter().filter_map(|event| match event {
        Event::Ended(case) => Some((case.uid.as_str(), case.outcome)),
        _ => None,
    });
    ended.collect()
}

/// A recording, with some of its bytes replaced.
fn damaged() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20);
    (0..RECORDED.len(), damage).prop_map(|(which, damage)| {
        let (format, bytes) = RECORDED[which];
        let mut bytes = bytes.to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        (format, bytes)
    })
}

/// Words of the formats in any order.
fn words() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let word = prop::sample::select(vec![
        "test ",
        "a",
        " ... ",
        "ok",
        "FAILED",
        "\n",
        "running 2 tests",
        "failures:",
        "---- a stdout ----",
        "test result: ",
        "not ok",
        " 1",
        " - ",
        "    ",
        "  ---",
        "  ...",
        "1..2",
        "# Subtest: x",
        "# SKIP",
        "\\#",
        "error: |-",
        "é",
        "{\"type\":\"test\",\"event\":\"failed\",\"name\":\"x\"}",
        "{\"Action\":\"fail\",\"Package\":\"p\"}",
        "<testsuite>",
        "<testcase name='x'>",
        "</testcase>",
        "<failure/>",
        "&amp;",
        "&x;",
        "]]>",
        "     Running a (b-0123456789abcdef)",
        "thread 'a' panicked at x:1:2:",
    ]);
    let format = prop::sample::select(Format::ALL.to_vec());
    (format, prop::collection::vec(word, 0..60))
        .prop_map(|(format, words)| (format, words.concat().into_bytes()))
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same((format, bytes) in prop_oneof![damaged(), words()], size in 1_usize..200) {
        prop_assert_eq!(read(format, &bytes, size), read(format, &bytes, usize::MAX));
    }

    #[test]
    fn a_prefix_tells_nothing_that_the_whole_does_not(which in 0..RECORDED.len(), cut in any::<prop::sample::Index>()) {
        let (format, bytes) = RECORDED[which];
        let cut = cut.index(bytes.len());
        // A line that is cut may look like another one; documents are read as a whole.
        let cut = bytes[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = read(format, bytes, usize::MAX);
        let whole = ended(&whole);
        let part = read(format, &bytes[..cut], usize::MAX);
        let mut part = ended(&part);
        // The diagnostics of the last one may be missing: they say what it is.
        if format == Format::Tap {
            part.pop();
        }
        for case in part {
            prop_assert!(whole.contains(&case), "{:?}", case);
        }
    }

    #[test]
    fn no_uid_ends_twice((format, bytes) in prop_oneof![damaged(), words()]) {
        let events = read(format, &bytes, usize::MAX);
        let mut uids: Vec<_> = ended(&events).into_iter().map(|(uid, _)| uid).collect();
        let all = uids.len();
        uids.sort_unstable();
        uids.dedup();
        prop_assert_eq!(uids.len(), all);
    }
}
