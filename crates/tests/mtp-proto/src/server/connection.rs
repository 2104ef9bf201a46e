//! The state of one connection: its frames, its stage, and its pending control request.

use std::collections::BTreeSet;

use super::{ConnectionId, Peer, Pipe};
use crate::{ControlKind, Frame, FrameReader, Message, MessageId, Rule, ServerControl};

/// The stage of a connection.
#[derive(Debug)]
pub(super) enum Stage {
    /// No handshake was received yet.
    New,
    /// The handshake was accepted.
    Open(Box<Peer>),
    /// The handshake was rejected.
    Rejected,
    /// The connection is closed; further bytes are ignored.
    Dead,
}

/// The state of a connection except its receive buffer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: ConnectionId,
    pub(super) pipe: Pipe,
    pub(super) stage: Stage,
    /// Whether a request is pending on the control pipe.
    pub(super) waiting: bool,
    /// The rules whose violations are reported once per connection, and have been.
    pub(super) reported: BTreeSet<Rule>,
}

impl Link {
    pub(super) fn peer(&self) -> Option<&Peer> {
        match &self.stage {
            Stage::Open(peer) => Some(peer),
            Stage::New | Stage::Rejected | Stage::Dead => None,
        }
    }

    /// Records a violation; returns whether it is the first of this rule on this connection.
    pub(super) fn is_first(&mut self, rule: Rule) -> bool {
        self.reported.insert(rule)
    }
}

/// A connection of an application.
#[derive(Debug)]
pub struct Connection {
    pub(super) reader: FrameReader,
    pub(super) link: Link,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, pipe: Pipe, reader: FrameReader) -> Self {
        let reported = BTreeSet::new();
        Self { reader, link: Link { id, pipe, stage: Stage::New, waiting: false, reported } }
    }

    /// Returns the id of the connection.
    pub fn id(&self) -> ConnectionId {
        self.link.id
    }

    /// Returns the pipe of the connection.
    pub fn pipe(&self) -> Pipe {
        self.link.pipe
    }

    /// Returns the process at the other end. `None` if no handshake was accepted.
    pub fn peer(&self) -> Option<&Peer> {
        self.link.peer()
    }

    /// Returns the offset and size of the incomplete frame; see [`FrameReader::unfinished`].
    pub fn unfinished(&self) -> Option<(u64, usize)> {
        self.reader.unfinished()
    }

    /// Returns whether [`handle_bytes`](super::Application::handle_bytes) of these bytes returns only the void reply,
    /// regardless of their content: they are one complete frame after the handshake. In this case, the reply can be
    /// written before the bytes are handled, so that the application is not delayed.
    pub fn is_void_due(&self, bytes: &[u8]) -> bool {
        let (Pipe::Data, Stage::Open(_), 0) = (self.link.pipe, &self.link.stage, self.reader.leftover())
        else {
            return false;
        };
        Frame::parse(bytes, self.reader.limits())
            .is_ok_and(|(frame, size)| size == bytes.len() && frame.id != MessageId::HANDSHAKE)
    }

    /// Returns the encoded answer to the pending request on the control pipe, or `None` if no request is pending. Each
    /// request has one answer. Closing the connection instead also cancels the session.
    pub fn control(&mut self, kind: ControlKind) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.link.waiting) {
            return None;
        }
        Message::ServerControl(ServerControl { kind: Some(kind) }).to_frame().ok()
    }
}
