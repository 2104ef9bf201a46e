//! One session's buffer: filled by any thread, emptied by the task that serves the session's reader.
//!
//! Bounded: an event that does not fit is lost, and its number with it, so that the reader sees a gap.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use runtap_diag_proto::{SessionConfig, SessionId};
use runtap_nettrace::{MAX_PAYLOAD, MAX_STACK_DEPTH, Metadata};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::definition::{Definition, EventData};
use crate::wanted::passes;

/// The reader's task is woken before its time when this much is waiting.
const WAKE_AT: usize = 1 << 20;

/// A session, from CollectTracing to the end of its stream.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    pub config: SessionConfig,
    bit: u64,
    limit: usize,
    buffer: Mutex<Buffer>,
    wake: Notify,
    finished: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Buffer {
    batch: Batch,
    /// The last number of each capture thread, lost events included.
    sequences: HashMap<u64, u32>,
    ending: bool,
}

/// Events in the order of their time stamps.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub records: Vec<Record>,
    stacks: Vec<u64>,
    payloads: Vec<u8>,
}

/// One event of a [`Batch`].
#[derive(Debug)]
pub(crate) struct Record {
    /// [`Definition::index`].
    pub definition: usize,
    pub timestamp: u64,
    pub thread_id: u64,
    pub capture_thread_id: u64,
    pub sequence: u32,
    pub activity_id: Option<Uuid>,
    pub related_activity_id: Option<Uuid>,
    stack: Range<usize>,
    payload: Range<usize>,
}

impl Batch {
    fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record>() + self.stacks.len() * 8 + self.payloads.len()
    }

    pub(crate) fn stack(&self, record: &Record) -> &[u64] {
        self.stacks.get(record.stack.clone()).unwrap_or_default()
    }

    pub(crate) fn payload(&self, record: &Record) -> &[u8] {
        self.payloads.get(record.payload.clone()).unwrap_or_default()
    }

    /// Forgets the events and keeps a moderate part of the memory.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.stacks.clear();
        self.payloads.clear();
        self.records.shrink_to(WAKE_AT / size_of::<Record>());
        self.stacks.shrink_to(WAKE_AT / 8);
        self.payloads.shrink_to(WAKE_AT);
    }
}

/// What [`Session::drain`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drained {
    /// No event that is still to come is older.
    pub until: u64,
    /// Nothing is to come any more: the session was stopped.
    pub last: bool,
}

impl Session {
    pub(crate) fn new(id: SessionId, place: usize, config: SessionConfig, most: usize) -> Self {
        let asked = usize::try_from(config.buffer_mb).unwrap_or(usize::MAX).saturating_mul(1 << 20);
        Self {
            id,
            config,
            bit: 1 << place,
            limit: asked.min(most),
            buffer: Mutex::default(),
            wake: Notify::new(),
            finished: watch::Sender::new(false),
        }
    }

    /// Its place in [`Definition::wanted_by`].
    pub(crate) fn bit(&self) -> u64 {
        self.bit
    }

    pub(crate) fn wants(&self, event: &Metadata) -> bool {
        passes(&self.config.providers, event)
    }

    pub(crate) fn push(
        &self,
        definition: &Definition,
        data: &EventData<'_>,
        writing_thread: u64,
        now: impl Fn() -> u64,
    ) {
        let stack = if self.config.stackwalk { data.stack } else { &[] };
        let stack = stack.get(..MAX_STACK_DEPTH).unwrap_or(stack);
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.ending {
            return;
        }
        let sequence = buffer.sequences.entry(writing_thread).or_default();
        *sequence = sequence.wrapping_add(1);
        let sequence = *sequence;
        let batch = &mut buffer.batch;
        let size = size_of::<Record>() + stack.len() * 8 + data.payload.len();
        let before = batch.bytes();
        if data.payload.len() > MAX_PAYLOAD || before + size > self.limit {
            return;
        }
        let stack_start = batch.stacks.len();
        batch.stacks.extend_from_slice(stack);
        let payload_start = batch.payloads.len();
        batch.payloads.extend_from_slice(data.payload);
        batch.records.push(Record {
            definition: definition.index,
            // Read under the lock, so that the buffer is in order of time.
            timestamp: now(),
            thread_id: data.thread_id.unwrap_or(writing_thread),
            capture_thread_id: writing_thread,
            sequence,
            activity_id: data.activity_id,
            related_activity_id: data.related_activity_id,
            stack: stack_start..batch.stacks.len(),
            payload: payload_start..batch.payloads.len(),
        });
        if before < WAKE_AT && before + size >= WAKE_AT {
            self.wake.notify_one();
        }
    }

