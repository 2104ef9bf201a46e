//! Any bytes through the nettrace reader: no panic, and the size of the chunks (first byte) does not matter, be they copied
//! or read where they lie.
#![no_main]

use runtap_fuzz::Said;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let whole = Said::of(stream, stream.len());
    assert!(whole.items.len() <= stream.len() + 1, "more items than bytes");
    assert_eq!(Said::of(stream, usize::from(*chunk)), whole);
    assert_eq!(Said::in_place(stream, usize::from(*chunk)), whole);
});
