//! What the sessions ask of a provider, for a provider whose work depends on it: counters that are read every second, log
//! messages of some categories. Owns who is told; refuses to interpret a provider's arguments.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use runtap_diag_proto::{Provider, SessionId};

use crate::session::Session;

/// What one session asks of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderRequest {
    /// The session. Its id is never used again.
    pub session: SessionId,
    /// The categories of events.
    pub keywords: u64,
    /// The most detailed level, from 1 (critical) to 5 (verbose); 0 is everything.
    pub level: u32,
    /// The provider's arguments as the client sent them, by convention `key=value;key=value`; empty without any.
    pub arguments: String,
}

impl ProviderRequest {
    /// For tests of watchers.
    pub fn new(session: SessionId, keywords: u64, level: u32, arguments: impl Into<String>) -> Self {
        Self { session, keywords, level, arguments: arguments.into() }
    }
}

pub(crate) type Watcher = Arc<dyn Fn(&[ProviderRequest]) + Send + Sync>;

type SessionsWatcher = Arc<dyn Fn() + Send + Sync>;

/// Who is told of what.
#[derive(Default)]
pub(crate) struct Watchers {
    of_providers: Mutex<Vec<(String, Watcher)>>,
    of_sessions: Mutex<Vec<SessionsWatcher>>,
}

impl Watchers {
    /// `sessions` is asked under the lock, so that the last call tells the last state.
    pub(crate) fn add(
        &self,
        provider: String,
        watcher: Watcher,
        sessions: impl FnOnce() -> Vec<Arc<Session>>,
    ) {
        let mut watchers = self.of_providers.lock().unwrap_or_else(PoisonError::into_inner);
        watcher(&requests(&provider, &sessions()));
        watchers.push((provider, watcher));
    }

    pub(crate) fn add_for_sessions(&self, watcher: SessionsWatcher) {
        self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }

    /// Tells those who watch one of the providers of a session that has come or gone, then those who watch sessions.
    pub(crate) fn tell(&self, changed: &[Provider], sessions: impl FnOnce() -> Vec<Arc<Session>>) {
        self.tell_of_providers(changed, sessions);
        // Without the locks: these may ask the pipe for anything.
        let of_sessions = self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for watcher in of_sessions {
            contained(|| watcher());
        }
    }

    fn tell_of_providers(&self, changed: &[Provider], sessions: impl FnOnce() -> Vec<Arc<Session>>) {
        let watchers = self.of_providers.lock().unwrap_or_else(PoisonError::into_inner);
        let concerned =
            watchers.iter().filter(|(name, _)| changed.iter().any(|provider| provider.name == *name));
        let mut concerned = concerned.peekable();
        if concerned.peek().is_none() {
            return;
        }
        let sessions = sessions();
        for (name, watcher) in concerned {
            contained(|| watcher(&requests(name, &sessions)));
        }
    }
}

/// A watcher that panics has said so; the session goes on without what it would have done.
fn contained(watcher: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(watcher));
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

/// The first entry of a provider in a session counts, as for its events.
fn requests(provider: &str, sessions: &[Arc<Session>]) -> Vec<ProviderRequest> {
    let of_session = |session: &Arc<Session>| {
        let entry = session.config.providers.iter().find(|entry| entry.name == provider)?;
        Some(ProviderRequest {
            session: session.id,
            keywords: entry.keywords,
            level: entry.level.number(),
            arguments: entry.arguments.clone().unwrap_or_default(),
        })
    };
    sessions.iter().filter_map(of_session).collect()
}
