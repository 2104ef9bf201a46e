//! What is written down: the lines of a transcript, and the files with the streams of sessions beside it.
//!
//! Everything is with the system before it is passed on. Once a line or a part of a stream could not be written nothing
//! follows: a transcript has no holes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use runtap_diag_proto::tap::{Piece, PieceKind, Side};
use runtap_diag_proto::{DecodeError, Request};
use runtap_transcript::{
    Close, Entry, Error, Exit, Field, Frame, Header, More, Open, Writer, create, seconds, to_hex,
};
use runtap_transport::{Descriptor, Peer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::connection::lock;
use super::describe::{Described, Direction};
use super::passed::open_file;

/// Where the streams of sessions go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streams {
    /// Into a file each, beside the transcript of this path: `PATH.CONN.nettrace`.
    Beside(PathBuf),
    /// Into the transcript, as digits.
    Inline,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections that were made.
    pub connections: u64,
    /// Messages and parts of streams.
    pub frames: u64,
    /// Bytes that passed, of both directions.
    pub bytes: u64,
    /// Files with streams, in the order in which they were begun.
    pub streams: Vec<PathBuf>,
    /// Whether something could not be written.
    pub is_cut: bool,
}

struct State {
    writer: Writer<Box<dyn Write + Send>>,
    totals: Totals,
    /// Failures that nobody was told of.
    failures: VecDeque<Error>,
}

/// A transcript that is being written by many connections.
pub struct Journal {
    state: Mutex<State>,
    started: Instant,
    streams: Streams,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("streams", &self.streams).finish_non_exhaustive()
    }
}

impl Journal {
    /// Begins a transcript: writes its first line.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(out: Box<dyn Write + Send>, streams: Streams, mut header: Header) -> Result<Self, Error> {
        header.role = Some("recorder".to_owned());
        header.more.insert("protocol".to_owned(), Value::from("diagnostic-ipc"));
        header.more.insert("version".to_owned(), Value::from(1));
        let mut writer = Writer::new(out);
        let started = Instant::now();
        writer.write(&Entry::Header(header))?;
        let state = State { writer, totals: Totals::default(), failures: VecDeque::new() };
        Ok(Self { state: Mutex::new(state), started, streams })
    }

    /// Writes the last line: the command's exit code, negative for a signal, if there was a command.
    pub fn end(&self, code: Option<i64>) {
        self.write(&Entry::Exit(Exit { t: self.now(), code, more: More::new() }));
    }

    pub(super) fn totals(&self) -> Totals {
        lock(&self.state).totals.clone()
    }

    pub(super) fn take_failure(&self) -> Option<Error> {
        lock(&self.state).failures.pop_front()
    }

    fn now(&self) -> f64 {
        seconds(self.started.elapsed())
    }

    fn write(&self, entry: &Entry) {
        let state = &mut *lock(&self.state);
        if state.totals.is_cut {
            return;
        }
        if let Err(error) = state.writer.write(entry) {
            state.totals.is_cut = true;
            state.failures.push_back(error);
        }
    }

    fn failed(&self, error: Error) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.totals.is_cut, true) {
            state.failures.push_back(error);
        }
    }

    /// A connection was made.
    pub(super) fn open(self: &Arc<Self>, conn: &str, peer: Peer, is_port: bool) -> ConnectionLog {
        let whose = if is_port { "runtime_pid" } else { "client_pid" };
        let mut more = More::new();
        more.extend(peer.pid.map(|pid| (whose.to_owned(), Value::from(pid))));
        lock(&self.state).totals.connections += 1;
        self.write(&Entry::Open(Open { t: self.now(), conn: conn.to_owned(), more }));
        ConnectionLog {
            journal: Arc::clone(self),
            conn: conn.to_owned(),
            heard: [self.now(); 2],
            ended: [false; 2],
            stream: None,
        }
    }
}

/// The stream of a session in a file of its own.
struct StreamFile {
    file: File,
    path: PathBuf,
    name: String,
    bytes: u64,
    hash: Sha256,
}

impl StreamFile {
    fn create(transcript: &Path, conn: &str) -> Result<Self, Error> {
        let mut name = transcript.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{conn}.nettrace"));
        let (file, path) = create(&transcript.with_file_name(&name))?;
        let name = name.to_string_lossy().into_owned();
        Ok(Self { file, path, name, bytes: 0, hash: Sha256::new() })
    }
}

