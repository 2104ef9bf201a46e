//! The router side of the handshake.

use std::net::SocketAddr;

use runtap_wire::Reader;

use crate::remote::error::{HandshakeError, Refusal};
use crate::remote::message::{
    ADDRESS, Challenge, HELLO, Hello, Nonce, PROOF, Request, RouterAddress, VERSION, answer, request_length,
};
use crate::remote::proof::{Side, Transcript};
use crate::remote::stream::Handshake;
use crate::remote::token::Token;

/// A request of an authenticated client, to be answered with [`RouterHandshake::answer`].
pub type RouterEvent = Request;

#[derive(Debug)]
enum RouterState {
    Hello,
    Length,
    /// The length of the request without the address and the proof.
    Ask(usize),
    Asked,
    Done,
}

/// The router side of a handshake with a client.
#[derive(Debug)]
pub struct RouterHandshake {
    token: Token,
    nonce: Nonce,
    addresses: Vec<RouterAddress>,
    transcript: Transcript,
    state: RouterState,
    received: Vec<u8>,
    total: u64,
    transmit: Option<Vec<u8>>,
    answered: bool,
    event: Option<Result<Request, HandshakeError>>,
}

impl RouterHandshake {
    /// Creates a handshake with a random number that is unique to the connection. `addresses` are the addresses at
    /// which clients reach this router, starting with the local address of the connection.
    pub fn new(token: Token, nonce: Nonce, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            token,
            nonce,
            addresses: addresses.into_iter().map(RouterAddress::from).collect(),
            transcript: Transcript::default(),
            state: RouterState::Hello,
            received: Vec::new(),
            total: 0,
            transmit: None,
            answered: false,
            event: None,
        }
    }

    /// Answers the request: `Ok` with the encoded list, or with nothing for an open request.
    pub fn answer(&mut self, outcome: Result<&[u8], &Refusal>) {
        if !matches!(self.state, RouterState::Asked) {
            return;
        }
        let mut bytes = answer(outcome);
        self.transcript.add(&bytes);
        bytes.extend(self.transcript.prove(&self.token, Side::Router));
        self.transmit = Some(bytes);
        self.answered = true;
        self.state = RouterState::Done;
    }

    /// Returns whether an answer was sent. The handshake itself answers an unknown request with an error and a proof;
    /// then no [`refusal`](Self::refusal) must be sent.
    pub fn has_answered(&self) -> bool {
        self.answered
    }

    /// Returns the message that tells an unauthenticated client that it was rejected. Must not be sent in addition to
    /// [an answer](Self::has_answered). Send it with a delay, to slow down guessing.
    pub fn refusal(error: &HandshakeError) -> Vec<u8> {
        match error {
            HandshakeError::Refused(refusal) => {
                let mut bytes = answer(Err(refusal));
                bytes.extend([0; PROOF]);
                bytes
            }
            HandshakeError::Version => Challenge { version: 0, nonce: [0; 32] }.encode(),
            _ => Vec::new(),
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<Option<Request>, HandshakeError> {
        match self.state {
            RouterState::Hello => {
                let hello = Hello::decode(&mut Reader::new(bytes))?;
                if !hello.has_ours() {
                    return Err(HandshakeError::Version);
                }
                self.transcript.add(bytes);
                let challenge = Challenge { version: VERSION, nonce: self.nonce }.encode();
                self.transcript.add(&challenge);
                self.transmit = Some(challenge);
                self.state = RouterState::Length;
                Ok(None)
            }
            RouterState::Length => {
                let length = request_length(Reader::new(bytes).u16("request length")?)?;
                self.transcript.add(bytes);
                self.state = RouterState::Ask(length);
                Ok(None)
            }
            RouterState::Ask(length) => {
                let (request, rest) = bytes.split_at_checked(length).unwrap_or_default();
                let (address, proof) = rest.split_at_checked(ADDRESS).unwrap_or_default();
                self.transcript.add(request);
                self.transcript.add(address);
                if !self.transcript.is_proven(&self.token, Side::Client, proof) {
                    return Err(HandshakeError::Refused(Refusal::Unauthenticated));
                }
                self.transcript.add(proof);
                self.state = RouterState::Asked;
                let reached = RouterAddress::decode(&mut Reader::new(address))?;
                if !self.addresses.contains(&reached) {
                    let here =
                        self.addresses.first().map_or_else(String::new, |here| format!(", not {here}"));
                    let refusal = Refusal::Elsewhere(format!("the client has connected to {reached}{here}"));
                    self.answer(Err(&refusal));
                    return Err(HandshakeError::Refused(refusal));
                }
                match Request::decode(&mut Reader::new(request)) {
                    Ok(request) => Ok(Some(request)),
                    Err(_of_later) => {
                        self.answer(Err(&Refusal::Malformed));
                        Err(HandshakeError::Refused(Refusal::Malformed))
                    }
                }
            }
            RouterState::Asked | RouterState::Done => Ok(None),
        }
    }
}

impl Handshake for RouterHandshake {
    type Event = RouterEvent;

    fn wanted(&self) -> usize {
        let whole = match self.state {
            RouterState::Hello => HELLO,
            RouterState::Length => 2,
            RouterState::Ask(length) => length.saturating_add(ADDRESS + PROOF),
            RouterState::Asked | RouterState::Done => 0,
        };
        whole.saturating_sub(self.received.len())
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let taken = rest.len().min(self.wanted());
            let (now, later) = rest.split_at_checked(taken).unwrap_or_default();
            self.received.extend_from_slice(now);
            self.total = self.total.saturating_add(taken as u64);
            rest = later;
            if self.wanted() > 0 || matches!(self.state, RouterState::Asked | RouterState::Done) {
                return;
            }
            let received = std::mem::take(&mut self.received);
            match self.advance(&received) {
                Ok(None) => {}
                Ok(Some(request)) => self.event = Some(Ok(request)),
                Err(error) => {
                    self.state = RouterState::Done;
                    self.event = Some(Err(error));
                }
            }
        }
    }

    fn handle_eof(&mut self) {
        if !matches!(self.state, RouterState::Asked | RouterState::Done) {
            self.state = RouterState::Done;
            self.event = Some(Err(HandshakeError::Closed { received: self.total }));
        }
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    fn poll_event(&mut self) -> Option<Result<Request, HandshakeError>> {
        self.event.take()
    }
}
