//! One session, from CollectTracing to the end of its stream: its configuration, and the buffers of the program's
//! threads.
//!
//! Memory is bounded: an event without space is lost, at once or after a wait as the session requested, together with
//! its sequence number, so that the reader sees a gap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtap_diag_proto::{Buffering, SessionConfig, SessionId};
use runtap_nettrace::{MAX_PAYLOAD, MAX_STACK_DEPTH, Metadata};
use tokio::sync::{Notify, watch};

use crate::batch::Batch;
use crate::budget::MemoryBudget;
use crate::buffer::ThreadBuffer;
use crate::definition::{Definition, EventData};
use crate::event::current_thread_id;
use crate::filter::passes;
use crate::limits::Limits;
use crate::local::SessionEntry;
use crate::records::{Records, size_of_event};

/// The number of ended threads whose last sequence numbers are remembered: a new thread with the same id continues them,
/// so that readers do not take its first number for a loss.
const ENDED_THREADS: usize = 1 << 16;

/// The most bytes of arrays that an idle thread keeps.
const MAX_IDLE_BYTES: usize = 4 << 10;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    pub config: SessionConfig,
    bit: u64,
    memory: MemoryBudget,
    /// How long a thread waits for space.
    patience: Duration,
    /// Whether a thread has waited without success; other threads then do not wait until there is space again.
    overdue: AtomicBool,
    /// The thread that starts the session and later empties the buffers, which must not wait for itself.
    served_by: AtomicU64,
    threads: Mutex<Threads>,
    wake: Notify,
    gave_up: Notify,
    finished: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Threads {
    buffers: Vec<Arc<ThreadBuffer>>,
    /// The last sequence numbers of threads that have ended.
    ended: HashMap<u64, u32>,
    ending: bool,
}

/// The result of [`Session::drain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drained {
    /// No later event has a time up to this.
    pub until: u64,
    /// Whether the session was stopped and no events follow.
    pub last: bool,
    /// The last sequence number that each thread has tried to write, in this drain only, including ended threads.
    pub attempted: Vec<(u64, u32)>,
    /// The threads that have ended.
    pub ended: Vec<u64>,
}

impl Session {
    pub(crate) fn new(id: SessionId, place: usize, config: SessionConfig, limits: &Limits) -> Self {
        let asked = usize::try_from(config.buffer_mb).unwrap_or(usize::MAX).saturating_mul(1 << 20);
        let patience = match config.buffering {
            Buffering::Drop => Duration::ZERO,
            Buffering::Block => limits.blocked_writer,
        };
        Self {
            id,
            config,
            bit: 1 << place,
            memory: MemoryBudget::new(asked.min(limits.session_buffer)),
            patience,
            overdue: AtomicBool::new(false),
            served_by: AtomicU64::new(current_thread_id()),
            threads: Mutex::default(),
            wake: Notify::new(),
            gave_up: Notify::new(),
            finished: watch::Sender::new(false),
        }
    }

    /// Returns its bit in [`Definition::wanted_by`].
    pub(crate) fn bit(&self) -> u64 {
        self.bit
    }

