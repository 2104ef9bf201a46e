//! StopTracing (0x0201): ends a session. Request and reply are the session id, a `u64`.
//!
//! The reply is sent after the runtime has written the rundown into the session's stream. The stream must be read
//! meanwhile.

use std::fmt;

use runtap_wire::{DecodeError, Reader, Writer};

/// The id of a session in its runtime: opaque, never 0 for a running session, reused at once after a stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) fn encode(w: &mut Writer, id: SessionId) {
    w.u64(id.0);
}

/// Requires all eight bytes: with a shorter payload, runtimes leak memory contents in the reply.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<SessionId, DecodeError> {
    r.u64("session id").map(SessionId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Request};

    #[test]
    fn golden_bytes() {
        let request = Request::StopTracing(SessionId(0x7f7e_f000_1190));
        let bytes = request.to_bytes().unwrap();
        assert_eq!(bytes, b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\x90\x11\x00\xf0\x7e\x7f\0\0");
        assert_eq!(Request::decode(Command::STOP_TRACING, &bytes[20..]).unwrap(), request);
    }

    #[test]
    fn short_ids_are_rejected() {
        for n in 0..8 {
            let error = Request::decode(Command::STOP_TRACING, &[1; 8][..n]).unwrap_err();
            assert_eq!(error.to_string(), format!("session id at offset 20: needs 8 bytes, {n} are left"));
        }
    }
}
