//! Advertise: what a runtime says first on a connection that it opened to a tool's port. Section "Diagnostic Ports".
//!
//! ```text
//! "ADVR_V1\0" │ 16 bytes cookie (GUID layout) │ u64 process id │ u16 0
//! ```
//!
//! It is no message: it has no header and no answer. After it the connection waits for one command, as any other.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid, Writer};

/// What it begins with.
const MAGIC: [u8; 8] = *b"ADVR_V1\0";

/// A runtime that dials in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Advertise {
    /// Identifies this run of this runtime: the same each time it dials in, and in its ProcessInfo.
    pub runtime_cookie: Uuid,
    /// The pid in the **target's** pid namespace.
    pub process_id: u64,
}

impl Advertise {
    /// Bytes on the wire, always.
    pub const LEN: usize = 34;

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(&MAGIC).guid(self.runtime_cookie).u64(self.process_id).u16(0);
        w.into_bytes()
    }

    /// Reads it. The last two bytes are for later versions and are not looked at.
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
    fn it_comes_back_whole_only() {
        let mut bytes = SAMPLE.to_bytes();
        for n in 0..bytes.len() {
            assert!(Advertise::decode(&mut Reader::new(&bytes[..n])).unwrap_err().is_incomplete(), "{n}");
        }
        // Reserved, and what may follow.
        bytes[33] = 7;
        bytes.push(1);
        let mut r = Reader::new(&bytes);
        assert_eq!(Advertise::decode(&mut r).unwrap(), SAMPLE);
        assert_eq!(r.remaining(), 1);
    }

    #[test]
    fn others_are_not_taken_for_it() {
        let mut bytes = SAMPLE.to_bytes();
        bytes[6] = b'2';
        let error = Advertise::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(error.to_string(), "magic at offset 0: is not \"ADVR_V1\"");
    }
}
