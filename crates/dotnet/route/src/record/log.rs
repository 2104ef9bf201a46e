//! The recording of a connection: its lines in the transcript, and the files with the streams of its sessions.
//!
//! Data is written before it is forwarded. After a failed write of a line or stream, nothing follows: a transcript has no gaps.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_diag_proto::tap::{Piece, PieceKind, Side};
use runtap_diag_proto::{DecodeError, Request};
use runtap_transcript::{Close, Error, Field, Frame, Journal, More, create, to_hex};
use runtap_transport::{Descriptor, Peer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Way;
use super::describe::{Described, direction_of};
use super::passed::open_file;

/// The destination of session streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streams {
    /// A file for each stream, beside the transcript with this path: `PATH.CONN.nettrace`.
    Beside(PathBuf),
    /// The transcript, as hexadecimal digits.
    Inline,
}

/// Writes that a connection was opened.
pub(super) fn open(journal: &Arc<Journal>, streams: &Streams, peer: Peer, way: &Way) -> ConnectionLog {
    let is_port = matches!(way, Way::ToTool(_));
    let pid_key = if is_port { "runtime_pid" } else { "client_pid" };
    let mut more = More::new();
    more.extend(peer.pid.map(|pid| (pid_key.to_owned(), Value::from(pid))));
    ConnectionLog {
        conn: journal.open(more),
        received_at: [journal.now(); 2],
        journal: Arc::clone(journal),
        streams: streams.clone(),
        ended: [false; 2],
        stream: None,
    }
}

/// The file of a session's stream.
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

/// Records one connection.
pub(super) struct ConnectionLog {
    journal: Arc<Journal>,
    conn: String,
    streams: Streams,
    /// The times of the last data received from the client and from the runtime.
    received_at: [f64; 2],
    ended: [bool; 2],
    stream: Option<StreamFile>,
}

impl ConnectionLog {
    /// Returns the name of the connection in the transcript.
    pub(super) fn name(&self) -> &str {
        &self.conn
    }

    /// Notes the time at which data of this side was received, for the lines written next.
    pub(super) fn received(&mut self, from: Side) {
        let now = self.journal.now();
        let [client, runtime] = &mut self.received_at;
        *(if from == Side::Client { client } else { runtime }) = now;
    }

    fn received_at(&self, from: Side) -> f64 {
        let [client, runtime] = self.received_at;
        if from == Side::Client { client } else { runtime }
    }

    /// Records a piece.
    pub(super) fn piece(
        &mut self,
        piece: &Piece,
        request: Option<&Request>,
        error: Option<&DecodeError>,
        descriptors: &[Descriptor],
    ) {
        let described = Described::of(piece, request, error);
        let bytes = piece.bytes();
        let mut more = More::new();
        more.insert("what".to_owned(), Value::from(described.kind));
        if !descriptors.is_empty() {
            more.insert("descriptors".to_owned(), descriptors.iter().map(open_file).collect());
        }
        let mut hex = None;
        if piece.kind == PieceKind::Stream
            && let Streams::Beside(transcript) = self.streams.clone()
        {
            let Some((name, offset)) = self.write_stream(&transcript, bytes) else { return };
            more.insert("file".to_owned(), Value::from(name));
            more.insert("offset".to_owned(), Value::from(offset));
            more.insert("bytes".to_owned(), Value::from(bytes.len()));
        } else {
            hex = Some(bytes.to_vec());
        }
        let (id, name) = (described.id.map(i64::from), described.name.map(str::to_owned));
        let fields = Field::numbered(described.fields_to_keep());
        let frame = Frame { id, name, hex, fields, more, ..Frame::default() };
        let at = Some(self.received_at(piece.from));
        self.journal.message(&self.conn, direction_of(piece.from), at, bytes.len(), frame);
    }

    /// Writes a part of a stream to its file. Returns the name of the file and the offset of the part.
    fn write_stream(&mut self, transcript: &Path, bytes: &[u8]) -> Option<(String, u64)> {
        if self.journal.is_truncated() {
            return None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => match StreamFile::create(transcript, &self.conn) {
                Ok(stream) => {
                    self.journal.add_stream(stream.path.clone());
                    none.insert(stream)
                }
                Err(error) => {
                    self.journal.fail(error);
                    return None;
                }
            },
        };
        if let Err(error) = stream.file.write_all(bytes) {
            self.journal.fail(error.into());
            return None;
        }
        stream.hash.update(bytes);
        let offset = stream.bytes;
        stream.bytes = offset.saturating_add(bytes.len() as u64);
        Some((stream.name.clone(), offset))
    }

    /// Records that a side has stopped sending; `gone` tells whether it has closed.
    pub(super) fn end(&mut self, from: Side, gone: bool, error: Option<std::io::Error>) {
        let [client, runtime] = &mut self.ended;
        if std::mem::replace(if from == Side::Client { client } else { runtime }, true) {
            return;
        }
        let how = if gone { "closed" } else { "half-closed" };
        self.journal.close(Close {
            conn: self.conn.clone(),
            side: Some(self.journal.name_of(direction_of(from)).to_owned()),
            error: error.map(|error| error.to_string()),
            more: [("how".to_owned(), Value::from(how))].into_iter().collect(),
            ..Close::default()
        });
    }

    /// Records the end of the connection. Returns the path of the file with its stream.
    pub(super) fn finish(&mut self, error: Option<String>) -> Option<PathBuf> {
        let stream = self.stream.take();
        let mut more = More::new();
        let path = stream.map(|stream| {
            let digits = to_hex(&stream.hash.finalize());
            let summary = json!({ "file": stream.name, "bytes": stream.bytes, "sha256": digits });
            more.insert("stream".to_owned(), summary);
            stream.path
        });
        self.journal.close(Close { conn: self.conn.clone(), error, more, ..Close::default() });
        path
    }
}
