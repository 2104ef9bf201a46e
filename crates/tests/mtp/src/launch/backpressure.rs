//! A bounded queue of signals about a process: producers block while it is full, so that a program that produces too
//! much output slows down itself.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Signal;

/// The capacity of the queue. Each signal is a chunk of output or a batch of a message's tests.
pub(super) const CAPACITY: usize = 64;

/// The sending side of the queue. Clones share the queue.
#[derive(Debug, Clone)]
pub(crate) struct BackpressureQueue {
    sender: Sender<Signal>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: usize,
    /// Whether producers no longer block.
    open: bool,
}

impl BackpressureQueue {
    pub(crate) fn new(send: Sender<Signal>) -> Self {
        Self { sender: send, shared: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal; blocks while the queue is full. Returns whether there is a receiver.
    pub(crate) fn send(&self, signal: Signal) -> bool {
        let mut state = self.state();
        while state.waiting >= CAPACITY && !state.open {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting += 1;
        drop(state);
        self.sender.send(signal).is_ok()
    }

    /// Sends a signal that belongs to a possibly endless stream. After [`open`](Self::open), drops the signal instead
    /// of blocking.
    pub(crate) fn send_or_drop(&self, signal: Signal) {
        let mut state = self.state();
        while state.waiting >= CAPACITY {
            if state.open {
                return;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting += 1;
        drop(state);
        // There may be no receiver any more.
        let _ = self.sender.send(signal);
    }

    /// Sends a signal without blocking: for signals that occur once, from threads that must not block.
    pub(crate) fn send_now(&self, signal: Signal) {
        self.state().waiting += 1;
        // There may be no receiver any more.
        let _ = self.sender.send(signal);
    }

    /// Records that a signal was received.
    pub(crate) fn received(&self) {
        let mut state = self.state();
        state.waiting = state.waiting.saturating_sub(1);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Unblocks all producers for good.
    pub(crate) fn open(&self) {
        self.state().open = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn producers_block_while_the_queue_is_full() {
        let (send, receive) = mpsc::channel();
        let queue = BackpressureQueue::new(send);
        let producer = queue.clone();
        let sending = thread::spawn(move || (0..3 * CAPACITY).all(|_| producer.send(Signal::OutputEnded)));
        for _ in 0..CAPACITY {
            receive.recv().unwrap();
        }
        // The next producer is blocked.
        assert!(receive.recv_timeout(std::time::Duration::from_millis(20)).is_err());
        // `send_now` does not block.
        queue.send_now(Signal::Exited);
        assert!(matches!(receive.recv().unwrap(), Signal::Exited));
        queue.received();
        queue.received();
        receive.recv().unwrap();
        queue.open();
        assert!(sending.join().unwrap());
        assert_eq!(receive.try_iter().count(), 2 * CAPACITY - 1);
    }

    #[test]
    fn endless_streams_are_dropped_when_the_queue_is_open() {
        let (send, receive) = mpsc::channel();
        let queue = BackpressureQueue::new(send);
        let producer = queue.clone();
        let sending = thread::spawn(move || {
            for _ in 0..3 * CAPACITY {
                producer.send_or_drop(Signal::OutputEnded);
            }
        });
        while receive.try_iter().count() == 0 {
            thread::yield_now();
        }
        assert!(!sending.is_finished());
        queue.open();
        sending.join().unwrap();
        assert!(receive.try_iter().count() <= CAPACITY);
    }
}
