//! What is said about a process goes through here: who says more than is listened to has to wait, so that a program that
//! floods us slows itself down and not us.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Happening;

/// So many happenings may wait: each is a piece of output or a batch of a message's tests.
pub(super) const MOST: usize = 64;

/// The way in. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    send: Sender<Happening>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// Nobody has to wait any more.
    open: bool,
}

impl Gate {
    pub(crate) fn new(send: Sender<Happening>) -> Self {
        Self { send, shared: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says it when it is listened to. Returns whether anybody does.
    pub(crate) fn say(&self, happening: Happening) -> bool {
        let mut state = self.state();
        while state.waiting >= MOST && !state.open {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting += 1;
        drop(state);
        self.send.send(happening).is_ok()
    }

    /// The same for what may come without an end: when nobody has to wait any more, what would have to is left out.
    pub(crate) fn say_or_leave_out(&self, happening: Happening) {
        let mut state = self.state();
        while state.waiting >= MOST {
            if state.open {
                return;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting += 1;
        drop(state);
        // Without a listener there is nobody to be told.
        let _ = self.send.send(happening);
    }

    /// Says it at once: for what is said once, and by whom must not wait.
    pub(crate) fn say_at_once(&self, happening: Happening) {
        self.state().waiting += 1;
        // Without a listener there is nobody to be told.
        let _ = self.send.send(happening);
    }

    /// One was listened to.
    pub(crate) fn heard(&self) {
        let mut state = self.state();
        state.waiting = state.waiting.saturating_sub(1);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Lets everybody through, for good.
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
    fn who_says_too_much_waits_until_it_is_heard() {
        let (send, receive) = mpsc::channel();
        let gate = Gate::new(send);
        let speaking = gate.clone();
        let speaker = thread::spawn(move || (0..3 * MOST).all(|_| speaking.say(Happening::PrintedAll)));
        for _ in 0..MOST {
            receive.recv().unwrap();
        }
        // The next one waits, however long we look.
        assert!(receive.recv_timeout(std::time::Duration::from_millis(20)).is_err());
        // But not who must not.
        gate.say_at_once(Happening::Exited);
        assert!(matches!(receive.recv().unwrap(), Happening::Exited));
        gate.heard();
        gate.heard();
        receive.recv().unwrap();
        gate.open();
        assert!(speaker.join().unwrap());
        assert_eq!(receive.try_iter().count(), 2 * MOST - 1);
    }

    #[test]
    fn what_comes_without_an_end_comes_to_one_when_the_gate_is_open() {
        let (send, receive) = mpsc::channel();
        let gate = Gate::new(send);
        let speaking = gate.clone();
        let speaker = thread::spawn(move || {
            for _ in 0..3 * MOST {
                speaking.say_or_leave_out(Happening::PrintedAll);
            }
        });
        while receive.try_iter().count() == 0 {
            thread::yield_now();
        }
        assert!(!speaker.is_finished());
        gate.open();
        speaker.join().unwrap();
        assert!(receive.try_iter().count() <= MOST);
    }
}
