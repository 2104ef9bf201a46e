//! Connections of runtimes that are in use by clients.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::places::Entry;
use super::runtime_registry::RuntimeRegistry;

/// A connection of a runtime. In use until dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    registry: Arc<RuntimeRegistry>,
    cookie: Uuid,
    /// Closed when the runtime has lost its place.
    place: watch::Receiver<()>,
}

impl InUse {
    /// Starts the use of a connection of this runtime.
    pub(super) fn begin(registry: &Arc<RuntimeRegistry>, entry: &mut Entry) -> Self {
        entry.active += 1;
        let (registry, cookie) = (Arc::clone(registry), entry.advertise.runtime_cookie);
        Self { registry, cookie, place: entry.place.subscribe() }
    }

    /// Returns the cookie of the runtime.
    pub(crate) fn cookie(&self) -> Uuid {
        self.cookie
    }

    /// Records that the runtime has started to answer.
    pub(crate) fn is_answered(&self) {
        self.change(|entry| entry.has_answered = true);
    }

    /// Waits until the runtime has lost its place to another one.
    pub(crate) async fn displaced(&self) {
        let mut place = self.place.clone();
        while place.changed().await.is_ok() {}
    }

    /// Changes the entry, unless the runtime has lost its place and connected again.
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        let mut places = self.registry.lock();
        if self.place.has_changed().is_ok()
            && let Some(entry) = places.find(self.cookie)
        {
            change(entry);
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.change(|entry| {
            entry.active = entry.active.saturating_sub(1);
            entry.seen = Instant::now();
        });
        self.registry.changed.notify_waiters();
    }
}
