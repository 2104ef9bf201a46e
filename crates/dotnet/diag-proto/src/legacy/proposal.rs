//! The first proposal: a header of 20 bytes with a command split into set and id, opaque payloads, and a continuation
//! of any kind.
//!
//! ```text
//! 14 bytes "DOTNET_IPC_V1" NUL  u16 size of the whole message  u16 command  u16 reserved  payload
//! ```
//!
//! The command is **one** little-endian `u16` with the set in its upper byte, so the id is first on the wire; the
//! protocol that was shipped puts the set first. (The proposal lists the magic as `0x68, 0x79, 0x84, …`: those are the
//! decimal codes of the letters.) The proposal leaves the commands and the form of errors open, so the application
//! defines both.

use runtap_wire::DecodeError;

use crate::{
    EncodeError,
    message::{self, Frame, FrameError},
};

/// A command or answer: set in the upper byte, id in the lower. Any value can be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command(pub u16);

impl Command {
    /// `0x0100`, the proposal's example: starts a session whose stream follows.
    pub const START_STREAM_SESSION: Self = Self(0x0100);
    /// `0x0101`, the proposal's example: stops the session, over another connection.
    pub const STOP_STREAM_SESSION: Self = Self(0x0101);

    /// Creates a command from its set and id.
    pub const fn new(set: u8, id: u8) -> Self {
        Self(u16::from_be_bytes([set, id]))
    }

    /// Returns the set, which selects a service.
    pub const fn set(self) -> u8 {
        let [set, _] = self.0.to_be_bytes();
        set
    }

    /// Returns the id within the set.
    pub const fn id(self) -> u8 {
        let [_, id] = self.0.to_be_bytes();
        id
    }
}

/// A message, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The command.
    pub command: Command,
    /// The payload; opaque to the protocol.
    pub payload: Vec<u8>,
}

impl Message {
    /// Returns the complete message.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLong`] if the message is longer than 65,535 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        message::frame(message::Command(self.command.0.swap_bytes()), &self.payload)
    }
}

/// The outcome of reading the other side's message. Each connection yields exactly one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The message was received.
    Message(Message),
    /// The message is invalid. A server may answer with an error message of the application, and closes the connection.
    Invalid(DecodeError),
    /// The connection was closed before the message was complete.
    Closed {
        /// The number of bytes of the message that were received.
        received: usize,
    },
}

/// One end of a connection: a client sends its message and then reads one, a server reads one and then answers.
#[derive(Debug)]
pub struct Peer {
    /// `None` once the message was received or cannot arrive any more.
    frame: Option<Frame>,
    is_server: bool,
    may_reply: bool,
    transmit: Option<Vec<u8>>,
    event: Option<Event>,
}

impl Peer {
    /// Creates the client's end.
    ///
    /// # Errors
    /// If the message is too long.
    pub fn client(request: &Message) -> Result<Self, EncodeError> {
        let transmit = Some(request.to_bytes()?);
        Ok(Self { transmit, is_server: false, ..Self::server() })
    }

    /// Creates the server's end.
    pub fn server() -> Self {
        Self { frame: Some(Frame::default()), is_server: true, may_reply: false, transmit: None, event: None }
    }

