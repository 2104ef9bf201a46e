//! A tap between a client and a runtime: forwards both directions of one connection unchanged, and classifies the data.
//!
//! ```text
//!   client ──▶ handle_bytes(Client, …) ──▶ poll_transmit: Request │ Descriptor │ Other ────────────────────▶ runtime
//!          ◀── poll_transmit: Advertise │ Reply │ Variables │ Stream │ Other ◀── handle_bytes(Runtime, …) ◀──
//! ```
//!
//! For proxies that watch what tools do, or that share a runtime among tools. **The output of each direction equals its
//! input**, valid or not, but may be split differently. A message is forwarded only when it is complete, in one piece,
//! because a runtime that has half a message serves no other client until the rest arrives. At most one message of each
//! direction is held back, [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes.
//!
//! Data that does not follow the protocol is forwarded too, as [`PieceKind::Other`], and so is everything after it. To
//! block data, do not write it. A tap never changes a byte, answers, or sends a message of its own.

use std::collections::VecDeque;

use runtap_wire::{DecodeError, Reader};

use crate::{
    Advertise, HEADER_LEN, Reply, Request, Verbatim,
    message::{Frame, FrameError, continuation_size},
};

/// A side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client (the tool).
    Client,
    /// The runtime that executes the command.
    Runtime,
}

/// The kind of a piece of data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PieceKind {
    /// A runtime that has connected to a port identifies itself.
    Advertise(Advertise),
    /// The request. [`Verbatim::to_request`] decodes it.
    Request(Verbatim),
    /// The byte that carries the descriptor of a session into `user_events`: **forward the descriptor with it**, in a
    /// separate message.
    Descriptor,
    /// The reply. [`Verbatim::to_reply`] decodes it.
    Reply(Verbatim),
    /// A part of the variables that follow the reply to ProcessEnvironment, up to the announced size.
    Variables,
    /// A part of a session's stream.
    Stream,
    /// Data outside the protocol, a message that was truncated by the end of the connection, or data after the reply to an
    /// unknown request. [`Tap::error`] returns the reason.
    Other,
}

/// A piece of data to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The sender. Write the piece to the other side.
    pub from: Side,
    /// The kind of data.
    pub kind: PieceKind,
    /// Empty if `kind` holds the bytes.
    bytes: Vec<u8>,
}

impl Piece {
    /// Returns the bytes to write, in one write. Never empty.
    pub fn bytes(&self) -> &[u8] {
        match &self.kind {
            PieceKind::Request(message) | PieceKind::Reply(message) => message.as_bytes(),
            _ => &self.bytes,
        }
    }
}

/// PieceKind is expected from the client.
#[derive(Debug)]
enum Upward {
    Request(Frame),
    Descriptor,
    Nothing,
}

/// PieceKind is expected from the runtime.
#[derive(Debug)]
enum Downward {
    Advertise(Vec<u8>),
    Reply(Frame),
    /// The number of bytes that are still expected.
    Variables(u32),
    Stream,
    Nothing,
}

/// A connection that is forwarded.
///
/// After each `handle_*`, call [`poll_transmit`](Self::poll_transmit) until it returns `None` and write what it returned.
/// After the end of one side's data, then shut down writing to the other side.
#[derive(Debug)]
pub struct Tap {
    upward: Upward,
    downward: Downward,
    /// The request. `None` if it is incomplete or could not be decoded.
    request: Option<Request>,
    pieces: VecDeque<Piece>,
    client_error: Option<DecodeError>,
    runtime_error: Option<DecodeError>,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            upward: Upward::Request(Frame::default()),
            downward: Downward::Reply(Frame::default()),
            request: None,
            pieces: VecDeque::new(),
            client_error: None,
            runtime_error: None,
        }
    }
}

impl Tap {
    /// Creates a tap for a connection that the client opened.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a tap for a connection that a runtime opened to a port: the runtime identifies itself first.
    pub fn for_port() -> Self {
        Self { downward: Downward::Advertise(Vec::new()), ..Self::default() }
    }

    /// Returns the request. `None` if it is incomplete or could not be decoded.
    pub fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Returns whether all further data from the runtime is a session's stream. The caller may then copy it from socket to
    /// socket without this tap.
    pub fn is_stream(&self) -> bool {
        matches!(self.downward, Downward::Stream)
    }

    /// Returns why data of this side could not be decoded; everything since is [`PieceKind::Other`]. `None` if there was no
    /// error, or if the request is unknown.
    pub fn error(&self, side: Side) -> Option<&DecodeError> {
        match side {
            Side::Client => self.client_error.as_ref(),
            Side::Runtime => self.runtime_error.as_ref(),
        }
    }

