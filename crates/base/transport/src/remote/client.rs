//! The client's side of the handshake.

use std::net::SocketAddr;

use runtap_wire::Reader;

use crate::remote::error::{HandshakeError, Refusal};
use crate::remote::message::{
    ANSWER_HEAD, CHALLENGE, Challenge, Hello, Nonce, PROOF, Reached, Request, VERSION, answer_head, outcome,
};
use crate::remote::proof::{Side, Transcript};
use crate::remote::stream::Handshake;
use crate::remote::token::Token;

/// What the router has answered: the list, or nothing where the connection is the process's from here on.
pub type Reply = Vec<u8>;

#[derive(Debug)]
enum State {
    Challenge,
    Head,
    /// The status, and the length of what follows without the proof.
    Answer(u16, usize),
    Done,
}

/// A client that wants something of a router.
#[derive(Debug)]
pub struct ClientHandshake {
    token: Token,
    router: Reached,
    request: Request,
    transcript: Transcript,
    state: State,
    received: Vec<u8>,
    total: u64,
    transmit: Option<Vec<u8>>,
    event: Option<Result<Reply, HandshakeError>>,
}

impl ClientHandshake {
    /// Begins with a random number that was made for this connection. `router` is the address at the other end of it: the
    /// router refuses what was meant for another one.
    pub fn new(token: Token, nonce: Nonce, router: SocketAddr, request: Request) -> Self {
        let hello = Hello { oldest: VERSION, newest: VERSION, nonce }.encode();
        let mut transcript = Transcript::default();
        transcript.add(&hello);
        Self {
            token,
            router: router.into(),
            request,
            transcript,
            state: State::Challenge,
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
        self.state = State::Head;
        Ok(())
    }

    fn answered(&mut self, status: u16, bytes: &[u8]) -> Result<Reply, HandshakeError> {
        let (payload, proof) = bytes.split_at_checked(bytes.len().saturating_sub(PROOF)).unwrap_or_default();
        let outcome = outcome(status, payload.to_vec());
        // Who does not know our token can prove nothing to us.
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
            State::Challenge => self.challenged(bytes).map(|()| None),
            State::Head => {
                let (status, length) = answer_head(&mut Reader::new(bytes))?;
                self.transcript.add(bytes);
                self.state = State::Answer(status, length);
                Ok(None)
            }
            State::Answer(status, _) => self.answered(status, bytes).map(Some),
            State::Done => Ok(None),
        }
    }
}

impl Handshake for ClientHandshake {
    type Event = Reply;

    fn wanted(&self) -> usize {
        let whole = match self.state {
            State::Challenge => CHALLENGE,
            State::Head => ANSWER_HEAD,
            State::Answer(_, length) => length.saturating_add(PROOF),
            State::Done => 0,
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
            if self.wanted() > 0 || matches!(self.state, State::Done) {
                return;
            }
            let received = std::mem::take(&mut self.received);
            match self.advance(&received) {
                Ok(None) => {}
                Ok(Some(reply)) => {
                    self.state = State::Done;
                    self.event = Some(Ok(reply));
                }
                Err(error) => {
                    self.state = State::Done;
                    self.event = Some(Err(error));
                }
            }
        }
    }

    fn handle_eof(&mut self) {
        if !matches!(self.state, State::Done) {
            self.state = State::Done;
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