    pub(crate) fn wants(&self, event: &Metadata) -> bool {
        passes(&self.config.providers, event)
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a buffer for a thread. `None` if the session has ended.
    pub(crate) fn register(&self, thread: u64) -> Option<Arc<ThreadBuffer>> {
        let mut threads = self.threads();
        if threads.ending {
            return None;
        }
        let buffer = Arc::new(ThreadBuffer::new(thread, threads.ended.remove(&thread).unwrap_or_default()));
        threads.buffers.push(Arc::clone(&buffer));
        Some(buffer)
    }

    /// Adds an event to a thread's buffer, which belongs to the writing thread `own`.
    pub(crate) fn push(
        own: &mut SessionEntry,
        definition: &Definition,
        data: &EventData<'_>,
        now: impl Fn() -> u64,
    ) {
        if let Some((session, buffer)) = own.parts() {
            session.push_to(buffer, definition, data, now);
        }
    }

    fn push_to(
        &self,
        buffer: &ThreadBuffer,
        definition: &Definition,
        data: &EventData<'_>,
        now: impl Fn() -> u64,
    ) {
        let stack = if self.config.stackwalk { data.stack } else { &[] };
        let stack = stack.get(..MAX_STACK_DEPTH).unwrap_or(stack);
        let size = size_of_event(data, stack);
        let mut held = buffer.lock();
        if held.closed {
            return;
        }
        held.sequence = held.sequence.wrapping_add(1);
        if data.payload.len() > MAX_PAYLOAD {
            return;
        }
        if held.left < size {
            let missing = size - held.left;
            match self.memory.take(missing) {
                Some(taken) => {
                    held.left += taken.bytes;
                    if taken.wake {
                        self.wake.notify_one();
                    }
                }
                None if self.may_wait() => {
                    // The reader's task needs the lock to free space.
                    drop(held);
                    let Some(taken) = self.wait_for_room(size) else { return };
                    held = buffer.lock();
                    held.left += taken;
                    if held.closed {
                        return;
                    }
                }
                None => return,
            }
        }
        held.left -= size;
        let sequence = held.sequence;
        // The time is read under the lock, so that the buffer is in order of time.
        held.records.push(definition, data, stack, sequence, now());
    }

    fn may_wait(&self) -> bool {
        !self.patience.is_zero()
            && !self.overdue.load(Ordering::Relaxed)
            && self.served_by.load(Ordering::Relaxed) != current_thread_id()
    }

    /// Waits until `bytes` bytes can be reserved. `None` after the time limit, or if the session has ended.
    fn wait_for_room(&self, bytes: usize) -> Option<usize> {
        // No deadline if it cannot be represented.
        let deadline = Instant::now().checked_add(self.patience)?;
        loop {
            let version = self.memory.version();
            if let Some(taken) = self.memory.take(bytes) {
                return Some(taken.bytes);
            }
            self.wake.notify_one();
            if self.threads().ending {
                return None;
            }
            if !self.memory.wait(version, deadline) {
                if !self.overdue.swap(true, Ordering::Relaxed) {
                    self.gave_up.notify_one();
                }
                return None;
            }
        }
    }

    /// Moves the buffered events into `batch`, in order.
    pub(crate) fn drain(&self, batch: &mut Batch, now: impl Fn() -> u64) -> Drained {
        self.served_by.store(current_thread_id(), Ordering::Relaxed);
        let mut threads = self.threads();
        let last = threads.ending;
        // Read before the first buffer is emptied: events that are added to an emptied buffer later are newer.
        let until = now();
        let (mut attempted, mut ended) = (Vec::new(), Vec::new());
        let Threads { buffers, ended: known_ends, .. } = &mut *threads;
        buffers.retain(|buffer| {
            // Checked first: a thread that has ended by now has written all its events. It is removed when none of its events
            // is left for a later drain.
            let is_alone = Arc::strong_count(buffer) == 1;
            let mut held = buffer.lock();
            let has_ended = is_alone && held.records.is_empty();
            self.memory.give_back(std::mem::take(&mut held.left));
            if !held.records.is_empty() {
                let records = std::mem::replace(&mut held.records, batch.spare());
                batch.add(buffer.thread, records);
            } else if held.records.capacity() > MAX_IDLE_BYTES {
                // An idle thread releases memory that busy threads can use.
                batch.keep(std::mem::take(&mut held.records));
            }
            if last || has_ended {
                attempted.push((buffer.thread, held.sequence));
            }
            if has_ended {
                ended.push(buffer.thread);
                if known_ends.len() < ENDED_THREADS {
                    known_ends.insert(buffer.thread, held.sequence);
                }
            }
            !has_ended
        });
        drop(threads);
        batch.order(if last { u64::MAX } else { until });
        Drained { until, last, attempted, ended }
    }

    /// Releases the memory of events that have left the buffers.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.memory.give_back(bytes);
        if bytes > 0 {
            self.overdue.store(false, Ordering::Relaxed);
        }
    }

    /// Stops accepting events and makes the reader's task finish the stream.
    pub(crate) fn stop(&self) {
        let mut threads = self.threads();
        threads.ending = true;
        for buffer in &threads.buffers {
            buffer.lock().closed = true;
        }
        drop(threads);
        self.memory.wake_all();
        self.wake.notify_one();
    }

    /// Completes when there is a reason to [`drain`](Self::drain) early.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Completes when a thread has waited for space without success.
    pub(crate) async fn gave_up(&self) {
        self.gave_up.notified().await;
    }

    /// Marks the stream as ended, complete or not, and drops all buffered events.
    pub(crate) fn finish(&self) {
        self.stop();
        let threads = std::mem::take(&mut *self.threads());
        // An idle thread may hold a reference to this session for long.
        self.threads().ending = true;
        for buffer in threads.buffers {
            buffer.lock().records = Records::default();
        }
        self.finished.send_replace(true);
    }

    /// Completes after [`finish`](Self::finish).
    pub(crate) async fn finished(&self) {
        // The sender is a field of the session, so it exists here.
        let _ = self.finished.subscribe().wait_for(|finished| *finished).await;
    }
}

#[cfg(test)]
mod tests;
