//! StartupProfiler (0x0302): the profiler that a runtime loads when it is resumed, as if `CORECLR_PROFILER` had been
//! set. Has no effect on a running process, although the reply is OK. Not in the specification; layout of .NET 6 to 10.
//!
//! ```text
//! GUID class id  str path
//! ```

use runtap_wire::{Reader, Uuid, Writer};

use super::{attach_profiler::decode_path, required};
use crate::{EncodeError, RequestError};

/// A profiler for a suspended runtime to load when it resumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartupProfiler {
    /// The class of the library that implements the profiler.
    pub class_id: Uuid,
    /// The library, loaded by the **target**: in its mount namespace, as its user. If it is missing, the program starts
    /// without it, without an error.
    pub path: String,
}

pub(super) fn encode(w: &mut Writer, profiler: &StartupProfiler) -> Result<(), EncodeError> {
    w.guid(profiler.class_id).utf16_counted(Some(required("profiler path", &profiler.path)?));
    Ok(())
}

pub(super) fn decode(r: &mut Reader<'_>) -> Result<StartupProfiler, RequestError> {
    Ok(StartupProfiler { class_id: r.guid("profiler class id")?, path: decode_path(r)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Request};

    #[test]
    fn golden_bytes() {
        let class_id = Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0);
        let request = Request::StartupProfiler(StartupProfiler { class_id, path: "/p".into() });
        let bytes = request.to_bytes().unwrap();
        let mut expected = b"DOTNET_IPC_V1\0\x2e\0\x03\x02\0\0".to_vec();
        expected
            .extend(b"\xfe\xca\xd0\xd0\x01\0\x02\x40\x80\x03\xa0\xb0\xc0\xd0\xe0\xf0\x03\0\0\0/\0p\0\0\0");
        assert_eq!(bytes, expected);
        assert_eq!(Request::decode(Command::STARTUP_PROFILER, &bytes[20..]).unwrap(), request);
    }

    #[test]
    fn a_profiler_has_a_path() {
        let profiler = StartupProfiler { class_id: Uuid::nil(), path: String::new() };
        let error = Request::StartupProfiler(profiler).to_bytes().unwrap_err();
        assert_eq!(error.to_string(), "profiler path: is empty");
        let error = Request::decode(Command::STARTUP_PROFILER, &[0; 20]).unwrap_err();
        assert_eq!(error.to_string(), "profiler path at offset 36: is null");
        assert!(Request::decode(Command::STARTUP_PROFILER, &[0; 16]).is_err());
    }
}
