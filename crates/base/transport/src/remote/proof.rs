//! Who knows the token: HMAC-SHA-256 over everything that both sides have said, with a word in front for each direction, so
//! that no side can be made to say what the other one has to.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::remote::message::PROOF;
use crate::remote::token::Token;

/// Which side proves something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Client,
    Router,
}

impl Side {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Client => b"runtap remote 2: client\0",
            Self::Router => b"runtap remote 2: router\0",
        }
    }
}

/// What was said so far.
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

    /// The proof of this side.
    pub(crate) fn prove(&self, token: &Token, side: Side) -> [u8; PROOF] {
        self.mac(token, side).map_or([0; PROOF], |mac| mac.finalize().into_bytes().into())
    }

    /// Whether this is the proof of that side. Takes as long wherever they differ.
    pub(crate) fn is_proven(&self, token: &Token, side: Side, proof: &[u8]) -> bool {
        self.mac(token, side).is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }

    /// A key of any length will do, so that there always is one.
    fn mac(&self, token: &Token, side: Side) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).ok()?;
        mac.update(side.word());
        mac.update(&self.0);
        Some(mac)
    }
}
