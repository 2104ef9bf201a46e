//! What was recorded, as it is played: connections with a request, and what the runtime sent after it.
//!
//! Messages are held, within a limit; streams are left in their files and read when they are sent (`data.rs`). Refuses a file
//! name that leads out of the transcript's directory.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_diag_proto::tap::{PieceKind, Side};
use runtap_diag_proto::{Request, SessionId, Verbatim};
use runtap_transcript::{Entry, Fields, Protocol as _, Reader, duration};
use thiserror::Error;

use super::data::Data;
use crate::record::{Described, DiagnosticIpc, Dissector, side_of};

/// What is held of one transcript: messages, and what is kept of each connection and frame.
const MOST_BYTES: u64 = 1 << 30;

/// A transcript that can't be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TalkError {
    /// It can't be read.
    #[error(transparent)]
    Transcript(#[from] runtap_transcript::Error),
    /// It is of something else.
    #[error("it is no transcript of Diagnostic IPC: its header says {0}")]
    OtherProtocol(String),
    /// A name that is none of a file beside it.
    #[error("line {line}: the stream's file {name:?} is not beside the transcript")]
    Elsewhere {
        /// The line.
        line: u64,
        /// The name.
        name: String,
    },
    /// A direction that is none.
    #[error("line {line}: field 'dir': is {dir:?}, not \"c2r\" or \"r2c\"")]
    Direction {
        /// The line.
        line: u64,
        /// What it says.
        dir: String,
    },
    /// A frame without bytes.
    #[error("line {line}: the frame has neither 'hex' nor 'file', 'offset' and 'bytes'")]
    NoBytes {
        /// The line.
        line: u64,
    },
    /// The file of a stream.
    #[error("{}: {source}", path.display())]
    Stream {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// More than is held.
    #[error("its messages and connections take up more than {MOST_BYTES} bytes")]
    TooLarge,
    /// There is nothing to play.
    #[error("there is no request in it")]
    Empty,
}

/// Something that the runtime has sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The line of it: what was recorded later has a greater one.
    pub(crate) line: u64,
    pub(crate) t: Duration,
    pub(crate) data: Data,
    pub(crate) is_stream: bool,
}

/// A recorded connection.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) conn: String,
    /// What a runtime that had dialled in said first.
    pub(crate) advertise: Option<Vec<u8>>,
    /// When the request was whole, and where.
    pub(crate) asked: Option<(Duration, u64)>,
    /// All that the client has sent.
    pub(crate) sent: Vec<u8>,
    /// The request alone.
    pub(crate) request_bytes: Vec<u8>,
    /// The request, if it was one.
    pub(crate) message: Option<Verbatim>,
    /// What it says.
    pub(crate) described: Option<Described>,
    pub(crate) answers: Vec<Answer>,
    /// What the reply says, variables included.
    pub(crate) reply: Fields,
    /// Whether there was a reply, and whether it was an error.
    pub(crate) replied: Option<bool>,
    /// The session that was started.
    pub(crate) session: Option<SessionId>,
    /// When the first request to stop that session was whole, and where.
    pub(crate) stopped: Option<(Duration, u64)>,
    /// The conversation whose session this request stops.
    pub(crate) stops: Option<usize>,
    /// Whether the runtime has ended it.
    pub(crate) runtime_ended: bool,
}

impl Conversation {
    /// What is asked, byte for byte; for what is no request, all that was sent.
    pub(crate) fn asked_bytes(&self) -> &[u8] {
        if self.message.is_some() { &self.request_bytes } else { &self.sent }
    }

    /// How many bytes the runtime has answered with.
    pub(crate) fn answer_bytes(&self) -> u64 {
        let length = |answer: &Answer| match &answer.data {
            Data::Held(bytes) => bytes.len() as u64,
            Data::Beside { length, .. } => *length,
        };
        self.answers.iter().map(length).fold(0, u64::saturating_add)
    }

    /// The request, if it is one that is known.
    pub(crate) fn request(&self) -> Option<Request> {
        self.message.as_ref().and_then(|message| message.to_request().ok())
    }
}

/// All of a transcript.
#[derive(Debug)]
pub struct Talk {
    pub(crate) conversations: Vec<Conversation>,
    /// The process, as its socket had it in its name.
    process: Option<(u32, u64)>,
    /// Whether the last line was cut off.
    is_cut: bool,
}

