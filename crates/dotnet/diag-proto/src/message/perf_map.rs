//! EnablePerfMap (0x0405) and DisablePerfMap (0x0406): files with the addresses of compiled methods, for `perf`.
//! The specification has sections of these names, and gives both commands the same code.
//!
//! ```text
//! 0405  u32 type
//! 0406  nothing; runtimes ignore a payload
//! ```

use runtap_wire::{Reader, Writer};

use super::Hresult;
use crate::{RequestError, error::unexpected};

/// The files that a runtime writes into the target's `/tmp`, named after the pid in the target's namespace.
/// Runtimes answer unknown numbers with E_INVALIDARG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum PerfMapType {
    /// 1: all of the files.
    All = 1,
    /// 2: `jit-PID.dump` with addresses, code and source lines.
    JitDump = 2,
    /// 3: `perf-PID.map` with addresses and names, and on .NET 8 also `perfinfo-PID.map`.
    PerfMap = 3,
}

impl PerfMapType {
    /// Every type, ordered by number.
    pub const ALL: [Self; 3] = [Self::All, Self::JitDump, Self::PerfMap];

    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::JitDump => "jitdump",
            Self::PerfMap => "perfmap",
        }
    }

    /// Returns which files are written.
    pub fn about(self) -> &'static str {
        match self {
            Self::All => "Both",
            Self::JitDump => "jit-PID.dump: code and source lines too",
            Self::PerfMap => "perf-PID.map: addresses and names",
        }
    }

    /// Returns the type with this number. `None` if unknown.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns the number of the type.
    pub fn number(self) -> u32 {
        u32::from(self as u8)
    }
}

pub(super) fn encode(w: &mut Writer, kind: PerfMapType) {
    w.u32(kind.number());
}

pub(super) fn decode(r: &mut Reader<'_>) -> Result<PerfMapType, RequestError> {
    let offset = r.offset();
    let number = r.u32("perf map type")?;
    PerfMapType::from_number(number).ok_or_else(|| RequestError::NotAccepted {
        hresult: Hresult::E_INVALIDARG,
        source: unexpected(offset, "perf map type", number, "1 to 3"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Reply, Request};

    #[test]
    fn golden_bytes() {
        let request = Request::EnablePerfMap(PerfMapType::PerfMap);
        let bytes = request.to_bytes().unwrap();
        assert_eq!(bytes, b"DOTNET_IPC_V1\0\x18\0\x04\x05\0\0\x03\0\0\0");
        assert_eq!(Request::decode(Command::ENABLE_PERF_MAP, &bytes[20..]).unwrap(), request);
        let request = Request::DisablePerfMap;
        assert_eq!(request.to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x14\0\x04\x06\0\0");
        assert_eq!(Reply::Done.to_bytes(&request).unwrap(), b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
    }

    #[test]
    fn unknown_types_are_rejected_as_runtimes_do() {
        for number in [0, 4, u32::MAX] {
            let error = Request::decode(Command::ENABLE_PERF_MAP, &number.to_le_bytes()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("perf map type at offset 20: is {number:#x}, expected 1 to 3")
            );
            assert_eq!(error.hresult(), Hresult::E_INVALIDARG);
        }
        for n in 0..4 {
            let error = Request::decode(Command::ENABLE_PERF_MAP, &[1; 4][..n]).unwrap_err();
            assert_eq!(error.hresult(), Hresult::BAD_ENCODING);
        }
    }

    #[test]
    fn the_payload_of_disable_is_ignored() {
        assert_eq!(Request::decode(Command::DISABLE_PERF_MAP, b"abc").unwrap(), Request::DisablePerfMap);
    }
}
