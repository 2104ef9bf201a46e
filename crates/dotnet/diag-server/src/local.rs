//! What a thread remembers of the sessions of a pipe, so that an event finds its buffers without asking anybody.

use std::cell::RefCell;
use std::sync::Arc;

use crate::buffer::ThreadBuffer;
use crate::event::current_thread_id;
use crate::session::Session;

thread_local!(static KNOWN: RefCell<Vec<OfPipe>> = const { RefCell::new(Vec::new()) });

/// The sessions of one pipe.
#[derive(Debug)]
struct OfPipe {
    pipe: u64,
    /// [`PipeState::generation`](crate::state::PipeState::generation) at which they were asked for.
    generation: u64,
    sessions: Vec<OfSession>,
}

/// A session, and this thread's buffer in it once it has written there.
#[derive(Debug)]
pub(crate) struct OfSession {
    pub session: Arc<Session>,
    buffer: Option<Arc<ThreadBuffer>>,
}

impl OfSession {
    /// With this thread's buffer; `None` when the session takes no more.
    pub(crate) fn parts(&mut self) -> Option<(&Session, &ThreadBuffer)> {
        if self.buffer.is_none() {
            self.buffer = self.session.register(current_thread_id());
        }
        Some((&self.session, self.buffer.as_deref()?))
    }
}

/// Calls `write` with each session of a pipe as of its `generation`; `sessions` are asked for when that is new here.
///
/// Does nothing while the thread's own values are being destroyed.
pub(crate) fn each_session(
    pipe: u64,
    generation: u64,
    sessions: impl FnOnce() -> Vec<Arc<Session>>,
    mut write: impl FnMut(&mut OfSession),
) {
    let _ = KNOWN.try_with(|known| {
        // Writing an event calls nobody who writes one.
        let Ok(mut known) = known.try_borrow_mut() else { return };
        let place = known.iter().position(|of_pipe| of_pipe.pipe == pipe);
        let place = place.unwrap_or_else(|| {
            // Pipes that are gone, or have no session, have nothing here to be kept.
            known.retain(|of_pipe| !of_pipe.sessions.is_empty());
            known.push(OfPipe { pipe, generation: 0, sessions: Vec::new() });
            known.len() - 1
        });
        let Some(of_pipe) = known.get_mut(place) else { return };
        if of_pipe.generation != generation {
            of_pipe.refresh(generation, sessions());
        }
        of_pipe.sessions.iter_mut().for_each(&mut write);
    });
}

impl OfPipe {
    fn refresh(&mut self, generation: u64, sessions: Vec<Arc<Session>>) {
        let mut before = std::mem::take(&mut self.sessions);
        self.sessions.extend(sessions.into_iter().map(|session| {
            let same = |known: &mut OfSession| known.session.id == session.id;
            let buffer = before.iter_mut().find_map(|known| same(known).then(|| known.buffer.take()));
            OfSession { session, buffer: buffer.flatten() }
        }));
        self.generation = generation;
    }
}
