//! A thread's copy of the sessions of a pipe, so that writing an event finds the buffers without locking the pipe.

use std::cell::RefCell;
use std::sync::Arc;

use crate::buffer::ThreadBuffer;
use crate::event::current_thread_id;
use crate::session::Session;

thread_local!(static KNOWN: RefCell<Vec<PipeSessions>> = const { RefCell::new(Vec::new()) });

/// The sessions of one pipe.
#[derive(Debug)]
struct PipeSessions {
    pipe: u64,
    /// The [`PipeState::generation`](crate::state::PipeState::generation) of this copy.
    generation: u64,
    sessions: Vec<SessionEntry>,
}

/// A session, and this thread's buffer in it after the first event.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    pub session: Arc<Session>,
    buffer: Option<Arc<ThreadBuffer>>,
}

impl SessionEntry {
    /// Returns the session and this thread's buffer. `None` if the session has ended.
    pub(crate) fn parts(&mut self) -> Option<(&Session, &ThreadBuffer)> {
        if self.buffer.is_none() {
            self.buffer = self.session.register(current_thread_id());
        }
        Some((&self.session, self.buffer.as_deref()?))
    }
}

/// Calls `write` with each session of a pipe as of its `generation`; `sessions` provides them if the copy is outdated.
///
/// Does nothing while the thread's local values are being destroyed.
pub(crate) fn each_session(
    pipe: u64,
    generation: u64,
    sessions: impl FnOnce() -> Vec<Arc<Session>>,
    mut write: impl FnMut(&mut SessionEntry),
) {
    let _ = KNOWN.try_with(|known| {
        // `write` never writes an event itself.
        let Ok(mut known) = known.try_borrow_mut() else { return };
        let place = known.iter().position(|of_pipe| of_pipe.pipe == pipe);
        let place = place.unwrap_or_else(|| {
            // Drop the copies for pipes that are gone or have no session.
            known.retain(|of_pipe| !of_pipe.sessions.is_empty());
            known.push(PipeSessions { pipe, generation: 0, sessions: Vec::new() });
            known.len() - 1
        });
        let Some(of_pipe) = known.get_mut(place) else { return };
        if of_pipe.generation != generation {
            of_pipe.refresh(generation, sessions());
        }
        of_pipe.sessions.iter_mut().for_each(&mut write);
    });
}

impl PipeSessions {
    fn refresh(&mut self, generation: u64, sessions: Vec<Arc<Session>>) {
        let mut before = std::mem::take(&mut self.sessions);
        self.sessions.extend(sessions.into_iter().map(|session| {
            let same = |known: &mut SessionEntry| known.session.id == session.id;
            let buffer = before.iter_mut().find_map(|known| same(known).then(|| known.buffer.take()));
            SessionEntry { session, buffer: buffer.flatten() }
        }));
        self.generation = generation;
    }
}
