//! A connection of a scripted host: sends frames, modified or not, and receives replies.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp_proto::host::{Connection, Reply as HostReply};
use runtap_mtp_proto::{ControlKind, FrameReader, Handshake, Limits, Message, MessageId};

use super::PlayError;
use super::words::Arguments;

/// How long the server may take to start listening: `dotnet test` listens only after starting its applications.
const PATIENCE: Duration = Duration::from_secs(10);

/// Modifications of frames: `next OPTIONS` for one, `always OPTIONS` for all following.
#[derive(Debug, Clone, Default)]
pub(super) struct Spoil {
    /// A different length field.
    length: Option<i32>,
    /// A different id.
    id: Option<i32>,
    /// Bytes to replace, and their offset.
    patch: Vec<(usize, Vec<u8>)>,
    /// Maximum number of bytes to send.
    cut: Option<usize>,
    /// Size of the pieces in which the frame is sent.
    split: Option<usize>,
    /// Whether not to wait for the reply.
    no_wait: bool,
    /// The expected reply.
    expect: Option<String>,
}

impl Spoil {
    /// Parses modifications and adds them to the existing ones.
    pub(super) fn read(mut self, words: &mut Arguments) -> Result<Self, PlayError> {
        self.length = words.number("length")?.or(self.length);
        self.id = words.number("id")?.or(self.id);
        self.cut = words.number("cut")?.or(self.cut);
        self.split = words.number("split")?.or(self.split);
        while let Some(patch) = words.get("patch") {
            let (at, bytes) = patch.split_once(':').ok_or("patch=OFFSET:HEX")?;
            let at = at.parse().map_err(|_no_number| format!("patch={patch}: no offset"))?;
            self.patch.push((at, super::bytes::bytes(&[bytes.to_owned()])?));
        }
        self.no_wait |= words.flag("no-wait");
        self.expect = words.get("expect").or(self.expect);
        Ok(self)
    }

    /// Disables waiting for the reply.
    pub(super) fn at_once(self) -> Self {
        Self { no_wait: true, ..self }
    }

    /// Returns whether a certain reply is expected.
    pub(super) fn expects(&self) -> bool {
        self.expect.is_some()
    }

    fn is_regular(&self) -> bool {
        let Self { length, id, patch, cut, no_wait, expect, .. } = self;
        length.is_none() && id.is_none() && patch.is_empty() && cut.is_none() && !no_wait && expect.is_none()
    }

    fn apply(&self, frame: &mut Vec<u8>) -> Result<(), PlayError> {
        let words = [(0, self.length), (4, self.id)];
        let words = words.into_iter().filter_map(|(at, value)| Some((at, value?.to_le_bytes().to_vec())));
        for (at, bytes) in words.chain(self.patch.iter().cloned()) {
            let place = frame.get_mut(at..at + bytes.len()).ok_or("patch: beyond the end of the frame")?;
            place.copy_from_slice(&bytes);
        }
        frame.truncate(self.cut.unwrap_or(usize::MAX));
        Ok(())
    }
}

/// A reply of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Accepted(Handshake),
    Rejected(Handshake),
    Void,
    Control(Option<ControlKind>),
    Other(MessageId),
    /// The server closed the connection.
    Closed,
    /// The reply was not waited for.
    Unknown,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted(_) => "accepted",
            Self::Rejected(_) => "rejected",
            Self::Void => "void",
            Self::Control(Some(ControlKind::CANCEL_SESSION)) => "cancel",
            Self::Control(_) => "control",
            Self::Other(id) => return id.fmt(f),
            Self::Closed => "closed",
            Self::Unknown => "nothing",
        })
    }
}

/// A connection to the server.
#[derive(Debug)]
pub(super) struct Link {
    pub stream: UnixStream,
    connection: Connection,
    /// Reads replies leniently after a frame that no host would send.
    reader: Option<FrameReader>,
    /// The reply to the handshake.
    pub greeting: Handshake,
}

