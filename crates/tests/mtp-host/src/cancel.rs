//! Whether the run is to end before its last test, and who is told.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a run ends before its last test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The server has asked for it over the control pipe, or has closed that.
    Server,
    /// The server is gone.
    ServerGone,
    /// `--timeout` is over.
    Timeout,
    /// `--maximum-failed-tests` have failed.
    TooManyFailures,
    /// The application itself wants it.
    Application,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "the server has cancelled the run",
            Self::ServerGone => "the server is gone",
            Self::Timeout => "the run has taken too long",
            Self::TooManyFailures => "too many tests have failed",
            Self::Application => "the application has cancelled the run",
        })
    }
}

type Listener = Box<dyn FnOnce(CancelReason) + Send>;

#[derive(Default)]
struct State {
    reason: Option<CancelReason>,
    listeners: Vec<Listener>,
}

/// A request to end the run. Clones are the same request.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Whether there is a reason: each test asks.
    is_requested: AtomicBool,
    state: Mutex<State>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.reason()).finish()
    }
}

impl Cancel {
    /// Why the run is to end, if it is.
    pub fn reason(&self) -> Option<CancelReason> {
        if self.0.is_requested.load(Ordering::Acquire) { self.state().reason } else { None }
    }

    /// Asks for it. The first reason counts; listeners are called in this thread.
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

    /// Has `listener` called once, in whichever thread learns it: at once if the run is to end already. It must not wait.
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_first_reason_counts_and_each_listener_hears_it_once() {
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
