//! A byte for the format and one for the chunk size, then the output of a test command: chunk sizes do not matter, no
//! uid ends twice, and no result is larger than the output.
#![no_main]

use std::collections::HashSet;

use runtap_test::formats::{Event, Format, Parser};

fn read(format: Format, bytes: &[u8], size: usize) -> Vec<Event> {
    let mut parser = Parser::new(format);
    let mut events: Vec<_> = bytes.chunks(size).flat_map(|piece| parser.feed(piece)).collect();
    events.extend(parser.finish());
    events
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [format, size, bytes @ ..] = input else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
    let whole = read(format, bytes, usize::MAX);
    assert_eq!(read(format, bytes, usize::from(*size).max(1)), whole);
    let mut uids = HashSet::new();
    for event in &whole {
        let Event::Ended(case) = event else { continue };
        assert!(uids.insert(&case.uid), "{}", case.uid);
        // U+FFFD takes three bytes for each invalid byte.
        assert!(case.stdout.len() <= 3 * bytes.len() + 1 && case.name.len() <= 3 * bytes.len() + 16);
    }
    assert!(whole.len() <= 2 * bytes.len() + 3);
});
