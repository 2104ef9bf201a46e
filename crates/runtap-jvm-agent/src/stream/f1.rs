//! Messages of F1: batches of one thread, drops, and events that have a message of their own.

use runtap_bytefrog_proto::f1::{self, BatchEvent, BatchKind, DropReason, MOST_ROWS, Rows};
use runtap_bytefrog_proto::{Dialect, Message, Stamp};

use super::{Event, Stream};
use crate::ring::Kind;

/// The batch that is being filled.
#[derive(Debug, Default)]
pub(super) struct Batch {
    base: u64,
    rows: Vec<[u8; 8]>,
}

impl Stream {
    pub(super) fn event_f1(&mut self, event: &Event) {
        let kind = match event.kind {
            Kind::Entry => BatchKind::Entry,
            Kind::Exit => BatchKind::Exit,
            _ => return self.alone(event),
        };
        let batch = &mut self.batch;
        let fits = batch.rows.len() < MOST_ROWS as usize;
        let delta = event.time.checked_sub(batch.base).and_then(|delta| u32::try_from(delta).ok());
        let delta = if let Some(delta) = delta.filter(|_| fits && !batch.rows.is_empty()) {
            delta
        } else {
            self.end_batch();
            self.batch.base = event.time;
            0
        };
        self.batch.rows.push(BatchEvent { kind, method: event.method, delta }.to_bytes());
    }

    /// Sends the batch.
    pub(super) fn end_batch(&mut self) {
        if self.batch.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.batch.rows);
        if let Some((_, thread)) = &mut self.current {
            let (wire, connection, sequence) = (thread.wire, thread.connection, thread.sequence);
            thread.sequence += rows.len() as u64;
            let batch = f1::Batch { thread: wire, sequence, base: self.batch.base, rows: Rows::new(&rows) };
            self.say(connection, &Message::Batch(batch));
        }
        self.batch.rows = rows;
        self.batch.rows.clear();
    }

    fn alone(&mut self, event: &Event) {
        self.end_batch();
        let Some((_, thread)) = &mut self.current else { return };
        let at = Stamp { time: event.time, sequence: thread.sequence, thread: thread.wire };
        thread.sequence += 1;
        let connection = thread.connection;
        let (method, exception) = (event.method, event.exception);
        let message = match event.kind {
            Kind::Throw => Message::Exception { at, method, exception, line: event.line },
            _ => Message::Bubble { at, method, exception },
        };
        self.say(connection, &message);
    }

    pub(super) fn drop_f1(&mut self, time: u64, count: u64, reason: DropReason) {
        self.end_batch();
        let Some((_, thread)) = &mut self.current else { return };
        if self.dialect != Dialect::F1 {
            return;
        }
        let (connection, sequence) = (thread.connection, thread.sequence);
        let drop = f1::Drop { thread: thread.wire, sequence, time, count, reason };
        self.say(connection, &Message::Drop(drop));
    }
}