    /// Exchanges what has gathered for the empty `batch`.
    pub(crate) fn drain(&self, batch: &mut Batch, now: impl Fn() -> u64) -> Drained {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut buffer.batch, batch);
        Drained { until: now(), last: buffer.ending }
    }

    /// Lets no more events in and has the reader's task finish the stream.
    pub(crate) fn stop(&self) {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner).ending = true;
        self.wake.notify_one();
    }

    /// Waits until there is a reason to [`drain`](Self::drain) early.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The stream is at its end, whole or cut.
    pub(crate) fn finish(&self) {
        self.finished.send_replace(true);
    }

    /// Waits for [`finish`](Self::finish).
    pub(crate) async fn finished(&self) {
        // The sender lives as long as the session.
        let _ = self.finished.subscribe().wait_for(|finished| *finished).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use runtap_diag_proto::{Level, Provider};

    use super::*;

    fn session(buffer: usize) -> Session {
        let config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
        Session::new(SessionId(1), 3, config, buffer)
    }

    fn definition() -> Definition {
        Definition { index: 5, metadata: Metadata::new("P", 1, "E"), wanted_by: AtomicU64::new(0) }
    }

    #[test]
    fn lost_events_leave_a_gap_in_their_threads_numbers() {
        let session = session(3 * size_of::<Record>() + 30);
        let push = |thread, payload: &[u8]| {
            let data = EventData { payload, ..EventData::default() };
            session.push(&definition(), &data, thread, || 7);
        };
        let numbers = |batch: &Batch| {
            batch.records.iter().map(|r| (r.capture_thread_id, r.sequence)).collect::<Vec<_>>()
        };
        let mut batch = Batch::default();
        push(1, &[0; 10]);
        push(1, &[0; 1000]);
        push(2, &[1; 10]);
        push(1, &[2; 10]);
        push(2, &[]);
        assert_eq!(session.drain(&mut batch, || 9), Drained { until: 9, last: false });
        assert_eq!(numbers(&batch), [(1, 1), (2, 1), (1, 3)]);
        assert_eq!(batch.payload(&batch.records[1]), [1; 10]);
        batch.clear();
        push(2, &[3]);
        session.stop();
        push(2, &[4]);
        assert_eq!(session.drain(&mut batch, || 9), Drained { until: 9, last: true });
        assert_eq!(numbers(&batch), [(2, 3)], "nothing comes after the stop");
    }

    #[test]
    fn payloads_that_the_format_cannot_carry_are_lost() {
        let session = session(1 << 20);
        for size in [MAX_PAYLOAD, MAX_PAYLOAD + 1] {
            let payload = vec![0; size];
            let data = EventData { payload: &payload, stack: &[1; 200], ..EventData::default() };
            session.push(&definition(), &data, 1, || 7);
        }
        let mut batch = Batch::default();
        session.drain(&mut batch, || 9);
        assert_eq!(batch.records.len(), 1);
        assert_eq!(batch.stack(&batch.records[0]), [1; MAX_STACK_DEPTH]);
    }

    #[test]
    fn sessions_without_stacks_keep_none() {
        let mut session = session(1 << 20);
        session.config.stackwalk = false;
        session.push(&definition(), &EventData { stack: &[1, 2], ..EventData::default() }, 1, || 7);
        let mut batch = Batch::default();
        session.drain(&mut batch, || 9);
        assert_eq!(batch.stack(&batch.records[0]), [0; 0]);
    }
}
