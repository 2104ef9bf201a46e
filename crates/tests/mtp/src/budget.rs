//! Memory for messages that are not complete: one amount for all connections of an application. A large message has a share of
//! all of its bytes before they are read, in the order of asking; until then its connection is not read.
//!
//! No connection waits while it has a share, so those that have one can complete their messages. A connection that never
//! does keeps the others waiting for a limited time only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes up to which a message needs no share, and never waits.
pub(crate) const SMALL: usize = 256 << 10;
/// Bytes of all shares together.
const MOST: usize = 256 << 20;
/// How long a connection waits while no message is completed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a connection that waits looks again.
const STEP: Duration = Duration::from_millis(10);

/// The memory. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    most: usize,
    patience: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    /// Tickets of those that wait, the first in front.
    waiting: VecDeque<u64>,
    next_ticket: u64,
    /// How many shares were given back.
    given_back: u64,
    /// Complete messages that are being handled, which may take any time.
    handling: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MOST, PATIENCE)
    }
}

impl Budget {
    pub(crate) fn new(most: usize, patience: Duration) -> Self {
        Self { most, patience, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a share of `bytes`, but of no more than the whole budget.
    pub(crate) fn ask(&self, bytes: usize) -> Request {
        let mut state = self.state();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        let given_back = state.given_back;
        drop(state);
        let (budget, bytes) = (self.clone(), bytes.min(self.most));
        Request { left: self.patience, budget, bytes, ticket, given_back }
    }

    /// A complete message is handled until the guard is dropped: no one loses patience meanwhile.
    pub(crate) fn handling(&self) -> Handling {
        self.state().handling += 1;
        Handling(self.clone())
    }

    /// Why a connection has not got its share.
    pub(crate) fn exhausted(&self) -> String {
        format!(
            "the unfinished messages of its connections take {} MiB, which is the limit, and none was completed within {} s",
            self.most >> 20,
            self.patience.as_secs()
        )
    }
}

/// Memory for one message, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.used -= self.bytes;
        state.given_back += 1;
    }
}

/// See [`Budget::handling`].
#[derive(Debug)]
pub(crate) struct Handling(Budget);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.state().handling -= 1;
    }
}

/// A share that was asked for. Dropping it gives up the place in the queue.
#[derive(Debug)]
pub(crate) struct Request {
    budget: Budget,
    bytes: usize,
    ticket: u64,
    given_back: u64,
    /// What is left of the patience.
    left: Duration,
}

/// What becomes of a request for a share.
#[derive(Debug)]
enum Answer {
    Given(Share),
    Later,
    /// No message was completed for too long.
    Never,
}

impl Request {
    fn look(&mut self) -> Answer {
        let mut state = self.budget.state();
        let is_first = state.waiting.front() == Some(&self.ticket);
        if is_first && state.used + self.bytes <= self.budget.most {
            state.waiting.pop_front();
            state.used += self.bytes;
            return Answer::Given(Share { budget: self.budget.clone(), bytes: self.bytes });
        }
        if state.given_back != self.given_back {
            (self.given_back, self.left) = (state.given_back, self.budget.patience);
        }
        if state.handling > 0 {
            return Answer::Later;
        }
        if self.left.is_zero() {
            return Answer::Never;
        }
        self.left = self.left.saturating_sub(STEP);
        Answer::Later
    }

    /// Waits for the share. `None` if there was none for too long.
    pub(crate) fn wait(mut self) -> Option<Share> {
        loop {
            match self.look() {
                Answer::Given(share) => return Some(share),
                Answer::Later => thread::sleep(STEP),
                Answer::Never => return None,
            }
        }
    }

    /// As [`wait`](Self::wait), for tasks. While another task blocks their thread, this one loses no patience either.
    pub(crate) async fn wait_as_task(mut self) -> Option<Share> {
        loop {
            match self.look() {
                Answer::Given(share) => return Some(share),
                Answer::Later => tokio::time::sleep(STEP).await,
                Answer::Never => return None,
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.budget.state().waiting.retain(|ticket| *ticket != self.ticket);
    }
}

#[cfg(test)]
impl Budget {
    /// Bytes of all shares that are given, and how many requests wait.
    pub(crate) fn used(&self) -> (usize, usize) {
        let state = self.state();
        (state.used, state.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        Budget::new(100, 3 * STEP)
    }

    #[test]
    fn shares_are_given_in_the_order_of_asking() {
        let budget = budget();
        let first = budget.ask(60).wait().unwrap();
        let mut large = budget.ask(60);
        let mut small = budget.ask(10);
        assert!(matches!(large.look(), Answer::Later));
        // There would be room for it, but a stream of small ones would keep the large one waiting.
        assert!(matches!(small.look(), Answer::Later));
        assert_eq!(budget.used(), (60, 2));
        drop(first);
        let large = large.wait().unwrap();
        let small = small.wait().unwrap();
        assert_eq!(budget.used(), (70, 0));
        drop((large, small));
        // More than there is takes all of it.
        let all = budget.ask(1000).wait().unwrap();
        assert_eq!(budget.used(), (100, 0));
        drop(all);
    }

    #[test]
    fn patience_ends_only_while_no_message_is_completed_or_handled() {
        let budget = budget();
        let held = budget.ask(90).wait().unwrap();
        let short = budget.ask(10).wait().unwrap();
        let mut request = budget.ask(50);
        let handling = budget.handling();
        for _ in 0..10 {
            assert!(matches!(request.look(), Answer::Later));
        }
        drop(handling);
        for _ in 0..3 {
            assert!(matches!(request.look(), Answer::Later));
        }
        drop(short);
        for _ in 0..3 {
            assert!(matches!(request.look(), Answer::Later));
        }
        assert!(matches!(request.look(), Answer::Never));
        // It does not keep those behind it.
        let behind = budget.ask(10);
        drop(request);
        assert!(behind.wait().is_some());
        drop(held);
        assert_eq!(budget.used(), (0, 0));
    }
}
