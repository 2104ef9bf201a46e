//! Advertise: the first data on a connection that a runtime opened to a tool's port. Section "Diagnostic Ports".
//!
//! ```text
//! "ADVR_V1\0" │ 16 bytes cookie (GUID layout) │ u64 process id │ u16 0
//! ```
//!
//! An advertisement is not a message: it has no header and no answer. After it the connection serves one command.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid, Writer};

/// The first bytes of an advertisement.
const MAGIC: [u8; 8] = *b"ADVR_V1\0";

/// The identification of a runtime that connects to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Advertise {
    /// Identifies this run of the runtime: equal on each connection, and in ProcessInfo.
    pub runtime_cookie: Uuid,
    /// The pid in the **target's** pid namespace.
    pub process_id: u64,
}

impl Advertise {
    /// The encoded length in bytes.
    pub const LEN: usize = 34;

    /// Returns the encoded bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(&MAGIC).guid(self.runtime_cookie).u64(self.process_id).u16(0);
        w.into_bytes()
    }

    /// Reads an advertisement. The last two bytes are reserved for later versions and ignored.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = r.offset();
        if r.array("magic")? != MAGIC {
            return Err(DecodeError::new(offset, "magic", DecodeErrorKind::Invalid("is not \"ADVR_V1\"")));
        }
        let advertise = Self { runtime_cookie: r.guid("runtime cookie")?, process_id: r.u64("process id")? };
        r.u16("reserved")?;
        Ok(advertise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Advertise = Advertise {
        runtime_cookie: Uuid::from_u128(0x123e_4567_e89b_12d3_a456_4266_1417_4000),
        process_id: 42,
    };

    #[test]
    fn golden_bytes() {
        let bytes = SAMPLE.to_bytes();
        let mut expected = b"ADVR_V1\0".to_vec();
        expected.extend(b"\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00");
        expected.extend(b"\x2a\0\0\0\0\0\0\0\0\0");
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len(), Advertise::LEN);
    }

    #[test]
    fn incomplete_bytes_are_not_decoded() {
        let mut bytes = SAMPLE.to_bytes();
        for n in 0..bytes.len() {
            assert!(Advertise::decode(&mut Reader::new(&bytes[..n])).unwrap_err().is_incomplete(), "{n}");
        }
        // A reserved byte, and a byte after the advertisement.
        bytes[33] = 7;
        bytes.push(1);
        let mut r = Reader::new(&bytes);
        assert_eq!(Advertise::decode(&mut r).unwrap(), SAMPLE);
        assert_eq!(r.remaining(), 1);
    }

    #[test]
    fn another_magic_is_rejected() {
        let mut bytes = SAMPLE.to_bytes();
        bytes[6] = b'2';
        let error = Advertise::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(error.to_string(), "magic at offset 0: is not \"ADVR_V1\"");
    }
}