    /// Consumes bytes from the other side and returns how many belonged to its message. The rest is the continuation,
    /// which the application reads.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> usize {
        let Some(frame) = &mut self.frame else { return 0 };
        match frame.feed(bytes) {
            Err(error) => {
                self.set_event(Event::Invalid(FrameError::into_inner(error)));
                bytes.len()
            }
            Ok(taken) => {
                if let Some((command, payload)) = frame.message() {
                    let command = Command(command.0.swap_bytes());
                    let message = Message { command, payload: payload.to_vec() };
                    self.set_event(Event::Message(message));
                }
                taken
            }
        }
    }

    /// Handles the end of the other side's data.
    pub fn handle_eof(&mut self) {
        if let Some(frame) = &self.frame {
            let received = frame.len();
            self.set_event(Event::Closed { received });
        }
    }

    /// Answers, once, after the other side's message was received.
    ///
    /// # Errors
    /// [`EncodeError::NothingToAnswer`] at any other time and for a client; an error if the message is too long.
    pub fn reply(&mut self, message: &Message) -> Result<(), EncodeError> {
        if !self.may_reply {
            return Err(EncodeError::NothingToAnswer);
        }
        self.transmit = Some(message.to_bytes()?);
        self.may_reply = false;
        Ok(())
    }

    /// Returns the bytes to write.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// Returns the outcome, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    fn set_event(&mut self, event: Event) {
        self.event = Some(event);
        self.frame = None;
        self.may_reply = self.is_server;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn start() -> Message {
        Message { command: Command::START_STREAM_SESSION, payload: b"config".to_vec() }
    }

    #[test]
    fn golden_bytes() {
        // The id comes first: the shipped protocol would have 01 00 here.
        assert_eq!(start().to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x1a\0\x00\x01\0\0config");
        let empty = Message { command: Command::STOP_STREAM_SESSION, payload: Vec::new() };
        assert_eq!(empty.to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x14\0\x01\x01\0\0");
    }

    #[test]
    fn a_command_is_split_in_two() {
        assert_eq!(Command::new(0x01, 0x01), Command::STOP_STREAM_SESSION);
        assert_eq!((Command(0x0203).set(), Command(0x0203).id()), (2, 3));
    }

    #[test]
    fn a_flow_with_a_continuation() {
        let mut client = Peer::client(&start()).unwrap();
        let mut server = Peer::server();
        let request = client.poll_transmit().unwrap();
        assert_eq!(server.reply(&start()), Err(EncodeError::NothingToAnswer));
        assert_eq!(server.handle_bytes(&request), request.len());
        assert_eq!(server.poll_event(), Some(Event::Message(start())));
        let started = Message { command: Command::new(0xff, 0), payload: vec![7] };
        server.reply(&started).unwrap();
        assert_eq!(server.reply(&started), Err(EncodeError::NothingToAnswer));
        let answer = [server.poll_transmit().unwrap(), b"Netperf".to_vec()].concat();
        assert_eq!(client.handle_bytes(&answer), answer.len() - 7, "the rest is the application's");
        assert_eq!(client.poll_event(), Some(Event::Message(started)));
        assert_eq!(client.handle_bytes(b"more"), 0);
        assert_eq!(client.reply(&start()), Err(EncodeError::NothingToAnswer), "it is a client");
    }

    #[test]
    fn invalid_messages_are_reported() {
        let heard = |bytes: &[u8]| {
            let mut server = Peer::server();
            server.handle_bytes(bytes);
            server.handle_eof();
            match server.poll_event().unwrap() {
                Event::Invalid(error) => error.to_string(),
                other => panic!("{other:?}"),
            }
        };
        // The bytes that a literal reading of the proposal's list gives.
        let literal = b"\x68\x79\x84\x78\x69\x84\x95\x73\x80\x67\x95\x86\x49\0\x14\0\0\x01\0\0";
        assert_eq!(heard(literal), "magic at offset 0: is not \"DOTNET_IPC_V1\"");
        assert_eq!(heard(b"DOTNET_IPC_V1\0\x13\0\0\x01\0\0"), "size at offset 14: is 19, less than 20");
        let long = Message { command: Command(0), payload: vec![0; 65_516] };
        assert_eq!(long.to_bytes(), Err(EncodeError::MessageTooLong { size: 65_536 }));
    }

    proptest! {
        #[test]
        fn messages_come_back_in_any_pieces(
            command: u16,
            payload in vec(any::<u8>(), 0..50),
            step in 1..30usize,
            cut in any::<prop::sample::Index>(),
        ) {
            let message = Message { command: Command(command), payload };
            let bytes = message.to_bytes().unwrap();
            let mut server = Peer::server();
            bytes.chunks(step).for_each(|part| assert_eq!(server.handle_bytes(part), part.len()));
            prop_assert_eq!(server.poll_event(), Some(Event::Message(message)));

            let received = cut.index(bytes.len());
            let mut server = Peer::server();
            server.handle_bytes(&bytes[..received]);
            prop_assert_eq!(server.poll_event(), None);
            server.handle_eof();
            prop_assert_eq!(server.poll_event(), Some(Event::Closed { received }));
        }
    }
}
