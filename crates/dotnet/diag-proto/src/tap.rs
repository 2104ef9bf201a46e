//! Between a client and a runtime: what both say on one connection passes unchanged, and is said to be what it is.
//!
//! ```text
//!   client ──▶ handle_bytes(Client, …) ──▶ poll_transmit: Request │ Descriptor │ Other ────────────────────▶ runtime
//!          ◀── poll_transmit: Advertise │ Reply │ Variables │ Stream │ Other ◀── handle_bytes(Runtime, …) ◀──
//! ```
//!
//! For proxies: one that watches what tools do, or that shares a runtime among them. **What comes out is what came in**,
//! for each direction, whatever it was; only its pieces are others. A message passes when it is whole, in one piece: a
//! runtime that has got half of one serves nobody else until it has the rest. At most one message of each direction is
//! held back, [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes.
//!
//! What does not follow the protocol passes too, as [`What::Other`], and so does everything behind it. Whoever wants to
//! stop something does not write it. Refuses to change a byte, to answer, and to send a message that nobody has sent.

use std::collections::VecDeque;

use runtap_wire::{DecodeError, Reader};

use crate::{
    Advertise, HEADER_LEN, Reply, Request, Verbatim,
    message::{Frame, FrameError, continuation_size},
};

/// Who has sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The tool.
    Client,
    /// The program that is asked.
    Runtime,
}

/// What a piece is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A runtime that has dialled in says who it is.
    Advertise(Advertise),
    /// The request. [`Verbatim::to_request`] tells more.
    Request(Verbatim),
    /// The byte with which the descriptor of a session into `user_events` comes: **the descriptor is to be passed on with
    /// it**, in a message of its own.
    Descriptor,
    /// The reply. [`Verbatim::to_reply`] tells more.
    Reply(Verbatim),
    /// A part of the variables that follow the reply to ProcessEnvironment, of as many bytes as it has announced.
    Variables,
    /// A part of a session's stream.
    Stream,
    /// No part of the protocol, what the end of the connection has cut off, or what follows a reply to a request that is
    /// not known. [`Tap::error`] says why.
    Other,
}

/// A piece to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Who has sent it. It is for the other side.
    pub from: Side,
    /// What it is.
    pub what: What,
    /// Empty where `what` holds them.
    bytes: Vec<u8>,
}

impl Piece {
    /// What is to be written, in one write. Never empty.
    pub fn bytes(&self) -> &[u8] {
        match &self.what {
            What::Request(message) | What::Reply(message) => message.as_bytes(),
            _ => &self.bytes,
        }
    }
}

/// What is expected from the client.
#[derive(Debug)]
enum Upward {
    Request(Frame),
    Descriptor,
    Nothing,
}

/// What is expected from the runtime.
#[derive(Debug)]
enum Downward {
    Advertise(Vec<u8>),
    Reply(Frame),
    /// So many bytes more.
    Variables(u32),
    Stream,
    Nothing,
}

/// One connection that passes through.
///
/// After each `handle_*`, call [`poll_transmit`](Self::poll_transmit) until it gives nothing and write what it gave. When
/// one side has said its last word, close the other side for writing after that.
#[derive(Debug)]
pub struct Tap {
    upward: Upward,
    downward: Downward,
    /// What was asked, where it is known.
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
    /// A connection that the client has made.
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection that the runtime has made, to a port: it says who it is first.
    pub fn of_port() -> Self {
        Self { downward: Downward::Advertise(Vec::new()), ..Self::default() }
    }

    /// What was asked, as soon as that has passed and is known.
    pub fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Whether everything that is still to come from the runtime is a session's stream. It need not be handed over any
    /// more: whoever copies it from socket to socket passes the same bytes on.
    pub fn is_stream(&self) -> bool {
        matches!(self.downward, Downward::Stream)
    }

    /// Why what this side has sent could not be read, from [`What::Other`] on. `None`: so far it could, or there is just
    /// nothing known of it.
    pub fn error(&self, side: Side) -> Option<&DecodeError> {
        match side {
            Side::Client => self.client_error.as_ref(),
            Side::Runtime => self.runtime_error.as_ref(),
        }
    }

    /// Takes what a side has sent: all of it.
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

