//! Any bytes as a stream whose structure is inspected: no panic, the chunk size (first byte) does not matter, and the
//! parts found are consecutive.
#![no_main]

use runtap_nettrace::inspect::{Inspect, Inspected};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let whole = inspect(stream, stream.len());
    assert_eq!(inspect(stream, usize::from(*chunk)), whole);
    let mut at = 0;
    for found in &whole {
        let (start, end) = match found {
            Inspected::Block(block) => (block.offset, block.offset + block.header_bytes),
            Inspected::End { offset, end } => (*offset, *end),
            Inspected::Truncated { offset, left } => (*offset, offset + left),
            Inspected::Damage { offset, .. } => (*offset, *offset),
            _ => continue,
        };
        assert!(at <= start && start <= end && end <= stream.len() as u64, "{at} {found:?}");
        at = start;
    }
});

fn inspect(stream: &[u8], chunk: usize) -> Vec<Inspected> {
    let (mut inspect, mut found) = (Inspect::new(), Vec::new());
    for part in stream.chunks(chunk.max(1)) {
        inspect.feed(part);
        found.extend(std::iter::from_fn(|| inspect.next()));
    }
    inspect.finish();
    found.extend(std::iter::from_fn(|| inspect.next()));
    found
}
