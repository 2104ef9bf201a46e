//! The memory budget for incomplete messages of all connections of an application. A connection reserves a share for
//! all bytes of a large message before it reads them. Shares are granted in the order of the requests; a connection
//! without a share is not read.
//!
//! No connection waits while it holds a share, so connections with a share can complete their messages. A connection
//! that never completes its message delays the others only for a limited time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The size in bytes up to which a message needs no share and never waits.
pub(crate) const SMALL_MESSAGE_BYTES: usize = 256 << 10;
/// The maximum size of all shares together, in bytes.
const MAX_TOTAL_BYTES: usize = 256 << 20;
/// The time that a connection waits for a share while no message is completed.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Poll interval of a waiting connection.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The memory budget. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limit: usize,
    timeout: Duration,
    state: Arc<Mutex<BudgetState>>,
}

#[derive(Debug, Default)]
struct BudgetState {
    used: usize,
    /// The tickets of waiting requests, in order.
    waiting: VecDeque<u64>,
    next_ticket: u64,
    /// The number of shares that were returned.
    returned: u64,
    /// The number of complete messages that are being handled, which can take any time.
    handling: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_TOTAL_BYTES, DEFAULT_TIMEOUT)
    }
}

impl Budget {
    pub(crate) fn new(limit: usize, timeout: Duration) -> Self {
        Self { limit, timeout, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a share of `bytes`, limited to the whole budget.
    pub(crate) fn request(&self, bytes: usize) -> Request {
        let mut state = self.state();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        let returned = state.returned;
        drop(state);
        let (budget, bytes) = (self.clone(), bytes.min(self.limit));
        Request { left: self.timeout, budget, bytes, ticket, returned }
    }

    /// Marks a complete message as being handled until the guard is dropped. Requests do not time out meanwhile.
    pub(crate) fn handling(&self) -> HandlingGuard {
        self.state().handling += 1;
        HandlingGuard(self.clone())
    }

    /// Returns the reason why a connection got no share.
    pub(crate) fn exhausted(&self) -> String {
        format!(
            "the incomplete messages of its connections exceed the limit of {} MiB, and no message was completed within {} s",
            self.limit >> 20,
            self.timeout.as_secs()
        )
    }
}

/// A share of the budget for one message. Dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.used -= self.bytes;
        state.returned += 1;
    }
}

/// A guard that marks a message as being handled; see [`Budget::handling`].
#[derive(Debug)]
pub(crate) struct HandlingGuard(Budget);

impl Drop for HandlingGuard {
    fn drop(&mut self) {
        self.0.state().handling -= 1;
    }
}

/// A request for a share. Dropping it gives up its position in the queue.
#[derive(Debug)]
pub(crate) struct Request {
    budget: Budget,
    bytes: usize,
    ticket: u64,
    returned: u64,
    /// The remaining time.
    left: Duration,
}

/// The state of a request for a share.
#[derive(Debug)]
enum RequestState {
    Granted(Share),
    Pending,
    /// No message was completed before the time-out.
    TimedOut,
}

impl Request {
    fn poll(&mut self) -> RequestState {
        let mut state = self.budget.state();
        let is_first = state.waiting.front() == Some(&self.ticket);
        if is_first && state.used + self.bytes <= self.budget.limit {
            state.waiting.pop_front();
            state.used += self.bytes;
            return RequestState::Granted(Share { budget: self.budget.clone(), bytes: self.bytes });
        }
        if state.returned != self.returned {
            (self.returned, self.left) = (state.returned, self.budget.timeout);
        }
        if state.handling > 0 {
            return RequestState::Pending;
        }
        if self.left.is_zero() {
            return RequestState::TimedOut;
        }
        self.left = self.left.saturating_sub(POLL_INTERVAL);
        RequestState::Pending
    }

    /// Waits for the share. `None` if the request timed out.
    pub(crate) fn wait(mut self) -> Option<Share> {
        loop {
            match self.poll() {
                RequestState::Granted(share) => return Some(share),
                RequestState::Pending => thread::sleep(POLL_INTERVAL),
                RequestState::TimedOut => return None,
            }
        }
    }

    /// Like [`wait`](Self::wait), for async tasks. Time in which another task blocks the thread does not count.
    pub(crate) async fn wait_as_task(mut self) -> Option<Share> {
        loop {
            match self.poll() {
                RequestState::Granted(share) => return Some(share),
                RequestState::Pending => tokio::time::sleep(POLL_INTERVAL).await,
                RequestState::TimedOut => return None,
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
    /// Returns the size of all shares in bytes, and the number of waiting requests.
    pub(crate) fn used(&self) -> (usize, usize) {
        let state = self.state();
        (state.used, state.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        Budget::new(100, 3 * POLL_INTERVAL)
    }

    #[test]
    fn shares_are_granted_in_the_order_of_requests() {
        let budget = budget();
        let first = budget.request(60).wait().unwrap();
        let mut large = budget.request(60);
        let mut small = budget.request(10);
        assert!(matches!(large.poll(), RequestState::Pending));
        // The small request would fit, but a stream of small requests would starve the large one.
        assert!(matches!(small.poll(), RequestState::Pending));
        assert_eq!(budget.used(), (60, 2));
        drop(first);
        let large = large.wait().unwrap();
        let small = small.wait().unwrap();
        assert_eq!(budget.used(), (70, 0));
        drop((large, small));
        // A request above the limit takes the whole budget.
        let all = budget.request(1000).wait().unwrap();
        assert_eq!(budget.used(), (100, 0));
        drop(all);
    }

    #[test]
    fn requests_time_out_only_while_no_message_is_completed_or_handled() {
        let budget = budget();
        let held = budget.request(90).wait().unwrap();
        let short = budget.request(10).wait().unwrap();
        let mut request = budget.request(50);
        let handling = budget.handling();
        for _ in 0..10 {
            assert!(matches!(request.poll(), RequestState::Pending));
        }
        drop(handling);
        for _ in 0..3 {
            assert!(matches!(request.poll(), RequestState::Pending));
        }
        drop(short);
        for _ in 0..3 {
            assert!(matches!(request.poll(), RequestState::Pending));
        }
        assert!(matches!(request.poll(), RequestState::TimedOut));
        // A request that timed out does not block later requests.
        let behind = budget.request(10);
        drop(request);
        assert!(behind.wait().is_some());
        drop(held);
        assert_eq!(budget.used(), (0, 0));
    }
}
