//! The defined events and the running sessions of a pipe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use runtap_diag_proto::{SessionConfig, SessionId};
use runtap_nettrace::Metadata;

use crate::clock::Clock;
use crate::definition::{Definition, EventData};
use crate::limits::Limits;
use crate::local;
use crate::session::Session;
use crate::watch::{Watcher, Watchers};

/// The most sessions, as in a runtime.
const MAX_SESSIONS: usize = 64;

/// The shared state of a pipe.
#[derive(Debug)]
pub(crate) struct PipeState {
    /// Distinguishes the pipes of a process.
    id: u64,
    clock: Clock,
    /// Incremented at each change of the list of sessions; never 0.
    generation: AtomicU64,
    next_id: AtomicU64,
    /// Definitions and sessions are changed together, so that no event is written to a session that does not record it.
    shared: RwLock<Shared>,
    watchers: Watchers,
}

#[derive(Debug, Default)]
struct Shared {
    definitions: Vec<Arc<Definition>>,
    sessions: Vec<Option<Arc<Session>>>,
}

impl PipeState {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            generation: AtomicU64::new(1),
            clock: Clock::new(),
            next_id: AtomicU64::new(1),
            shared: RwLock::default(),
            watchers: Watchers::default(),
        }
    }

    /// Adds an event, for current and future sessions.
    pub(crate) fn define(&self, metadata: Metadata) -> Arc<Definition> {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let wanted_by = shared.sessions.iter().flatten().filter(|session| session.wants(&metadata));
        let wanted_by = wanted_by.fold(0, |bits, session| bits | session.bit());
        let definition = Arc::new(Definition {
            index: shared.definitions.len(),
            metadata,
            wanted_by: AtomicU64::new(wanted_by),
        });
        shared.definitions.push(Arc::clone(&definition));
        definition
    }

    /// Returns the nanoseconds of the clock of all time stamps.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Adds an event to this thread's buffer of each session that records it.
    pub(crate) fn write(&self, definition: &Definition, data: &EventData<'_>) {
        // Checked first, because a thread that sees the new bit also sees the new session, and checked again for each
        // session, because its place may have been reused by a session that records other events.
        let _ = definition.wanted_by.load(Ordering::Acquire);
        let generation = self.generation.load(Ordering::Acquire);
        local::each_session(
            self.id,
            generation,
            || self.all_sessions(),
            |own| {
                if definition.wanted_by.load(Ordering::Relaxed) & own.session.bit() != 0 {
                    Session::push(own, definition, data, || self.now());
                }
            },
        );
    }

    /// Starts a session. `None` if there are too many.
    pub(crate) fn start(&self, config: SessionConfig, limits: &Limits) -> Option<Arc<Session>> {
        let session = self.add(config, limits)?;
        self.watchers.notify(&session.config.providers, || self.all_sessions());
        Some(session)
    }

    fn add(&self, config: SessionConfig, limits: &Limits) -> Option<Arc<Session>> {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let place = match shared.sessions.iter().position(Option::is_none) {
            Some(place) => place,
            None if shared.sessions.len() < MAX_SESSIONS => {
                shared.sessions.push(None);
                shared.sessions.len() - 1
            }
            None => return None,
        };
        // Ids are never reused, unlike a runtime's: a late StopTracing cannot end another client's session.
        let id = SessionId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let session = Arc::new(Session::new(id, place, config, limits));
        if let Some(free) = shared.sessions.get_mut(place) {
            *free = Some(Arc::clone(&session));
        }
        // Set before the event bits: threads that see a bit then look for the new session.
        self.generation.fetch_add(1, Ordering::Release);
        for definition in &shared.definitions {
            if session.wants(&definition.metadata) {
                definition.wanted_by.fetch_or(session.bit(), Ordering::Release);
            }
        }
        Some(session)
    }

    /// Registers a function that is called with the sessions' requests to `provider`, now and whenever they change.
    pub(crate) fn watch(&self, provider: String, watcher: Watcher) {
        self.watchers.add(provider, watcher, || self.all_sessions());
    }

    /// Registers a function that is called whenever a session starts or ends.
    pub(crate) fn watch_sessions(&self, watcher: Arc<dyn Fn() + Send + Sync>) {
        self.watchers.add_for_sessions(watcher);
    }

    /// Removes a session: no more events are written to it, and waits for its end complete.
    pub(crate) fn end(&self, session: &Session) {
        self.remove(session);
        session.finish();
        self.watchers.notify(&session.config.providers, || self.all_sessions());
    }

    fn remove(&self, session: &Session) {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        for definition in &shared.definitions {
            definition.wanted_by.fetch_and(!session.bit(), Ordering::Relaxed);
        }
        for place in &mut shared.sessions {
            if place.as_ref().is_some_and(|other| other.id == session.id) {
                *place = None;
            }
        }
        self.generation.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.all_sessions().into_iter().find(|session| session.id == id)
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.sessions.iter().flatten().cloned().collect()
    }

    pub(crate) fn definition(&self, index: usize) -> Option<Arc<Definition>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.definitions.get(index).cloned()
    }

    /// Returns the current number of sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).sessions.iter().flatten().count()
    }
}

/// A session that is being served. When dropped, for whatever reason, its place becomes free and waits complete.
#[derive(Debug)]
pub(crate) struct Served {
    pub session: Arc<Session>,
    pub pipe: Arc<PipeState>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.pipe.end(&self.session);
    }
}
