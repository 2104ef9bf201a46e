//! What the tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

use runtap_mtp_proto::{Frame, Handshake, HandshakeKey, Limits, Message};

/// The bytes of hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The frame that `bytes` are, without anything behind it.
pub(crate) fn frame(bytes: &[u8]) -> Frame<'_> {
    let (frame, size) = Frame::parse(bytes, Limits::default()).unwrap();
    assert_eq!(size, bytes.len());
    frame
}

/// The message that `bytes` are.
pub(crate) fn decode(bytes: &[u8]) -> Message {
    Message::decode(&frame(bytes), Limits::default()).unwrap()
}

/// A handshake that is accepted.
pub(crate) fn greeting(host_type: &str, instance: &str) -> Handshake {
    Handshake::new()
        .with(HandshakeKey::PID, "4242")
        .with(HandshakeKey::ARCHITECTURE, "X64")
        .with(HandshakeKey::FRAMEWORK, ".NET 10.0.12")
        .with(HandshakeKey::OS, "Linux")
        .with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0;1.1.0;1.2.0;1.3.0;1.4.0")
        .with(HandshakeKey::HOST_TYPE, host_type)
        .with(HandshakeKey::MODULE_PATH, "/srv/a.dll")
        .with(HandshakeKey::EXECUTION_ID, "exec-1")
        .with(HandshakeKey::INSTANCE_ID, instance)
}
