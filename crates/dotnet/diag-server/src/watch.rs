//! Watching the sessions' requests to a provider, for providers whose work depends on them: counters that are read every
//! second, log messages of some categories. Does not interpret a provider's arguments.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use runtap_diag_proto::{Provider, SessionId};

use crate::session::Session;

/// A session's request to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderRequest {
    /// The id of the session, which is never reused.
    pub session: SessionId,
    /// The keywords (categories) of events, one bit each.
    pub keywords: u64,
    /// The most detailed level, from 1 (critical) to 5 (verbose); 0 means all events.
    pub level: u32,
    /// The provider's arguments as the client sent them, by convention `key=value;key=value`; empty if there are none.
    pub arguments: String,
}

impl ProviderRequest {
    /// Creates a request, for tests of watchers.
    pub fn new(session: SessionId, keywords: u64, level: u32, arguments: impl Into<String>) -> Self {
        Self { session, keywords, level, arguments: arguments.into() }
    }
}

pub(crate) type Watcher = Arc<dyn Fn(&[ProviderRequest]) + Send + Sync>;

type SessionsWatcher = Arc<dyn Fn() + Send + Sync>;

/// The registered watchers.
#[derive(Default)]
pub(crate) struct Watchers {
    of_providers: Mutex<Vec<(String, Watcher)>>,
    of_sessions: Mutex<Vec<SessionsWatcher>>,
}

impl Watchers {
    /// Adds a watcher. `sessions` is called under the lock, so that the last call has the last state.
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

    /// Notifies the watchers of the providers of a session that has started or ended, then the watchers of sessions.
    pub(crate) fn notify(&self, changed: &[Provider], sessions: impl FnOnce() -> Vec<Arc<Session>>) {
        self.notify_providers(changed, sessions);
        // Without the locks, because these watchers may call the pipe.
        let of_sessions = self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for watcher in of_sessions {
            contained(|| watcher());
        }
    }

    fn notify_providers(&self, changed: &[Provider], sessions: impl FnOnce() -> Vec<Arc<Session>>) {
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

/// Calls a watcher and contains a panic; the session continues without the watcher's effect.
fn contained(watcher: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(watcher));
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

/// Returns the requests to a provider. The first entry of the provider in a session applies, as for its events.
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
