//! Any bytes as the kernel's files about processes (their environment, status, mounts, mappings, sockets) and as names
//! of sockets: no panic, no more results than bytes allow, and a parsed name is written as it was read.
#![no_main]

use runtap_discover::fuzzing::read_as_all;
use runtap_transport::naming::SocketName;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    assert!(read_as_all(input) <= input.len() + 8);
    if let Ok(text) = str::from_utf8(input)
        && let Some(name) = SocketName::parse(text)
    {
        assert_eq!(SocketName::parse(&name.to_string()), Some(name));
    }
});