impl Link {
    /// Connects repeatedly until the server listens, like hosts.
    pub(super) fn connect(path: &Path, connection: Connection) -> Result<Self, PlayError> {
        let started = Instant::now();
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => {
                    return Ok(Self { stream, connection, reader: None, greeting: Handshake::new() });
                }
                Err(error) if started.elapsed() > PATIENCE => {
                    return Err(format!("{}: {error}", path.display()).into());
                }
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Sends a message and returns the reply.
    pub(super) fn send(&mut self, message: &Message, spoil: &Spoil) -> Result<Reply, PlayError> {
        let regular = spoil.is_regular() && self.reader.is_none();
        let frame = regular.then(|| self.connection.request(message).ok()).flatten();
        let frame = if let Some(frame) = frame {
            frame
        } else {
            self.run_wild();
            message.to_frame().map_err(|error| error.to_string())?
        };
        self.transmit(frame, spoil)
    }

    /// Sends arbitrary bytes and returns the reply.
    pub(super) fn raw(&mut self, bytes: Vec<u8>, spoil: &Spoil) -> Result<Reply, PlayError> {
        self.run_wild();
        self.transmit(bytes, spoil)
    }

    fn run_wild(&mut self) {
        self.reader.get_or_insert_with(|| FrameReader::new(Limits::default()));
    }

    fn transmit(&mut self, mut bytes: Vec<u8>, spoil: &Spoil) -> Result<Reply, PlayError> {
        spoil.apply(&mut bytes)?;
        let size = spoil.split.unwrap_or(usize::MAX).max(1);
        let sent = bytes.chunks(size).try_for_each(|piece| self.stream.write_all(piece));
        let reply = match sent {
            Ok(()) if spoil.no_wait => return Ok(Reply::Unknown),
            Ok(()) => self.reply()?,
            Err(_) => Reply::Closed,
        };
        match &spoil.expect {
            Some(expected) if *expected != reply.to_string() && expected != "any" => {
                Err(PlayError::reply(format!("expected the reply {expected}, it is {reply}")))
            }
            None if reply == Reply::Closed => Err(PlayError::Closed),
            _ => Ok(reply),
        }
    }

    /// Waits for the next reply.
    pub(super) fn reply(&mut self) -> Result<Reply, PlayError> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(reader) = &mut self.reader
                && let Some(frame) =
                    reader.next_frame().map_err(|error| PlayError::reply(error.to_string()))?
            {
                let message = Message::decode(&frame, Limits::default());
                let reply = wild(message.map_err(|error| PlayError::reply(error.to_string()))?);
                self.note(&reply);
                return Ok(reply);
            }
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Reply::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The server closed the connection while sent bytes were unread.
                Err(_) => return Ok(Reply::Closed),
            };
            let bytes = &buffer[..count];
            if let Some(reader) = &mut self.reader {
                reader.feed(bytes);
                continue;
            }
            let reply =
                self.connection.handle_bytes(bytes).map_err(|error| PlayError::reply(error.to_string()))?;
            if let Some(reply) = reply {
                let reply = regular(reply);
                self.note(&reply);
                return Ok(reply);
            }
        }
    }

    fn note(&mut self, reply: &Reply) {
        if let Reply::Accepted(greeting) | Reply::Rejected(greeting) = reply {
            self.greeting = greeting.clone();
        }
    }
}

fn regular(reply: HostReply) -> Reply {
    match reply {
        HostReply::Accepted { handshake, .. } => Reply::Accepted(handshake),
        HostReply::Rejected(handshake) => Reply::Rejected(handshake),
        HostReply::Control(control) => Reply::Control(control.kind),
        _ => Reply::Void,
    }
}

fn wild(message: Message) -> Reply {
    match message {
        Message::Void => Reply::Void,
        Message::Handshake(handshake) if handshake.chosen_version().is_some() => Reply::Accepted(handshake),
        Message::Handshake(handshake) => Reply::Rejected(handshake),
        Message::ServerControl(control) => Reply::Control(control.kind),
        other => Reply::Other(other.id()),
    }
}
