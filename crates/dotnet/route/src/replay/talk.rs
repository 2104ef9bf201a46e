//! A recording prepared for replay: connections with a request, and the data that the runtime sent.
//!
//! Messages are held in memory, up to a limit; streams stay in their files and are read when sent (`data.rs`). File names that
//! lead out of the transcript's directory are rejected.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_diag_proto::tap::{PieceKind, Side};
use runtap_diag_proto::{Request, SessionId, Verbatim};
use runtap_model::order;
use runtap_transcript::{Entry, Fields, Protocol as _, Reader, duration};
use thiserror::Error;

use super::data::Data;
use crate::record::{Described, DiagnosticIpc, Dissector, side_of};

/// The maximum memory for one transcript: messages, and the state of each connection and frame.
const MAX_BYTES: u64 = 1 << 30;

/// An error that prevents a replay.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TalkError {
    /// The transcript can't be read.
    #[error(transparent)]
    Transcript(#[from] runtap_transcript::Error),
    /// The transcript is of another protocol.
    #[error("it is not a transcript of Diagnostic IPC: the protocol in its header is {0}")]
    OtherProtocol(String),
    /// The name of a stream's file is not in the transcript's directory.
    #[error("line {line}: the stream's file {name:?} is not beside the transcript")]
    Elsewhere {
        /// The number of the line.
        line: u64,
        /// The name of the file.
        name: String,
    },
    /// A direction is invalid.
    #[error("line {line}: field 'dir': is {dir:?}, not \"c2r\" or \"r2c\"")]
    Direction {
        /// The number of the line.
        line: u64,
        /// The value of `dir`.
        dir: String,
    },
    /// A frame has no bytes.
    #[error("line {line}: the frame has neither 'hex' nor 'file', 'offset' and 'bytes'")]
    NoBytes {
        /// The number of the line.
        line: u64,
    },
    /// The file of a stream can't be read.
    #[error("{}: {source}", path.display())]
    Stream {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The transcript exceeds the maximum memory.
    #[error("its messages and connections require more than {MAX_BYTES} bytes of memory")]
    TooLarge,
    /// The transcript has no requests.
    #[error("it contains no requests")]
    Empty,
}

/// Data that the runtime has sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The line of the transcript.
    pub(crate) line: u64,
    pub(crate) t: Duration,
    pub(crate) data: Data,
    pub(crate) is_stream: bool,
}

/// A recorded connection.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) conn: String,
    /// The advertise message, if the runtime connected to a port.
    pub(crate) advertise: Option<Vec<u8>>,
    /// The time and the line at which the request was complete.
    pub(crate) requested: Option<(Duration, u64)>,
    /// All bytes that the client has sent.
    pub(crate) sent: Vec<u8>,
    /// The bytes of the request.
    pub(crate) request_bytes: Vec<u8>,
    /// The request; `None` if the bytes are not a request.
    pub(crate) message: Option<Verbatim>,
    /// The description of the request.
    pub(crate) described: Option<Described>,
    pub(crate) answers: Vec<Answer>,
    /// The fields of the reply, including variables.
    pub(crate) reply: Fields,
    /// Whether the reply was an error; `None` if there was no reply.
    pub(crate) replied: Option<bool>,
    /// The id of the session that was started.
    pub(crate) session: Option<SessionId>,
    /// The time and the line at which the first request to stop this session was complete.
    pub(crate) stopped: Option<(Duration, u64)>,
    /// The index of the conversation whose session this request stops.
    pub(crate) stops: Option<usize>,
    /// Whether the runtime has closed the connection.
    pub(crate) runtime_ended: bool,
}

impl Conversation {
    /// Returns the bytes of the request; if it is not a request, all bytes that were sent.
    pub(crate) fn requested_bytes(&self) -> &[u8] {
        if self.message.is_some() { &self.request_bytes } else { &self.sent }
    }

    /// Returns the number of bytes that the runtime has sent.
    pub(crate) fn answer_bytes(&self) -> u64 {
        let length = |answer: &Answer| match &answer.data {
            Data::Held(bytes) => bytes.len() as u64,
            Data::Beside { length, .. } => *length,
        };
        self.answers.iter().map(length).fold(0, u64::saturating_add)
    }

    /// Returns the decoded request; `None` if the bytes are not a known request.
    pub(crate) fn request(&self) -> Option<Request> {
        self.message.as_ref().and_then(|message| message.to_request().ok())
    }
}

/// A transcript prepared for replay.
#[derive(Debug)]
pub struct Talk {
    pub(crate) conversations: Vec<Conversation>,
    /// The process id and start time in the name of the recorded socket.
    process: Option<(u32, u64)>,
    /// Whether the last line is incomplete.
    is_cut: bool,
}

impl Talk {
    /// Reads a transcript whose streams are in this directory.
    ///
    /// # Errors
    /// Fails with a [`TalkError`].
    pub fn read(transcript: impl Read, directory: &Path) -> Result<Self, TalkError> {
        Self::read_within(transcript, directory, MAX_BYTES)
    }

