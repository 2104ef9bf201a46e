//! Any bytes as what a runtime says when it dials in: no panic, and what is taken is encoded as it came, but for the
//! two reserved bytes.
#![no_main]

use runtap_diag_proto::Advertise;
use runtap_wire::Reader;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    match Advertise::decode(&mut Reader::new(input)) {
        Ok(advertise) => assert_eq!(advertise.to_bytes()[..32], input[..32]),
        Err(error) => assert!(!error.is_incomplete() || input.len() < Advertise::LEN),
    }
});