    /// Handles bytes from one side. All of them are consumed.
    pub fn handle_bytes(&mut self, from: Side, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match from {
                Side::Client => self.advance_upward(rest),
                Side::Runtime => self.advance_downward(rest),
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Handles the end of one side's data. Data that was held back is forwarded.
    pub fn handle_eof(&mut self, from: Side) {
        let held = match from {
            Side::Client => match std::mem::replace(&mut self.upward, Upward::Nothing) {
                Upward::Request(frame) => frame.into_bytes(),
                Upward::Descriptor | Upward::Nothing => Vec::new(),
            },
            Side::Runtime => match std::mem::replace(&mut self.downward, Downward::Nothing) {
                Downward::Advertise(held) => held,
                Downward::Reply(frame) => frame.into_bytes(),
                Downward::Variables(_) | Downward::Stream | Downward::Nothing => Vec::new(),
            },
        };
        self.pass(from, PieceKind::Other, held);
    }

    /// Returns the next piece to write, in the order of arrival.
    pub fn poll_transmit(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Consumes at least one byte of the non-empty `bytes`, and returns how many.
    fn advance_upward(&mut self, bytes: &[u8]) -> usize {
        match &mut self.upward {
            Upward::Request(frame) => match collect(frame, bytes) {
                Collected::Incomplete => bytes.len(),
                Collected::Complete(message, taken) => {
                    self.request = message.to_request().ok();
                    let descriptor = matches!(self.request, Some(Request::CollectUserEvents { .. }));
                    self.upward = if descriptor { Upward::Descriptor } else { Upward::Nothing };
                    self.pass_message(Side::Client, PieceKind::Request(message));
                    taken
                }
                Collected::Invalid(error, held, taken) => {
                    self.client_error = Some(error);
                    self.upward = Upward::Nothing;
                    self.pass(Side::Client, PieceKind::Other, held);
                    taken
                }
            },
            Upward::Descriptor => {
                self.upward = Upward::Nothing;
                self.pass_copy(Side::Client, PieceKind::Descriptor, bytes, 1)
            }
            Upward::Nothing => self.pass_copy(Side::Client, PieceKind::Other, bytes, bytes.len()),
        }
    }

    /// Consumes at least one byte of the non-empty `bytes`, and returns how many.
    fn advance_downward(&mut self, bytes: &[u8]) -> usize {
        match &mut self.downward {
            Downward::Advertise(held) => {
                let taken = bytes.len().min(Advertise::LEN.saturating_sub(held.len()));
                held.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                match Advertise::decode(&mut Reader::new(held)) {
                    Err(error) if error.is_incomplete() => {}
                    advertise => {
                        let held = std::mem::take(held);
                        let kind = match advertise {
                            Ok(advertise) => {
                                self.downward = Downward::Reply(Frame::default());
                                PieceKind::Advertise(advertise)
                            }
                            Err(error) => {
                                self.downward = Downward::Nothing;
                                self.runtime_error = Some(error);
                                PieceKind::Other
                            }
                        };
                        self.pass(Side::Runtime, kind, held);
                    }
                }
                taken
            }
            Downward::Reply(frame) => match collect(frame, bytes) {
                Collected::Incomplete => bytes.len(),
                Collected::Complete(message, taken) => {
                    self.downward = self.after(&message);
                    self.pass_message(Side::Runtime, PieceKind::Reply(message));
                    taken
                }
                Collected::Invalid(error, held, taken) => {
                    self.runtime_error = Some(error);
                    self.downward = Downward::Nothing;
                    self.pass(Side::Runtime, PieceKind::Other, held);
                    taken
                }
            },
            Downward::Variables(left) => {
                let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
                if *left == 0 {
                    self.downward = Downward::Nothing;
                }
                self.pass_copy(Side::Runtime, PieceKind::Variables, bytes, taken)
            }
            Downward::Stream => self.pass_copy(Side::Runtime, PieceKind::Stream, bytes, bytes.len()),
            Downward::Nothing => self.pass_copy(Side::Runtime, PieceKind::Other, bytes, bytes.len()),
        }
    }

    /// Returns what follows a reply.
    fn after(&mut self, reply: &Verbatim) -> Downward {
        let Some(request) = &self.request else { return Downward::Nothing };
        match reply.to_reply(request) {
            Ok(Ok(Reply::SessionStarted(_))) if matches!(request, Request::CollectTracing { .. }) => {
                Downward::Stream
            }
            Ok(Ok(Reply::Environment(_))) => {
                let size = continuation_size(&mut Reader::at(reply.payload(), HEADER_LEN as u64));
                size.map_or(Downward::Nothing, Downward::Variables)
            }
            Ok(_) => Downward::Nothing,
            Err(error) => {
                self.runtime_error = Some(error);
                Downward::Nothing
            }
        }
    }

    fn pass(&mut self, from: Side, kind: PieceKind, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push_back(Piece { from, kind, bytes });
        }
    }

    fn pass_message(&mut self, from: Side, kind: PieceKind) {
        self.pieces.push_back(Piece { from, kind, bytes: Vec::new() });
    }

    fn pass_copy(&mut self, from: Side, kind: PieceKind, bytes: &[u8], taken: usize) -> usize {
        self.pass(from, kind, bytes.get(..taken).unwrap_or_default().to_vec());
        taken
    }
}

/// The progress of a message.
enum Collected {
    /// The message is incomplete; all bytes are held.
    Incomplete,
    /// The message is complete. The number is how many of the new bytes belong to it.
    Complete(Verbatim, usize),
    /// The message is invalid: the reason, the held bytes, and how many of the new bytes are among them.
    Invalid(DecodeError, Vec<u8>, usize),
}

fn collect(frame: &mut Frame, bytes: &[u8]) -> Collected {
    let before = frame.len();
    let fed = frame.feed(bytes).map_err(FrameError::into_inner);
    let taken = frame.len().saturating_sub(before);
    let collected = std::mem::take(frame);
    if let Err(error) = fed {
        return Collected::Invalid(error, collected.into_bytes(), taken);
    }
    match Verbatim::collected(collected) {
        Ok(message) => Collected::Complete(message, taken),
        Err(part) => {
            *frame = part;
            Collected::Incomplete
        }
    }
}