impl Talk {
    /// Reads a transcript whose streams are in this directory.
    ///
    /// # Errors
    /// See [`TalkError`].
    pub fn read(transcript: impl Read, directory: &Path) -> Result<Self, TalkError> {
        Self::read_within(transcript, directory, MOST_BYTES)
    }

    fn read_within(transcript: impl Read, directory: &Path, most: u64) -> Result<Self, TalkError> {
        let mut reader = Reader::new(transcript);
        let (conversations, names) = (Vec::new(), BTreeMap::new());
        let mut loader = Loader { directory, conversations, names, process: None, held: 0, most };
        while let Some(located) = reader.read()? {
            loader.entry(located.line, located.entry)?;
        }
        let Loader { mut conversations, process, .. } = loader;
        if conversations.iter().all(|conversation| conversation.asked.is_none()) {
            return Err(TalkError::Empty);
        }
        link_stops(&mut conversations);
        Ok(Self { conversations, process, is_cut: reader.cut().is_some() })
    }

    /// The process, as its socket had it in its name: its id and when it started.
    pub fn process(&self) -> Option<(u32, u64)> {
        self.process
    }

    /// Whether the last line was cut off: what it said is not played.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether the runtime had dialled in: as the runtime, it is played at a tool's port.
    pub fn dials_in(&self) -> bool {
        self.conversations.iter().any(|conversation| conversation.advertise.is_some())
    }
}

/// A connection without a byte, and its place among the names.
const CONNECTION: usize = size_of::<Conversation>() + size_of::<(String, (usize, Dissector))>();

struct Loader<'a> {
    directory: &'a Path,
    conversations: Vec<Conversation>,
    /// Where a name is now, and what takes its bytes apart.
    names: BTreeMap<String, (usize, Dissector)>,
    process: Option<(u32, u64)>,
    held: u64,
    most: u64,
}

