//! Any bytes, read in parts of some size (first byte, times four): what all parts say is what the whole says.
#![no_main]

use runtap_fuzz::Said;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    assert_eq!(Said::in_parts(stream, u64::from(*size) * 4), Said::in_place(stream, stream.len()));
});
