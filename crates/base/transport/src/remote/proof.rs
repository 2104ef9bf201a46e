//! Proofs that a side knows the token: HMAC-SHA-256 of all messages so far, prefixed with a label per side, so that no
//! side can be tricked into computing the proof of the other.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::remote::message::PROOF;
use crate::remote::token::Token;

/// The side that computes a proof.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Client,
    Router,
}

impl Side {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Client => b"runtap remote 2: client\0",
            Self::Router => b"runtap remote 2: router\0",
        }
    }
}

/// All messages exchanged so far.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Vec<u8>);

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transcript({} bytes)", self.0.len())
    }
}

impl Transcript {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Computes the proof of a side.
    pub(crate) fn prove(&self, token: &Token, side: Side) -> [u8; PROOF] {
        self.mac(token, side).map_or([0; PROOF], |mac| mac.finalize().into_bytes().into())
    }

    /// Verifies the proof of a side in constant time.
    pub(crate) fn is_proven(&self, token: &Token, side: Side, proof: &[u8]) -> bool {
        self.mac(token, side).is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }

    /// `None` never occurs: HMAC accepts keys of any length.
    fn mac(&self, token: &Token, side: Side) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).ok()?;
        mac.update(side.label());
        mac.update(&self.0);
        Some(mac)
    }
}