impl Loader<'_> {
    fn entry(&mut self, line: u64, entry: Entry) -> Result<(), TalkError> {
        match entry {
            Entry::Header(header) => {
                let protocol = header.more.get("protocol").and_then(|it| it.as_str()).unwrap_or("none");
                if protocol != "diagnostic-ipc" {
                    return Err(TalkError::OtherProtocol(protocol.to_owned()));
                }
                let number = |key: &str| header.more.get(key).and_then(serde_json::Value::as_u64);
                let pid = number("process_id").and_then(|pid| u32::try_from(pid).ok());
                self.process = pid.zip(number("start_time"));
            }
            Entry::Open(open) => {
                self.hold(CONNECTION + 2 * open.conn.len())?;
                self.begin(open.conn);
            }
            Entry::Frame(frame) => {
                let unknown = || TalkError::Direction { line, dir: frame.dir.clone() };
                let side = side_of(DiagnosticIpc::direction(&frame.dir).ok_or_else(unknown)?);
                if !self.names.contains_key(&frame.conn) {
                    self.hold(CONNECTION + 2 * frame.conn.len())?;
                    self.begin(frame.conn.clone());
                }
                self.hold(size_of::<Answer>() + frame.hex.as_ref().map_or(0, Vec::len))?;
                let t = duration(frame.t);
                match &frame.hex {
                    Some(bytes) => self.bytes(&frame.conn, side, bytes, line, t),
                    None => self.beside(&frame, line, t)?,
                }
            }
            Entry::Close(close) => {
                let side = close.side.as_deref().and_then(DiagnosticIpc::direction).map(side_of);
                if let Some((index, dissector)) = self.names.get_mut(&close.conn)
                    && let Some(conversation) = self.conversations.get_mut(*index)
                    && let Some(side) = side
                {
                    conversation.runtime_ended |= side == Side::Runtime;
                    // What was cut off by it was passed on, and has a line of its own.
                    let _held = dissector.end(side);
                } else if side.is_none() {
                    self.names.remove(&close.conn);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts something that is held, of so many bytes.
    fn hold(&mut self, bytes: usize) -> Result<(), TalkError> {
        self.held = self.held.saturating_add(bytes as u64);
        if self.held > self.most { Err(TalkError::TooLarge) } else { Ok(()) }
    }

    fn begin(&mut self, conn: String) {
        self.names.insert(conn.clone(), (self.conversations.len(), Dissector::default()));
        self.conversations.push(Conversation { conn, ..Conversation::default() });
    }

    fn bytes(&mut self, conn: &str, side: Side, bytes: &[u8], line: u64, t: Duration) {
        let Some((index, dissector)) = self.names.get_mut(conn) else { return };
        let Some(conversation) = self.conversations.get_mut(*index) else { return };
        let pieces = dissector.handle(side, bytes);
        if side == Side::Client {
            conversation.sent.extend_from_slice(bytes);
            // What is no request counts when it is there, as one does when it is whole.
            conversation.asked.get_or_insert((t, line));
        } else if conversation.advertise.is_some()
            || !matches!(pieces.first(), Some((_, piece)) if matches!(piece.kind, PieceKind::Advertise(_)))
        {
            let is_stream = matches!(pieces.first(), Some((_, piece)) if piece.kind == PieceKind::Stream);
            conversation.answers.push(Answer { line, t, data: Data::Held(bytes.to_vec()), is_stream });
        } else {
            conversation.advertise = Some(bytes.to_vec());
        }
        for (described, piece) in pieces {
            if matches!(piece.kind, PieceKind::Request(_)) {
                conversation.request_bytes = piece.bytes().to_vec();
            }
            match piece.kind {
                PieceKind::Request(message) => {
                    conversation.asked = Some((t, line));
                    (conversation.message, conversation.described) = (Some(message), Some(described));
                }
                PieceKind::Reply(message) => {
                    conversation.replied = Some(message.command() == runtap_diag_proto::Command::ERROR);
                    conversation.session = match dissector.request() {
                        Some(
                            request @ (Request::CollectTracing { .. } | Request::CollectUserEvents { .. }),
                        ) => match message.to_reply(request) {
                            Ok(Ok(runtap_diag_proto::Reply::SessionStarted(id))) => Some(id),
                            _ => None,
                        },
                        _ => None,
                    };
                    conversation.reply.extend(described.fields);
                }
                PieceKind::Variables => conversation.reply.extend(described.fields),
                _ => {}
            }
        }
    }

    fn beside(&mut self, frame: &runtap_transcript::Frame, line: u64, t: Duration) -> Result<(), TalkError> {
        let number = |key: &str| frame.more.get(key).and_then(serde_json::Value::as_u64);
        let name = frame.more.get("file").and_then(serde_json::Value::as_str);
        let (Some(name), Some(offset), Some(length)) = (name, number("offset"), number("bytes")) else {
            return Err(TalkError::NoBytes { line });
        };
        if Path::new(name).file_name().is_none_or(|plain| plain != name) {
            return Err(TalkError::Elsewhere { line, name: name.to_owned() });
        }
        let data = Data::Beside { path: self.directory.join(name), offset, length };
        if let Some((index, _)) = self.names.get(&frame.conn)
            && let Some(conversation) = self.conversations.get_mut(*index)
        {
            conversation.answers.push(Answer { line, t, data, is_stream: true });
        }
        Ok(())
    }
}

/// Which request stops which session: the one that was started last with this id.
fn link_stops(conversations: &mut [Conversation]) {
    let mut by_line: Vec<usize> = (0..conversations.len()).collect();
    by_line.sort_by_key(|index| conversations.get(*index).and_then(|it| it.asked).map(|(_, line)| line));
    let mut sessions: BTreeMap<u64, usize> = BTreeMap::new();
    for index in by_line {
        let Some(conversation) = conversations.get_mut(index) else { continue };
        if let Some(id) = conversation.session {
            sessions.insert(id.0, index);
        }
        let Some(Request::StopTracing(id)) = conversation.request() else { continue };
        let Some(of) = sessions.get(&id.0).copied() else { continue };
        conversation.stops = Some(of);
        let asked = conversation.asked;
        if let Some(session) = conversations.get_mut(of) {
            session.stopped = session.stopped.or(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcript of connections and frames without a byte takes up memory, too.
    #[test]
    fn what_has_no_bytes_is_bounded() {
        let header = r#"{"kind":"header","t":0,"protocol":"diagnostic-ipc"}"#;
        let read = |line: &str, most| {
            let text = format!("{header}\n{}", format!("{line}\n").repeat(1000));
            Talk::read_within(text.as_bytes(), Path::new(""), most).unwrap_err()
        };
        let open = r#"{"kind":"open","t":0,"conn":"c"}"#;
        let frame = r#"{"kind":"frame","t":0,"conn":"c","dir":"r2c","hex":""}"#;
        let beside = r#"{"kind":"frame","t":0,"conn":"c","dir":"r2c","file":"f","offset":0,"bytes":9}"#;
        for line in [open, frame, beside] {
            assert!(matches!(read(line, 50_000), TalkError::TooLarge), "{line}");
            assert!(matches!(read(line, 1 << 30), TalkError::Empty), "{line}");
        }
    }
}
