//! What is of one connection: its frames, how far it has come, and what it waits for.

use std::collections::BTreeSet;

use super::{ConnectionId, Peer, Pipe};
use crate::{ControlKind, Frame, FrameReader, Message, MessageId, Rule, ServerControl};

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// There was no handshake yet.
    New,
    /// The handshake was accepted.
    Open(Box<Peer>),
    /// It was not.
    Rejected,
    /// There is nothing sensible to do with more bytes.
    Dead,
}

/// What a connection has besides its bytes.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: ConnectionId,
    pub(super) pipe: Pipe,
    pub(super) stage: Stage,
    /// Whether the request on the control pipe has no answer yet.
    pub(super) waiting: bool,
    /// Rules of which one violation for each connection says enough.
    pub(super) said: BTreeSet<Rule>,
}

impl Link {
    pub(super) fn peer(&self) -> Option<&Peer> {
        match &self.stage {
            Stage::Open(peer) => Some(peer),
            Stage::New | Stage::Rejected | Stage::Dead => None,
        }
    }

    /// Whether this is the first time on this connection.
    pub(super) fn first(&mut self, rule: Rule) -> bool {
        self.said.insert(rule)
    }
}

/// One connection of an application.
#[derive(Debug)]
pub struct Connection {
    pub(super) reader: FrameReader,
    pub(super) link: Link,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, pipe: Pipe, reader: FrameReader) -> Self {
        let said = BTreeSet::new();
        Self { reader, link: Link { id, pipe, stage: Stage::New, waiting: false, said } }
    }

    /// Its name.
    pub fn id(&self) -> ConnectionId {
        self.link.id
    }

    /// What it is for.
    pub fn pipe(&self) -> Pipe {
        self.link.pipe
    }

    /// Who is at the other end, once the handshake was accepted.
    pub fn peer(&self) -> Option<&Peer> {
        self.link.peer()
    }

    /// Offset and size of the frame that is not complete, as [`FrameReader::unfinished`].
    pub fn unfinished(&self) -> Option<(u64, usize)> {
        self.reader.unfinished()
    }

    /// Whether [`handle_bytes`](super::Application::handle_bytes) of these bytes, whatever they hold, gives the void reply and
    /// nothing else: they are one whole frame behind the handshake. So it can be written before they are looked at, and the
    /// application goes on meanwhile.
    pub fn is_void_due(&self, bytes: &[u8]) -> bool {
        let (Pipe::Data, Stage::Open(_), 0) = (self.link.pipe, &self.link.stage, self.reader.leftover())
        else {
            return false;
        };
        Frame::parse(bytes, self.reader.limits())
            .is_ok_and(|(frame, size)| size == bytes.len() && frame.id != MessageId::HANDSHAKE)
    }

    /// The answer to the request that waits on the control pipe, to be written; nothing if none waits. There is one answer
    /// to each request. To close the connection instead also cancels the session.
    pub fn control(&mut self, kind: ControlKind) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.link.waiting) {
            return None;
        }
        Message::ServerControl(ServerControl { kind: Some(kind) }).to_frame().ok()
    }
}
