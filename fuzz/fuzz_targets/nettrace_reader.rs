//! Any bytes as input of the nettrace reader: no panic, and the chunk size (first byte) does not matter, whether chunks
//! are copied or read in place.
#![no_main]

use runtap_fuzz::ReadingResult;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let whole = ReadingResult::of(stream, stream.len());
    assert!(whole.items.len() <= stream.len() + 1, "more items than bytes");
    assert_eq!(ReadingResult::of(stream, usize::from(*chunk)), whole);
    assert_eq!(ReadingResult::in_place(stream, usize::from(*chunk)), whole);
});
