//! Any bytes, read in parts of some size (first byte, times four): the parts together yield the result of the whole.
#![no_main]

use runtap_fuzz::ReadingResult;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    assert_eq!(
        ReadingResult::in_parts(stream, u64::from(*size) * 4),
        ReadingResult::in_place(stream, stream.len())
    );
});
