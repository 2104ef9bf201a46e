//! Text of Nettrace 6: a length in bytes, then UTF-8. Source: nettrace format, "V6, blocks".

use std::borrow::Cow;

use runtap_wire::{DecodeError, Reader, Writer};

/// Reads a text; invalid UTF-8 becomes U+FFFD.
pub(crate) fn string<'a>(r: &mut Reader<'a>, what: &'static str) -> Result<Cow<'a, str>, DecodeError> {
    let mut probe = r.clone();
    let size = probe.varu32(what)?;
    let bytes = probe.bytes(usize::try_from(size).unwrap_or(usize::MAX), what)?;
    *r = probe;
    Ok(String::from_utf8_lossy(bytes))
}

/// Writes a text. The caller rejects texts longer than 4 GiB.
pub(crate) fn write_string(text: &str, w: &mut Writer) {
    let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
    w.varu32(size).bytes(text.as_bytes());
}
