//! AttachProfiler (0x0301): loads a profiler into a running process. The reply is sent after the profiler was
//! initialized, and carries the profiler's error code if it failed. Section "Profiler Commands" of the specification.
//!
//! ```text
//! u32 timeout  GUID class id  str path  u32 n  n bytes of data for the profiler
//! ```
//!
//! The specification gives the class id 14 bytes; it is an ordinary GUID of 16.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid, Writer};

use super::{Hresult, required, string};
use crate::{EncodeError, RequestError};

/// A profiler for a running process to load.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttachProfiler {
    /// The class of the library that implements the profiler.
    pub class_id: Uuid,
    /// The library, loaded by the **target**: in its mount namespace, as its user.
    pub path: String,
    /// How long the runtime waits for the profiler, in milliseconds. (Microsoft's client sends seconds.)
    pub timeout_ms: u32,
    /// Data for the profiler, passed to it unchanged.
    pub client_data: Vec<u8>,
}

pub(super) fn encode(w: &mut Writer, profiler: &AttachProfiler) -> Result<(), EncodeError> {
    w.u32(profiler.timeout_ms).guid(profiler.class_id);
    w.utf16_counted(Some(required("profiler path", &profiler.path)?));
    // If the count does not fit, the message is too long, too.
    w.u32(u32::try_from(profiler.client_data.len()).unwrap_or(u32::MAX)).bytes(&profiler.client_data);
    Ok(())
}

pub(super) fn decode(r: &mut Reader<'_>) -> Result<AttachProfiler, RequestError> {
    let timeout_ms = r.u32("attach time-out")?;
    let class_id = r.guid("profiler class id")?;
    let path = decode_path(r)?;
    // Runtimes load the library before they read this, even if the count exceeds the message.
    let count = r.u32("client data size")?;
    let client_data = r.bytes(usize::try_from(count).unwrap_or(usize::MAX), "client data")?.to_vec();
    Ok(AttachProfiler { class_id, path, timeout_ms, client_data })
}

/// Reads the path of a library, which must not be null: runtimes fail without one.
pub(super) fn decode_path(r: &mut Reader<'_>) -> Result<String, RequestError> {
    let offset = r.offset();
    string(r, "profiler path")?.ok_or_else(|| RequestError::NotAccepted {
        hresult: Hresult::E_FAIL,
        source: DecodeError::new(offset, "profiler path", DecodeErrorKind::Invalid("is null")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Request};

    fn request(path: &str, client_data: &[u8]) -> Request {
        Request::AttachProfiler(AttachProfiler {
            class_id: Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0),
            path: path.into(),
            timeout_ms: 5000,
            client_data: client_data.to_vec(),
        })
    }

    #[test]
    fn golden_bytes() {
        let request = request("/p.so", b"abc");
        let bytes = request.to_bytes().unwrap();
        let mut expected = b"DOTNET_IPC_V1\0\x3f\0\x03\x01\0\0\x88\x13\0\0".to_vec();
        expected.extend(b"\xfe\xca\xd0\xd0\x01\0\x02\x40\x80\x03\xa0\xb0\xc0\xd0\xe0\xf0");
        expected.extend(b"\x06\0\0\0/\0p\0.\0s\0o\0\0\0\x03\0\0\0abc");
        assert_eq!(bytes, expected);
        assert_eq!(Request::decode(Command::ATTACH_PROFILER, &bytes[20..]).unwrap(), request);
    }

    #[test]
    fn a_profiler_has_a_path() {
        assert_eq!(request("", b"").to_bytes().unwrap_err().to_string(), "profiler path: is empty");
        assert!(request("a\0b", b"").to_bytes().is_err());
        let error = Request::decode(Command::ATTACH_PROFILER, &[0; 28]).unwrap_err();
        assert_eq!(error.to_string(), "profiler path at offset 40: is null");
        assert_eq!(error.hresult(), Hresult::E_FAIL);
    }

    #[test]
    fn data_beyond_the_message_is_rejected() {
        let mut bytes = request("/p.so", b"abc").to_bytes().unwrap();
        for count in [100, u32::MAX] {
            let at = bytes.len() - 7;
            bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            let error = Request::decode(Command::ATTACH_PROFILER, &bytes[20..]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("client data at offset 60: needs {count} bytes, 3 are left")
            );
        }
    }

    #[test]
    fn data_must_fit_in_a_message() {
        assert!(request("/p", &vec![7; 65_535 - 20 - 4 - 16 - 10 - 4]).to_bytes().is_ok());
        assert_eq!(
            request("/p", &vec![7; 65_535 - 20 - 4 - 16 - 10 - 3]).to_bytes().unwrap_err(),
            EncodeError::MessageTooLong { size: 65_536 }
        );
    }
}
