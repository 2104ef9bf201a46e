//! ApplyStartupHook (0x0407): makes the runtime load an assembly and call its `StartupHook.Initialize`: at once, or
//! after the resume if it is suspended. Section of this name in the specification.
//!
//! ```text
//! str path
//! ```
//!
//! **Since .NET 9 a hook that cannot be loaded or that fails crashes the target.** The client of `runtap-diag` checks
//! the file before it sends; the encoder only rejects an empty path.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{Hresult, required, string};
use crate::{EncodeError, RequestError};

pub(super) fn encode(w: &mut Writer, path: &str) -> Result<(), EncodeError> {
    w.utf16_counted(Some(required("startup hook path", path)?));
    Ok(())
}

/// Accepts an empty path, which runtimes ignore.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<String, RequestError> {
    let offset = r.offset();
    string(r, "startup hook path")?.ok_or_else(|| RequestError::NotAccepted {
        hresult: Hresult::E_INVALIDARG,
        source: DecodeError::new(offset, "startup hook path", DecodeErrorKind::Invalid("is null")),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Command, Hresult, Request};

    #[test]
    fn golden_bytes() {
        let request = Request::ApplyStartupHook { path: "/h".into() };
        let bytes = request.to_bytes().unwrap();
        assert_eq!(bytes, b"DOTNET_IPC_V1\0\x1e\0\x04\x07\0\0\x03\0\0\0/\0h\0\0\0");
        assert_eq!(Request::decode(Command::APPLY_STARTUP_HOOK, &bytes[20..]).unwrap(), request);
    }

    #[test]
    fn a_hook_has_a_path() {
        let error = Request::ApplyStartupHook { path: String::new() }.to_bytes().unwrap_err();
        assert_eq!(error.to_string(), "startup hook path: is empty");
        let null = Request::decode(Command::APPLY_STARTUP_HOOK, &[0; 4]).unwrap_err();
        assert_eq!(null.to_string(), "startup hook path at offset 20: is null");
        assert_eq!(null.hresult(), Hresult::E_INVALIDARG);
        let none = Request::decode(Command::APPLY_STARTUP_HOOK, &[]).unwrap_err();
        assert_eq!(none.hresult(), Hresult::BAD_ENCODING);
    }
}
