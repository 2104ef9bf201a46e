//! Messages of F1: batches of events of one thread, drops, events with a message of their own, snapshots of counts and
//! coverage.

use runtap_bytefrog_proto::f1::{
    self, BatchEvent, BatchKind, Count, CountRows, DropReason, Hit, HitRows, MAX_ROWS, Rows,
};
use runtap_bytefrog_proto::{Dialect, Location, Message, Stamp};

use super::{Event, Stream};
use crate::lines::Line;
use crate::ring::EventKind;

/// The batch that is currently filled.
#[derive(Debug, Default)]
pub(super) struct Batch {
    base: u64,
    rows: Vec<[u8; 8]>,
}

impl Stream {
    pub(super) fn event_f1(&mut self, event: &Event) {
        let kind = match event.kind {
            EventKind::Entry => BatchKind::Entry,
            EventKind::Exit => BatchKind::Exit,
            _ => return self.write_single(event),
        };
        let batch = &mut self.batch;
        let fits = batch.rows.len() < MAX_ROWS as usize;
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
            self.write(connection, &Message::Batch(batch));
        }
        self.batch.rows = rows;
        self.batch.rows.clear();
    }

    fn write_single(&mut self, event: &Event) {
        self.end_batch();
        let Some((_, thread)) = &mut self.current else { return };
        let at = Stamp { time: event.time, sequence: thread.sequence, thread: thread.wire };
        thread.sequence += 1;
        let connection = thread.connection;
        let (method, exception) = (event.method, event.exception);
        let message = match event.kind {
            EventKind::Throw => Message::Exception { at, method, exception, line: event.line },
            _ => Message::Bubble { at, method, exception },
        };
        self.write(connection, &message);
    }

    pub(super) fn drop_f1(&mut self, time: u64, count: u64, reason: DropReason) {
        self.end_batch();
        let Some((_, thread)) = &mut self.current else { return };
        if self.dialect != Dialect::F1 {
            return;
        }
        let (connection, sequence) = (thread.connection, thread.sequence);
        let drop = f1::Drop { thread: thread.wire, sequence, time, count, reason };
        self.write(connection, &Message::Drop(drop));
    }

    /// Sends the counts of methods as one snapshot.
    pub(crate) fn counts(&mut self, time: u64, counts: &[Count], reset: bool) {
        if !self.is_f1() {
            return;
        }
        for count in counts {
            self.send_method_name(count.method);
        }
        let snapshot = self.snapshot;
        self.snapshot = self.snapshot.wrapping_add(1);
        let rows: Vec<[u8; 28]> = counts.iter().map(|count| count.to_bytes()).collect();
        let mut parts: Vec<&[[u8; 28]]> = rows.chunks(MAX_ROWS as usize).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let count = parts.len();
        for (number, part) in parts.into_iter().enumerate() {
            let last = number + 1 == count;
            let rows = CountRows { snapshot, time, last, reset: reset && last, rows: Rows::new(part) };
            self.write_to_first(&Message::Counts(rows));
        }
    }

    /// Sends the methods and lines that have run; lines with their ids.
    pub(crate) fn coverage(&mut self, time: u64, methods: &[u32], lines: &[(u32, Line)]) {
        if !self.is_f1() {
            return;
        }
        for method in methods.iter().chain(lines.iter().map(|(_, line)| &line.method)) {
            self.send_method_name(*method);
        }
        for (id, line) in lines {
            self.send_line_location(*id, *line);
        }
        let of_methods = methods.iter().map(|method| Hit { method: *method, location: None });
        let of_lines = lines.iter().map(|(id, line)| Hit { method: line.method, location: Some(*id) });
        let rows: Vec<[u8; 8]> = of_methods.chain(of_lines).map(Hit::to_bytes).collect();
        for part in rows.chunks(MAX_ROWS as usize) {
            self.write_to_first(&Message::Coverage(HitRows { time, rows: Rows::new(part) }));
        }
    }

    fn send_line_location(&mut self, id: u32, line: Line) {
        let at = id as usize;
        if self.sent_lines.len() <= at {
            self.sent_lines.resize(at + 1, false);
        }
        let Some(is_sent) = self.sent_lines.get_mut(at).filter(|is_sent| !**is_sent) else { return };
        *is_sent = true;
        let number = line.number.into();
        self.write_to_first(&Message::MapLocation(Location {
            location: id,
            method: line.method,
            start_line: number,
            end_line: number,
            start_char: u16::MAX,
            end_char: u16::MAX,
        }));
    }
}
