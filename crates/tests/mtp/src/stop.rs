//! Stopping of a run: first gracefully, then by force.

use std::sync::{Arc, Mutex, PoisonError};

/// The way in which a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Running tests are requested to stop and may finish; no more tests are started.
    Graceful,
    /// All processes are killed.
    Hard,
}

/// Called with the level, from the thread that stops the run.
type Listener = Box<dyn Fn(StopLevel) + Send>;

/// A handle that stops a run. Clones stop the same run.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<StopState>>);

#[derive(Default)]
struct StopState {
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
    /// Creates a handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run. A level that is not higher than the previous one has no effect.
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

    /// Returns the level at which the run was stopped, or `None` if it was not stopped.
    pub fn level(&self) -> Option<StopLevel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).level
    }

    /// Registers a listener until the guard is dropped. `listener` is called when the level rises, and immediately if
    /// the run was already stopped. `listener` must not stop the run itself.
    pub(crate) fn listen(&self, listener: impl Fn(StopLevel) + Send + 'static) -> ListenerGuard {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(level) = state.level {
            listener(level);
        }
        let id = state.next;
        state.next += 1;
        state.listeners.push((id, Box::new(listener)));
        ListenerGuard { stop: self.clone(), id }
    }
}

/// A guard that keeps a listener registered.
#[derive(Debug)]
pub(crate) struct ListenerGuard {
    stop: Stop,
    id: u64,
}

impl Drop for ListenerGuard {
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
    fn listeners_are_called_once_per_level() {
        let (stop, (send, levels)) = (Stop::new(), mpsc::channel());
        let listening = stop.listen(move |level| send.send(level).unwrap());
        stop.stop(StopLevel::Graceful);
        stop.stop(StopLevel::Graceful);
        stop.stop(StopLevel::Hard);
        stop.stop(StopLevel::Graceful);
        drop(listening);
        assert_eq!(levels.iter().collect::<Vec<_>>(), [StopLevel::Graceful, StopLevel::Hard]);
        let (send, late) = mpsc::channel();
        let _listening = stop.listen(move |level| send.send(level).unwrap());
        assert_eq!(late.try_recv(), Ok(StopLevel::Hard));
    }
}