/// What is written of one connection.
pub(super) struct ConnectionLog {
    journal: Arc<Journal>,
    conn: String,
    /// When something was last received, of the client and the runtime.
    heard: [f64; 2],
    ended: [bool; 2],
    stream: Option<StreamFile>,
}

impl ConnectionLog {
    /// Something has come from this side: the time of what is written next.
    pub(super) fn received(&mut self, from: Side) {
        let now = self.journal.now();
        let [client, runtime] = &mut self.heard;
        *(if from == Side::Client { client } else { runtime }) = now;
    }

    fn heard(&self, from: Side) -> f64 {
        let [client, runtime] = self.heard;
        if from == Side::Client { client } else { runtime }
    }

    /// A piece passes.
    pub(super) fn piece(
        &mut self,
        piece: &Piece,
        request: Option<&Request>,
        error: Option<&DecodeError>,
        descriptors: &[Descriptor],
    ) {
        let described = Described::of(piece, request, error);
        let bytes = piece.bytes();
        {
            let totals = &mut lock(&self.journal.state).totals;
            totals.frames += 1;
            totals.bytes += bytes.len() as u64;
        }
        let mut more = More::new();
        more.insert("what".to_owned(), Value::from(described.what));
        if !descriptors.is_empty() {
            more.insert("descriptors".to_owned(), descriptors.iter().map(open_file).collect());
        }
        let mut hex = None;
        if piece.kind == PieceKind::Stream
            && let Streams::Beside(transcript) = self.journal.streams.clone()
        {
            let Some((name, offset)) = self.beside(&transcript, bytes) else { return };
            more.insert("file".to_owned(), Value::from(name));
            more.insert("offset".to_owned(), Value::from(offset));
            more.insert("bytes".to_owned(), Value::from(bytes.len()));
        } else {
            hex = Some(bytes.to_vec());
        }
        let (id, name) = (described.id.map(i64::from), described.name.map(str::to_owned));
        let fields = described.fields_to_keep();
        let numbered = fields.into_iter().zip(0..).map(|((name, value), id)| Field { id, name, value });
        let frame = Frame {
            t: self.heard(piece.from),
            conn: self.conn.clone(),
            dir: Direction::of(piece.from).name().to_owned(),
            id,
            name,
            hex,
            fields: Some(numbered.collect()).filter(|fields: &Vec<Field>| !fields.is_empty()),
            more,
        };
        self.journal.write(&Entry::Frame(frame));
    }

    /// Writes a part of the stream into its file: the name of the file, and where the part is in it.
    fn beside(&mut self, transcript: &Path, bytes: &[u8]) -> Option<(String, u64)> {
        if lock(&self.journal.state).totals.is_cut {
            return None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => match StreamFile::create(transcript, &self.conn) {
                Ok(stream) => {
                    lock(&self.journal.state).totals.streams.push(stream.path.clone());
                    none.insert(stream)
                }
                Err(error) => {
                    self.journal.failed(error);
                    return None;
                }
            },
        };
        if let Err(error) = stream.file.write_all(bytes) {
            self.journal.failed(error.into());
            return None;
        }
        stream.hash.update(bytes);
        let offset = stream.bytes;
        stream.bytes = offset.saturating_add(bytes.len() as u64);
        Some((stream.name.clone(), offset))
    }

    /// One side has said its last word; `gone` if it does not listen any more either.
    pub(super) fn end(&mut self, from: Side, gone: bool, error: Option<std::io::Error>) {
        let [client, runtime] = &mut self.ended;
        if std::mem::replace(if from == Side::Client { client } else { runtime }, true) {
            return;
        }
        let how = if gone { "closed" } else { "half-closed" };
        let close = Close {
            t: self.journal.now(),
            conn: self.conn.clone(),
            side: Some(Direction::of(from).name().to_owned()),
            error: error.map(|error| error.to_string()),
            more: [("how".to_owned(), Value::from(how))].into_iter().collect(),
        };
        self.journal.write(&Entry::Close(close));
    }

    /// The connection is over. Gives the file with its stream.
    pub(super) fn finish(&mut self, error: Option<String>) -> Option<PathBuf> {
        let stream = self.stream.take();
        let mut more = More::new();
        let path = stream.map(|stream| {
            let digits = to_hex(&stream.hash.finalize());
            let said = json!({ "file": stream.name, "bytes": stream.bytes, "sha256": digits });
            more.insert("stream".to_owned(), said);
            stream.path
        });
        let close = Close { t: self.journal.now(), conn: self.conn.clone(), side: None, error, more };
        self.journal.write(&Entry::Close(close));
        path
    }
}
