//! Ordered access to the model for data connections of versions 1 to 4, which wait for each other.
//!
//! [`OrderedAccess`] is the access of a connection's thread to the model, and [`WaitQueue`] lists the waiting
//! connections with their events. IDs are mostly ascending in each connection: a connection whose next event has no
//! room in the window does not have the awaited one, and waits for the connection that has it. The full socket then
//! slows down the agent.
//!
//! An ID is considered lost when no connection can deliver it: when all open connections wait, or one has waited
//! for the time-out. An agent may open its connections one after another, so the former applies only if none was
//! opened for the duration of the time-out.
//!
//! Connections of a displaced agent do not wait: events that would have to wait are skipped.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::Message;

use super::agent::Agent;
use super::shared::locked;
use crate::Model;

/// The interval at which waiting connections check whether their agent is displaced.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The waiting connections of an agent.
#[derive(Default)]
pub(super) struct WaitQueue {
    /// The IDs of the events that wait, by connection number. Changed only while the model is locked.
    waiting: Mutex<BTreeMap<u32, u64>>,
    /// Signaled when the awaited event has arrived, or a data connection was closed.
    pub(super) moved: Condvar,
}

/// The access of a data connection to its agent's model.
pub(super) struct OrderedAccess<'a> {
    agent: &'a Agent,
    /// The number of the connection.
    number: u32,
    timeout: Duration,
    /// `None` while the thread waits, and after the access is over.
    model: Option<MutexGuard<'a, Model>>,
    /// The ID that was awaited when other connections were last woken.
    notified: u64,
}

impl<'a> OrderedAccess<'a> {
    pub(super) fn new(agent: &'a Agent, number: u32, timeout: Duration) -> Self {
        let model = agent.model();
        let notified = model.awaited();
        let model = (!agent.is_abandoned()).then_some(model);
        Self { agent, number, timeout, model, notified }
    }

    /// Returns whether no further messages are handled.
    pub(super) fn is_over(&self) -> bool {
        self.model.is_none()
    }

    /// Handles a message. An event that has no room in the window waits, and delays the messages after it.
    #[inline]
    pub(super) fn take(&mut self, message: &Message<'_>) {
        if let Some(id) = self.model.as_ref().and_then(|model| model.beyond(message)) {
            self.wait(id);
        }
        if let Some(model) = &mut self.model {
            model.take(message);
        }
    }

    #[cold]
    fn wait(&mut self, id: u64) {
        self.wake_others();
        let Some(model) = self.model.take() else { return };
        self.agent.publish(&model);
        let Some(model) = self.agent.wait_for_room(model, (self.number, id), self.timeout) else { return };
        self.notified = model.awaited();
        self.model = Some(model);
    }

    /// Wakes other connections if the awaited event has arrived.
    fn wake_others(&mut self) {
        if let Some(model) = &self.model
            && model.awaited() != self.notified
        {
            self.notified = model.awaited();
            self.agent.queue.moved.notify_all();
        }
    }
}

impl Drop for OrderedAccess<'_> {
    fn drop(&mut self) {
        self.wake_others();
        if let Some(model) = &self.model {
            self.agent.publish(model);
        }
    }
}

impl Agent {
    /// Waits until there is room for an event, or only one connection is left. `None` if the agent is displaced, or
    /// its connections are no longer read.
    fn wait_for_room<'a>(
        &'a self,
        mut model: MutexGuard<'a, Model>,
        (number, id): (u32, u64),
        timeout: Duration,
    ) -> Option<MutexGuard<'a, Model>> {
        locked(&self.queue.waiting).insert(number, id);
        let (mut awaited, mut since) = (model.awaited(), Instant::now());
        let has_room = loop {
            let (open, settled) = self.data();
            if !model.is_beyond(id) || open < 2 {
                break true;
            }
            if self.is_displaced() || self.is_abandoned() {
                break false;
            }
            if model.awaited() != awaited {
                (awaited, since) = (model.awaited(), Instant::now());
            }
            let waited = since.elapsed();
            let waited = if self.waiting(&model) < open { waited } else { waited.max(settled) };
            let left = timeout.saturating_sub(waited);
            if left.is_zero() {
                self.give_up(&mut model);
                since = Instant::now();
                continue;
            }
            let woken = self.queue.moved.wait_timeout(model, left.min(CHECK_INTERVAL));
            model = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        locked(&self.queue.waiting).remove(&number);
        has_room.then_some(model)
    }

    /// Returns the number of connections that cannot continue. Others have been woken, or deliver what they have
    /// read.
    fn waiting(&self, model: &Model) -> usize {
        locked(&self.queue.waiting).values().filter(|id| model.is_beyond(**id)).count()
    }

    /// Gives up the IDs before the first one that a connection or the window has.
    fn give_up(&self, model: &mut Model) {
        let first = locked(&self.queue.waiting).values().copied().chain(model.first_held()).min();
        if let Some(first) = first {
            model.give_up_before(first);
        }
        self.queue.moved.notify_all();
    }
}
