//! EnablePerfMap (0x0405) and DisablePerfMap (0x0406): files with the addresses of compiled methods, for `perf`.
//! Sections of these names in the specification, which gives the second the code of the first.
//!
//! ```text
//! 0405  u32 type
//! 0406  nothing; runtimes ignore a payload
//! ```

use runtap_wire::{Reader, Writer};

use super::Hresult;
use crate::{RequestError, error::unexpected};

/// The files that a runtime writes into the target's `/tmp`, with the pid of the target's namespace in their names.
/// Runtimes answer other numbers with E_INVALIDARG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum PerfMapType {
    /// 1: all of them.
    All = 1,
    /// 2: `jit-PID.dump`: addresses, code and source lines.
    JitDump = 2,
    /// 3: `perf-PID.map`, and with .NET 8 `perfinfo-PID.map`: addresses and names.
    PerfMap = 3,
}

impl PerfMapType {
    /// Every type, by number.
    pub const ALL: [Self; 3] = [Self::All, Self::JitDump, Self::PerfMap];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::JitDump => "jitdump",
            Self::PerfMap => "perfmap",
        }
    }

    /// Which files those are.
    pub fn about(self) -> &'static str {
        match self {
            Self::All => "Both",
            Self::JitDump => "jit-PID.dump: code and source lines too",
            Self::PerfMap => "perf-PID.map: addresses and names",
        }
    }

    /// The type with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its number.
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
    fn numbers_that_are_no_type_are_refused_as_runtimes_do() {
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
    fn a_payload_of_disable_is_ignored() {
        assert_eq!(Request::decode(Command::DISABLE_PERF_MAP, b"abc").unwrap(), Request::DisablePerfMap);
    }
}
