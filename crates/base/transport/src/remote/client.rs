//! The client side of the handshake.

use std::net::SocketAddr;

use runtap_wire::Reader;

use crate::remote::error::{HandshakeError, Refusal};
use crate::remote::message::{
    ANSWER_HEAD, CHALLENGE, Challenge, Hello, Nonce, PROOF, Request, RouterAddress, VERSION, answer_head,
    outcome,
};
use crate::remote::proof::{Side, Transcript};
use crate::remote::stream::Handshake;
use crate::remote::token::Token;

/// The payload of a router's answer: the encoded process list, or nothing if the connection now leads to the process.
pub type Reply = Vec<u8>;

#[derive(Debug)]
enum ClientState {
    Challenge,
    Head,
    /// The status, and the length of the payload without the proof.
    Answer(u16, usize),
    Done,
}

/// The client side of a handshake with a router.
#[derive(Debug)]
pub struct ClientHandshake {
    token: Token,
    router: RouterAddress,
    request: Request,
    transcript: Transcript,
    state: ClientState,
    received: Vec<u8>,
    total: u64,
    transmit: Option<Vec<u8>>,
    event: Option<Result<Reply, HandshakeError>>,
}

impl ClientHandshake {
    /// Creates a handshake with a random number that is unique to the connection. `router` is the address that the
    /// client connected to: a router rejects requests that were made for another one.
    pub fn new(token: Token, nonce: Nonce, router: SocketAddr, request: Request) -> Self {
        let hello = Hello { oldest: VERSION, newest: VERSION, nonce }.encode();
        let mut transcript = Transcript::default();
        transcript.add(&hello);
        Self {
            token,
            router: router.into(),
            request,
            transcript,
            state: ClientState::Challenge,
            received: Vec::new(),
            total: 0,
            transmit: Some(hello),
            event: None,
        }
    }

    fn challenged(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let challenge = Challenge::decode(&mut Reader::new(bytes))?;
        if challenge.version != VERSION {
            return Err(HandshakeError::Version);
        }
        self.transcript.add(bytes);
        let mut ask = self.request.encode();
        ask.extend(self.router.encode());
        self.transcript.add(&ask);
        let proof = self.transcript.prove(&self.token, Side::Client);
        self.transcript.add(&proof);
        ask.extend(proof);
        self.transmit = Some(ask);
        self.state = ClientState::Head;
        Ok(())
    }

    fn answered(&mut self, status: u16, bytes: &[u8]) -> Result<Reply, HandshakeError> {
        let (payload, proof) = bytes.split_at_checked(bytes.len().saturating_sub(PROOF)).unwrap_or_default();
        let outcome = outcome(status, payload.to_vec());
        // A router that does not know the token cannot prove that it does.
        if outcome == Err(Refusal::Unauthenticated) {
            return Err(HandshakeError::Refused(Refusal::Unauthenticated));
        }
        self.transcript.add(payload);
        if !self.transcript.is_proven(&self.token, Side::Router, proof) {
            return Err(HandshakeError::Unproven);
        }
        outcome.map_err(HandshakeError::Refused)
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<Option<Reply>, HandshakeError> {
        match self.state {
            ClientState::Challenge => self.challenged(bytes).map(|()| None),
            ClientState::Head => {
                let (status, length) = answer_head(&mut Reader::new(bytes))?;
                self.transcript.add(bytes);
                self.state = ClientState::Answer(status, length);
                Ok(None)
            }
            ClientState::Answer(status, _) => self.answered(status, bytes).map(Some),
            ClientState::Done => Ok(None),
        }
    }
}

impl Handshake for ClientHandshake {
    type Event = Reply;

    fn wanted(&self) -> usize {
        let whole = match self.state {
            ClientState::Challenge => CHALLENGE,
            ClientState::Head => ANSWER_HEAD,
            ClientState::Answer(_, length) => length.saturating_add(PROOF),
            ClientState::Done => 0,
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
            if self.wanted() > 0 || matches!(self.state, ClientState::Done) {
                return;
            }
            let received = std::mem::take(&mut self.received);
            match self.advance(&received) {
                Ok(None) => {}
                Ok(Some(reply)) => {
                    self.state = ClientState::Done;
                    self.event = Some(Ok(reply));
                }
                Err(error) => {
                    self.state = ClientState::Done;
                    self.event = Some(Err(error));
                }
            }
        }
    }

    fn handle_eof(&mut self) {
        if !matches!(self.state, ClientState::Done) {
            self.state = ClientState::Done;
            self.event = Some(Err(HandshakeError::Closed { received: self.total }));
        }
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    fn poll_event(&mut self) -> Option<Result<Reply, HandshakeError>> {
        self.event.take()
    }
}
