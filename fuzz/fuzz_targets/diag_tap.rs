//! Any bytes from both sides of a forwarded connection: the output equals the input for any chunk sizes (first byte:
//! bytes from the client; second: chunk size and the side that connected).
#![no_main]

use runtap_diag_proto::tap::{Side, Tap};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [client, how, said @ ..] = input else { return };
    let (up, down) = said.split_at(said.len().min(usize::from(*client)));
    let mut tap = if how & 1 == 0 { Tap::new() } else { Tap::for_port() };
    let (mut out, mut kinds) = ([Vec::new(), Vec::new()], 0);
    for (side, bytes) in [(Side::Client, up), (Side::Runtime, down)] {
        bytes.chunks(usize::from(how / 2).max(1)).for_each(|part| tap.handle_bytes(side, part));
        tap.handle_eof(side);
    }
    while let Some(piece) = tap.poll_transmit() {
        out[usize::from(piece.from == Side::Runtime)].extend_from_slice(piece.bytes());
        kinds += usize::from(!piece.bytes().is_empty());
    }
    assert!(out == [up, down] && kinds <= said.len());
});