    /// A side will send nothing more. What was held back of it passes.
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
        self.pass(from, What::Other, held);
    }

    /// What is to be written next, and to whom; in the order in which it came.
    pub fn poll_transmit(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Takes a part of non-empty `bytes`, at least one of them.
    fn advance_upward(&mut self, bytes: &[u8]) -> usize {
        match &mut self.upward {
            Upward::Request(frame) => match collect(frame, bytes) {
                Collected::Part => bytes.len(),
                Collected::Whole(message, taken) => {
                    self.request = message.to_request().ok();
                    let descriptor = matches!(self.request, Some(Request::CollectUserEvents { .. }));
                    self.upward = if descriptor { Upward::Descriptor } else { Upward::Nothing };
                    self.pass_message(Side::Client, What::Request(message));
                    taken
                }
                Collected::Wrong(error, held, taken) => {
                    self.client_error = Some(error);
                    self.upward = Upward::Nothing;
                    self.pass(Side::Client, What::Other, held);
                    taken
                }
            },
            Upward::Descriptor => {
                self.upward = Upward::Nothing;
                self.pass_copy(Side::Client, What::Descriptor, bytes, 1)
            }
            Upward::Nothing => self.pass_copy(Side::Client, What::Other, bytes, bytes.len()),
        }
    }

    /// Takes a part of non-empty `bytes`, at least one of them.
    fn advance_downward(&mut self, bytes: &[u8]) -> usize {
        match &mut self.downward {
            Downward::Advertise(held) => {
                let taken = bytes.len().min(Advertise::LEN.saturating_sub(held.len()));
                held.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                match Advertise::decode(&mut Reader::new(held)) {
                    Err(error) if error.is_incomplete() => {}
                    advertise => {
                        let held = std::mem::take(held);
                        let what = match advertise {
                            Ok(advertise) => {
                                self.downward = Downward::Reply(Frame::default());
                                What::Advertise(advertise)
                            }
                            Err(error) => {
                                self.downward = Downward::Nothing;
                                self.runtime_error = Some(error);
                                What::Other
                            }
                        };
                        self.pass(Side::Runtime, what, held);
                    }
                }
                taken
            }
            Downward::Reply(frame) => match collect(frame, bytes) {
                Collected::Part => bytes.len(),
                Collected::Whole(message, taken) => {
                    self.downward = self.after(&message);
                    self.pass_message(Side::Runtime, What::Reply(message));
                    taken
                }
                Collected::Wrong(error, held, taken) => {
                    self.runtime_error = Some(error);
                    self.downward = Downward::Nothing;
                    self.pass(Side::Runtime, What::Other, held);
                    taken
                }
            },
            Downward::Variables(left) => {
                let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left = left.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
                if *left == 0 {
                    self.downward = Downward::Nothing;
                }
                self.pass_copy(Side::Runtime, What::Variables, bytes, taken)
            }
            Downward::Stream => self.pass_copy(Side::Runtime, What::Stream, bytes, bytes.len()),
            Downward::Nothing => self.pass_copy(Side::Runtime, What::Other, bytes, bytes.len()),
        }
    }

    /// What follows a reply.
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

    fn pass(&mut self, from: Side, what: What, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push_back(Piece { from, what, bytes });
        }
    }

    fn pass_message(&mut self, from: Side, what: What) {
        self.pieces.push_back(Piece { from, what, bytes: Vec::new() });
    }

    fn pass_copy(&mut self, from: Side, what: What, bytes: &[u8], taken: usize) -> usize {
        self.pass(from, what, bytes.get(..taken).unwrap_or_default().to_vec());
        taken
    }
}

/// What became of a message when bytes came.
enum Collected {
    /// All of them are held, and more is to come.
    Part,
    /// The message, and how many of them belong to it.
    Whole(Verbatim, usize),
    /// It is none: why, what was held of it, and how many of them are in that.
    Wrong(DecodeError, Vec<u8>, usize),
}

fn collect(frame: &mut Frame, bytes: &[u8]) -> Collected {
    let before = frame.len();
    let fed = frame.feed(bytes).map_err(FrameError::into_inner);
    let taken = frame.len().saturating_sub(before);
    let whole = std::mem::take(frame);
    if let Err(error) = fed {
        return Collected::Wrong(error, whole.into_bytes(), taken);
    }
    match Verbatim::collected(whole) {
        Ok(message) => Collected::Whole(message, taken),
        Err(part) => {
            *frame = part;
            Collected::Part
        }
    }
}
