//! SetEnvironmentVariable (0x0403): changes the runtime's copy of the environment. Not in the specification; the layout
//! is that of .NET 6 to 10.
//!
//! ```text
//! str name  str value      value null = remove the variable
//! ```
//!
//! A request without a value field crashes runtimes, so the field is always written. Native `getenv` does not see the
//! change, and managed code sees it only if it has not read the variable before.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{Hresult, no_nul, required, string};
use crate::{EncodeError, RequestError};

pub(super) fn encode(w: &mut Writer, name: &str, value: Option<&str>) -> Result<(), EncodeError> {
    let name = required("variable name", name)?;
    if name.contains('=') {
        return Err(EncodeError::EqualsSign { field: "variable name" });
    }
    let value = value.map(|value| no_nul("variable value", value)).transpose()?;
    w.utf16_counted(Some(name)).utf16_counted(value);
    Ok(())
}

/// Accepts empty names and names with `=`, as runtimes do.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<(String, Option<String>), RequestError> {
    let offset = r.offset();
    let name = string(r, "variable name")?;
    let value = string(r, "variable value")?;
    match name {
        Some(name) => Ok((name, value)),
        None => Err(RequestError::NotAccepted {
            hresult: Hresult::E_INVALIDARG,
            source: DecodeError::new(offset, "variable name", DecodeErrorKind::Invalid("is null")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Command, Hresult, Request};

    fn request(name: &str, value: Option<&str>) -> Request {
        Request::SetEnvironmentVariable { name: name.into(), value: value.map(Into::into) }
    }

    #[test]
    fn golden_bytes() {
        for (value, tail) in [
            (Some("B"), &b"\x02\0\0\0B\0\0\0"[..]),
            (Some(""), b"\x01\0\0\0\0\0"),
            // Removes the variable.
            (None, b"\0\0\0\0"),
        ] {
            let request = request("A", value);
            let bytes = request.to_bytes().unwrap();
            assert_eq!(bytes[16..20], [4, 3, 0, 0]);
            assert_eq!(bytes[20..], [b"\x02\0\0\0A\0\0\0", tail].concat());
            assert_eq!(Request::decode(Command::SET_ENVIRONMENT_VARIABLE, &bytes[20..]).unwrap(), request);
        }
    }

    #[test]
    fn invalid_names_and_values_are_not_encoded() {
        let why = |name, value| request(name, value).to_bytes().unwrap_err().to_string();
        assert_eq!(why("", None), "variable name: is empty");
        assert_eq!(why("A=B", None), "variable name: contains an equals sign");
        assert_eq!(why("A\0", None), "variable name: contains a NUL character");
        assert_eq!(why("A", Some("\0")), "variable value: contains a NUL character");
    }

    #[test]
    fn requests_that_crash_runtimes_are_rejected() {
        let decode = |payload: &[u8]| Request::decode(Command::SET_ENVIRONMENT_VARIABLE, payload);
        let why = |payload| decode(payload).unwrap_err().to_string();
        assert_eq!(why(b""), "variable name at offset 20: needs 4 bytes, 0 are left");
        assert_eq!(why(b"\x02\0\0\0A\0\0\0"), "variable value at offset 28: needs 4 bytes, 0 are left");
        let null = decode(b"\0\0\0\0\x02\0\0\0B\0\0\0").unwrap_err();
        assert_eq!(null.to_string(), "variable name at offset 20: is null");
        assert_eq!(null.hresult(), Hresult::E_INVALIDARG);
        for count in [0x8000_0001u32, u32::MAX] {
            let payload = [&count.to_le_bytes()[..], &[0; 8]].concat();
            assert_eq!(decode(&payload).unwrap_err().hresult(), Hresult::BAD_ENCODING);
        }
    }
}
