//! Stopping a run from outside: once to have it end in good order, twice to have it over.

use std::sync::{Arc, Mutex, PoisonError};

/// How a run is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Running tests may end, and are told to; nothing new is begun.
    Graceful,
    /// Everything that was started is killed.
    Hard,
}

/// Called with the level, from whichever thread stops the run.
type Listener = Box<dyn Fn(StopLevel) + Send>;

/// Stops a run. Clones stop the same one.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    level: Option<StopLevel>,
    next: u64,
    listeners: Vec<(u64, Listener)>,
}

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stop").field(&self.level()).finish()
    }
}

impl Stop {
    /// Nothing is to be stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run. A lower level than before changes nothing.
    pub fn stop(&self, level: StopLevel) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.level >= Some(level) {
            return;
        }
        state.level = Some(level);
        for (_, listener) in &state.listeners {
            listener(level);
        }
    }

    /// Whether and how it was stopped.
    pub fn level(&self) -> Option<StopLevel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).level
    }

    /// Has `listener` called when the level rises, and at once if there is one, until the guard is dropped. It must not stop
    /// the run itself.
    pub(crate) fn listen(&self, listener: impl Fn(StopLevel) + Send + 'static) -> Listening {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(level) = state.level {
            listener(level);
        }
        let id = state.next;
        state.next += 1;
        state.listeners.push((id, Box::new(listener)));
        Listening { stop: self.clone(), id }
    }
}

/// A listener that is called.
#[derive(Debug)]
pub(crate) struct Listening {
    stop: Stop,
    id: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.listeners.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn listeners_hear_each_level_once() {
        let (stop, (send, heard)) = (Stop::new(), mpsc::channel());
        let listening = stop.listen(move |level| send.send(level).unwrap());
        stop.stop(StopLevel::Graceful);
        stop.stop(StopLevel::Graceful);
        stop.stop(StopLevel::Hard);
        stop.stop(StopLevel::Graceful);
        drop(listening);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [StopLevel::Graceful, StopLevel::Hard]);
        let (send, late) = mpsc::channel();
        let _listening = stop.listen(move |level| send.send(level).unwrap());
        assert_eq!(late.try_recv(), Ok(StopLevel::Hard));
    }
}
