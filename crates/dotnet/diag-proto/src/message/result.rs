//! The reply to every command without a result: an `i32` that is 0. The specification has no payload for some of these
//! commands and 8 bytes for others; every runtime sends four bytes. An empty payload is accepted, too.

use runtap_wire::{DecodeError, Reader, Writer};

use super::Hresult;

pub(super) fn encode(w: &mut Writer) {
    w.u32(Hresult::OK.0);
}

/// Reads the result code; [`Hresult::OK`] if the payload is empty.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Hresult, DecodeError> {
    if r.is_empty() { Ok(Hresult::OK) } else { r.u32("result").map(Hresult) }
}
