//! The answer of every command that gives nothing but its outcome: an `i32` that is 0. The specification has none for
//! some of them, and 8 bytes for others; every runtime sends four. None at all is taken, too.

use runtap_wire::{DecodeError, Reader, Writer};

use super::Hresult;

pub(super) fn encode(w: &mut Writer) {
    w.u32(Hresult::OK.0);
}

/// The result code; [`Hresult::OK`] if there is none.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Hresult, DecodeError> {
    if r.is_empty() { Ok(Hresult::OK) } else { r.u32("result").map(Hresult) }
}
