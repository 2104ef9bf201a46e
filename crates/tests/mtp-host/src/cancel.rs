//! Cancellation of a run, and notification of listeners.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The server requested it over the control pipe, or closed the control pipe.
    Server,
    /// The connection to the server is lost.
    ServerGone,
    /// The time of `--timeout` has passed.
    Timeout,
    /// The number of `--maximum-failed-tests` was reached.
    TooManyFailures,
    /// The application requested it.
    Application,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "the server canceled the run",
            Self::ServerGone => "the connection to the server is lost",
            Self::Timeout => "the run timed out",
            Self::TooManyFailures => "too many tests failed",
            Self::Application => "the application canceled the run",
        })
    }
}

type Listener = Box<dyn FnOnce(CancelReason) + Send>;

#[derive(Default)]
struct CancelState {
    reason: Option<CancelReason>,
    listeners: Vec<Listener>,
}

/// A cancellation request for the run. Clones share the request.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Whether there is a reason. Checked for each test without locking.
    is_requested: AtomicBool,
    state: Mutex<CancelState>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.reason()).finish()
    }
}

impl Cancel {
    /// Returns the reason why the run was canceled, or `None` if it was not.
    pub fn reason(&self) -> Option<CancelReason> {
        if self.0.is_requested.load(Ordering::Acquire) { self.state().reason } else { None }
    }

    /// Requests cancellation. Only the first reason is kept. Listeners are called in this thread.
    pub fn request(&self, reason: CancelReason) {
        let mut state = self.state();
        if state.reason.is_some() {
            return;
        }
        state.reason = Some(reason);
        self.0.is_requested.store(true, Ordering::Release);
        let listeners = std::mem::take(&mut state.listeners);
        drop(state);
        for listener in listeners {
            listener(reason);
        }
    }

    /// Registers a listener. `listener` is called once, in the thread that requests cancellation, or immediately if
    /// cancellation was already requested. `listener` must not block.
    pub fn listen(&self, listener: impl FnOnce(CancelReason) + Send + 'static) {
        let mut state = self.state();
        match state.reason {
            Some(reason) => {
                drop(state);
                listener(reason);
            }
            None => state.listeners.push(Box::new(listener)),
        }
    }

    fn state(&self) -> MutexGuard<'_, CancelState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_first_reason_is_kept_and_each_listener_is_called_once() {
        let cancel = Cancel::default();
        let (send, receive) = mpsc::channel();
        let early = send.clone();
        cancel.listen(move |reason| early.send(reason).unwrap());
        assert_eq!(cancel.reason(), None);
        cancel.request(CancelReason::Timeout);
        cancel.request(CancelReason::Server);
        cancel.listen(move |reason| send.send(reason).unwrap());
        assert_eq!(cancel.reason(), Some(CancelReason::Timeout));
        assert_eq!(receive.iter().collect::<Vec<_>>(), [CancelReason::Timeout; 2]);
    }
}
