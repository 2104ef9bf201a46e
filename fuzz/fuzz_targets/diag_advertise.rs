//! Any bytes as the Advertise message of a runtime: no panic, and an accepted message is encoded to the bytes read,
//! except for the two reserved bytes.
#![no_main]

use runtap_diag_proto::Advertise;
use runtap_wire::Reader;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    match Advertise::decode(&mut Reader::new(input)) {
        Ok(advertise) => assert_eq!(advertise.to_bytes()[..32], input[..32]),
        Err(error) => assert!(!error.is_incomplete() || input.len() < Advertise::LEN),
    }
});