    fn read_within(transcript: impl Read, directory: &Path, limit: u64) -> Result<Self, TalkError> {
        let mut reader = Reader::new(transcript);
        let (conversations, names) = (Vec::new(), BTreeMap::new());
        let mut loader = TalkLoader { directory, conversations, names, process: None, held: 0, limit };
        while let Some(located) = reader.read()? {
            loader.entry(located.line, located.entry)?;
        }
        let TalkLoader { mut conversations, process, .. } = loader;
        if conversations.iter().all(|conversation| conversation.requested.is_none()) {
            return Err(TalkError::Empty);
        }
        link_stops(&mut conversations);
        Ok(Self { conversations, process, is_cut: reader.cut().is_some() })
    }

    /// Returns the id and start time of the recorded process, from the name of its socket.
    pub fn process(&self) -> Option<(u32, u64)> {
        self.process
    }

    /// Returns whether the last line is incomplete; it is not played then.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns whether the runtime connected to a tool's port. Its side is then played in the same way.
    pub fn connects_to_tool(&self) -> bool {
        self.conversations.iter().any(|conversation| conversation.advertise.is_some())
    }
}

/// The memory of a connection without data, and of its entry among the names.
const CONNECTION_SIZE: usize = size_of::<Conversation>() + size_of::<(String, (usize, Dissector))>();

struct TalkLoader<'a> {
    directory: &'a Path,
    conversations: Vec<Conversation>,
    /// The index of the current connection of each name, and its decoder.
    names: BTreeMap<String, (usize, Dissector)>,
    process: Option<(u32, u64)>,
    held: u64,
    limit: u64,
}

impl TalkLoader<'_> {
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
                self.hold(CONNECTION_SIZE + 2 * open.conn.len())?;
                self.begin(open.conn);
            }
            Entry::Frame(frame) => {
                let unknown = || TalkError::Direction { line, dir: frame.dir.clone() };
                let side = side_of(DiagnosticIpc::direction(&frame.dir).ok_or_else(unknown)?);
                if !self.names.contains_key(&frame.conn) {
                    self.hold(CONNECTION_SIZE + 2 * frame.conn.len())?;
                    self.begin(frame.conn.clone());
                }
                self.hold(size_of::<Answer>() + frame.hex.as_ref().map_or(0, Vec::len))?;
                let t = duration(frame.t);
                match &frame.hex {
                    Some(bytes) => self.bytes(&frame.conn, side, bytes, line, t),
                    None => self.send_stream_part(&frame, line, t)?,
                }
            }
            Entry::Close(close) => {
                let side = close.side.as_deref().and_then(DiagnosticIpc::direction).map(side_of);
                if let Some((index, dissector)) = self.names.get_mut(&close.conn)
                    && let Some(conversation) = self.conversations.get_mut(*index)
                    && let Some(side) = side
                {
                    conversation.runtime_ended |= side == Side::Runtime;
                    // Incomplete data was forwarded, and has a line of its own.
                    let _held = dissector.end(side);
                } else if side.is_none() {
                    self.names.remove(&close.conn);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Accounts for memory of this size.
    fn hold(&mut self, bytes: usize) -> Result<(), TalkError> {
        self.held = self.held.saturating_add(bytes as u64);
        if self.held > self.limit { Err(TalkError::TooLarge) } else { Ok(()) }
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
            // Bytes that are not a request count on arrival, a request when it is complete.
            conversation.requested.get_or_insert((t, line));
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
                    conversation.requested = Some((t, line));
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

    fn send_stream_part(
        &mut self,
        frame: &runtap_transcript::Frame,
        line: u64,
        t: Duration,
    ) -> Result<(), TalkError> {
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

/// Links each stop request to the session that it stops: the last one started with this id.
fn link_stops(conversations: &mut [Conversation]) {
    let mut by_line: Vec<usize> = (0..conversations.len()).collect();
    order::sort_by_key(&mut by_line, |index| {
        conversations.get(*index).and_then(|it| it.requested).map(|(_, line)| line)
    });
    let mut sessions: BTreeMap<u64, usize> = BTreeMap::new();
    for index in by_line {
        let Some(conversation) = conversations.get_mut(index) else { continue };
        if let Some(id) = conversation.session {
            sessions.insert(id.0, index);
        }
        let Some(Request::StopTracing(id)) = conversation.request() else { continue };
        let Some(of) = sessions.get(&id.0).copied() else { continue };
        conversation.stops = Some(of);
        let requested = conversation.requested;
        if let Some(session) = conversations.get_mut(of) {
            session.stopped = session.stopped.or(requested);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections and frames without data take memory too.
    #[test]
    fn connections_and_frames_without_data_are_bounded() {
        let header = r#"{"kind":"header","t":0,"protocol":"diagnostic-ipc"}"#;
        let read = |line: &str, limit| {
            let text = format!("{header}\n{}", format!("{line}\n").repeat(1000));
            Talk::read_within(text.as_bytes(), Path::new(""), limit).unwrap_err()
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
