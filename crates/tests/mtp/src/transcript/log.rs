//! The lines of a connection in a transcript.

use std::sync::Arc;

use runtap_mtp_proto::render::Rendering;
use runtap_mtp_proto::server::Pipe;
use runtap_mtp_proto::{Frame as Wire, Limits};
use runtap_transcript::{Close, Direction, Frame, Journal, More};
use serde_json::Value;

use super::fields::listed;

/// The size in bytes above which a frame is written without its fields, which follow from its bytes.
const MAX_LISTED: usize = 1 << 20;

/// Writes the lines of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionLog {
    journal: Arc<Journal>,
    conn: String,
    pub(crate) pipe: Pipe,
}

impl ConnectionLog {
    /// Writes that a connection was opened.
    pub(crate) fn open(journal: &Arc<Journal>, pipe: Pipe) -> Self {
        let name = if pipe == Pipe::Control { "control" } else { "data" };
        let conn = journal.open(more([("pipe", name.into())]));
        Self { journal: Arc::clone(journal), conn, pipe }
    }

    /// Writes a complete frame, with further keys of its line.
    pub(crate) fn frame(&self, from: Direction, bytes: &[u8], more: More) {
        let wire = Wire::parse(bytes, Limits::default()).ok().map(|(wire, _)| wire);
        let fields = wire.filter(|_| bytes.len() <= MAX_LISTED).and_then(|wire| {
            let rendering = Rendering::new(&wire, Limits::default());
            listed(&rendering)
        });
        let frame = Frame {
            id: wire.map(|wire| wire.id.0.into()),
            name: wire.and_then(|wire| wire.id.name()).map(str::to_owned),
            hex: Some(bytes.to_vec()),
            fields,
            more,
            ..Frame::default()
        };
        self.journal.message(&self.conn, from, None, bytes.len(), frame);
    }

    /// Writes bytes that are not a frame; `what` names their kind.
    pub(crate) fn fragment(&self, from: Direction, bytes: &[u8], what: &'static str) {
        self.journal.fragment(&self.conn, from, bytes, what);
    }

    /// Writes that the connection was closed: the side, and the number of bytes of an incomplete frame.
    pub(crate) fn close(&self, side: Option<Direction>, leftover: usize, error: Option<String>) {
        let side = side.map(|side| self.journal.name_of(side).to_owned());
        let more = more([("leftover", leftover.into())]);
        self.journal.close(Close { conn: self.conn.clone(), side, error, more, ..Close::default() });
    }
}

/// Creates the additional keys of a line.
pub(crate) fn more<const N: usize>(keys: [(&str, Value); N]) -> More {
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
