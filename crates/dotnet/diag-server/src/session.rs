//! One session, from CollectTracing to the end of its stream: what it wants, and the buffers in which the program's threads
//! leave it.
//!
//! Bounded: an event for which there is no room is lost, at once or after a while as the session asked for, and its number
//! with it, so that the reader sees a gap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtap_diag_proto::{Buffering, SessionConfig, SessionId};
use runtap_nettrace::{MAX_PAYLOAD, MAX_STACK_DEPTH, Metadata};
use tokio::sync::{Notify, watch};

use crate::batch::Batch;
use crate::buffer::ThreadBuffer;
use crate::definition::{Definition, EventData};
use crate::event::current_thread_id;
use crate::limits::Limits;
use crate::local::OfSession;
use crate::records::{Records, size_of_event};
use crate::room::Room;
use crate::wanted::passes;

/// Ended threads whose last numbers are remembered: a new thread with the same id goes on behind them, so that readers
/// don't take its first number for a loss.
const ENDED_THREADS: usize = 1 << 16;

/// Bytes of arrays that a thread keeps when it has written nothing for a while.
const KEPT_BY_IDLE: usize = 4 << 10;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    pub config: SessionConfig,
    bit: u64,
    room: Room,
    /// How long a thread waits for room.
    patience: Duration,
    /// A thread has waited in vain: the others do not wait until there is room again.
    overdue: AtomicBool,
    /// The thread that starts the session, and later the one that empties the buffers: it must not wait for itself.
    served_by: AtomicU64,
    threads: Mutex<Threads>,
    wake: Notify,
    gave_up: Notify,
    finished: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Threads {
    buffers: Vec<Arc<ThreadBuffer>>,
    /// Numbers of the last events of threads that have ended.
    ended: HashMap<u64, u32>,
    ending: bool,
}

/// What [`Session::drain`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drained {
    /// No event that is still to come is as old.
    pub until: u64,
    /// Nothing is to come any more: the session was stopped.
    pub last: bool,
    /// Number of the last event that each thread has tried to write. Only of the last time, and of threads that have ended.
    pub attempted: Vec<(u64, u32)>,
    /// Threads that have ended.
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
            room: Room::new(asked.min(limits.session_buffer)),
            patience,
            overdue: AtomicBool::new(false),
            served_by: AtomicU64::new(current_thread_id()),
            threads: Mutex::default(),
            wake: Notify::new(),
            gave_up: Notify::new(),
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

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer for a thread. `None`: the session takes no more.
    pub(crate) fn register(&self, thread: u64) -> Option<Arc<ThreadBuffer>> {
        let mut threads = self.threads();
        if threads.ending {
            return None;
        }
        let buffer = Arc::new(ThreadBuffer::new(thread, threads.ended.remove(&thread).unwrap_or_default()));
        threads.buffers.push(Arc::clone(&buffer));
        Some(buffer)
    }

    /// Puts an event into a thread's buffer, which is `own`'s.
    pub(crate) fn push(
        own: &mut OfSession,
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
            match self.room.take(missing) {
                Some(taken) => {
                    held.left += taken.bytes;
                    if taken.wake {
                        self.wake.notify_one();
                    }
                }
                None if self.may_wait() => {
                    // The reader's task needs the lock to make room.
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

    /// Takes so many bytes as soon as they are there. `None`: they were not within the time, or the session has ended.
    fn wait_for_room(&self, bytes: usize) -> Option<usize> {
        // Beyond what a clock can tell there is no deadline.
        let deadline = Instant::now().checked_add(self.patience)?;
        loop {
            let version = self.room.version();
            if let Some(taken) = self.room.take(bytes) {
                return Some(taken.bytes);
            }
            self.wake.notify_one();
            if self.threads().ending {
                return None;
            }
            if !self.room.wait(version, deadline) {
                if !self.overdue.swap(true, Ordering::Relaxed) {
                    self.gave_up.notify_one();
                }
                return None;
            }
        }
    }

    /// Moves what has gathered into `batch`, in order.
    pub(crate) fn drain(&self, batch: &mut Batch, now: impl Fn() -> u64) -> Drained {
        self.served_by.store(current_thread_id(), Ordering::Relaxed);
        let mut threads = self.threads();
        let last = threads.ending;
        // Before the first buffer is looked at: what comes into one behind our back is younger.
        let until = now();
        let (mut attempted, mut ended) = (Vec::new(), Vec::new());
        let Threads { buffers, ended: known_ends, .. } = &mut *threads;
        buffers.retain(|buffer| {
            // Asked first: a thread that is seen to have ended here has written everything. It is forgotten when nothing of
            // it is left that could come after this.
            let is_alone = Arc::strong_count(buffer) == 1;
            let mut held = buffer.lock();
            let has_ended = is_alone && held.records.is_empty();
            self.room.give_back(std::mem::take(&mut held.left));
            if !held.records.is_empty() {
                let records = std::mem::replace(&mut held.records, batch.spare());
                batch.add(buffer.thread, records);
            } else if held.records.capacity() > KEPT_BY_IDLE {
                // A thread that has gone quiet does not keep what the next busy one can use.
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

    /// So many bytes of events have left the buffers for good.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.room.give_back(bytes);
        if bytes > 0 {
            self.overdue.store(false, Ordering::Relaxed);
        }
    }

    /// Lets no more events in and has the reader's task finish the stream.
    pub(crate) fn stop(&self) {
        let mut threads = self.threads();
        threads.ending = true;
        for buffer in &threads.buffers {
            buffer.lock().closed = true;
        }
        drop(threads);
        self.room.wake_all();
        self.wake.notify_one();
    }

    /// Waits until there is a reason to [`drain`](Self::drain) early.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Waits until a thread that was to wait for room has done so in vain.
    pub(crate) async fn gave_up(&self) {
        self.gave_up.notified().await;
    }

    /// The stream is at its end, whole or cut: nothing is kept for it any more.
    pub(crate) fn finish(&self) {
        self.stop();
        let threads = std::mem::take(&mut *self.threads());
        // Who writes nothing any more may remember this session for long.
        self.threads().ending = true;
        for buffer in threads.buffers {
            buffer.lock().records = Records::default();
        }
        self.finished.send_replace(true);
    }

    /// Waits for [`finish`](Self::finish).
    pub(crate) async fn finished(&self) {
        // The sender lives as long as the session.
        let _ = self.finished.subscribe().wait_for(|finished| *finished).await;
    }
}

#[cfg(test)]
mod tests;
