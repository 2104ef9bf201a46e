//! Data connections of versions 1 to 4 that wait for each other.
//!
//! Owns: [`Turn`], in which a connection's thread has the model, and [`Queue`], which knows who waits with which event. Ids
//! are ascending in each connection but for a few: a connection whose next event has no room in the window does not have the
//! awaited one, and waits for the connection that has it. The agent is then told by its full socket.
//!
//! An id is given up when nobody can bring it: when all open connections wait, or one has waited for as long as it should.
//! An agent may open its connections one after the other, so the first of these counts only if none has begun for as long.
//!
//! Connections of an agent that has lost its place wait for nothing: what would have to wait is left out.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::Message;

use super::agent::Agent;
use super::shared::locked;
use crate::Model;

/// How often those that wait look whether their agent has lost its place.
const LOOK: Duration = Duration::from_millis(100);

/// The connections of an agent that wait.
#[derive(Default)]
pub(super) struct Queue {
    /// The events that they have in hand, by the numbers of connections. Changed by whoever has the model.
    waiting: Mutex<BTreeMap<u32, u64>>,
    /// The event that the model waits for has come, or a data connection has ended.
    pub(super) moved: Condvar,
}

/// A data connection that has its agent's model.
pub(super) struct Turn<'a> {
    agent: &'a Agent,
    /// The connection's.
    number: u32,
    patience: Duration,
    /// There, but while the thread waits, and when nothing more is taken.
    model: Option<MutexGuard<'a, Model>>,
    /// What was awaited when others were told of that last.
    told: u64,
}

impl<'a> Turn<'a> {
    pub(super) fn new(agent: &'a Agent, number: u32, patience: Duration) -> Self {
        let model = agent.model();
        let told = model.awaited();
        let model = (!agent.is_abandoned()).then_some(model);
        Self { agent, number, patience, model, told }
    }

    /// Whether nothing more is taken.
    pub(super) fn is_over(&self) -> bool {
        self.model.is_none()
    }

    /// Takes a message. An event that has no room waits first, and with it what comes behind it.
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
        self.tell();
        let Some(model) = self.model.take() else { return };
        self.agent.publish(&model);
        let Some(model) = self.agent.give_way(model, (self.number, id), self.patience) else { return };
        self.told = model.awaited();
        self.model = Some(model);
    }

    /// Wakes whoever waits for what has come.
    fn tell(&mut self) {
        if let Some(model) = &self.model
            && model.awaited() != self.told
        {
            self.told = model.awaited();
            self.agent.queue.moved.notify_all();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.tell();
        if let Some(model) = &self.model {
            self.agent.publish(model);
        }
    }
}

impl Agent {
    /// Waits until there is room for an event, or there is but one connection. `None` if the agent has lost its place, or its
    /// connections are read no longer.
    fn give_way<'a>(
        &'a self,
        mut model: MutexGuard<'a, Model>,
        (number, id): (u32, u64),
        patience: Duration,
    ) -> Option<MutexGuard<'a, Model>> {
        locked(&self.queue.waiting).insert(number, id);
        let (mut awaited, mut since) = (model.awaited(), Instant::now());
        let has_room = loop {
            let (open, settled) = self.data();
            if !model.is_beyond(id) || open < 2 {
                break true;
            }
            if self.has_left() || self.is_abandoned() {
                break false;
            }
            if model.awaited() != awaited {
                (awaited, since) = (model.awaited(), Instant::now());
            }
            let waited = since.elapsed();
            let waited = if self.waiting(&model) < open { waited } else { waited.max(settled) };
            let left = patience.saturating_sub(waited);
            if left.is_zero() {
                self.give_up(&mut model);
                since = Instant::now();
                continue;
            }
            let woken = self.queue.moved.wait_timeout(model, left.min(LOOK));
            model = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        locked(&self.queue.waiting).remove(&number);
        has_room.then_some(model)
    }

    /// How many connections can't go on. Others have been woken, or bring what they have read.
    fn waiting(&self, model: &Model) -> usize {
        locked(&self.queue.waiting).values().filter(|id| model.is_beyond(**id)).count()
    }

    /// Gives up the ids before the first that somebody has.
    fn give_up(&self, model: &mut Model) {
        let first = locked(&self.queue.waiting).values().copied().chain(model.first_held()).min();
        if let Some(first) = first {
            model.give_up_before(first);
        }
        self.queue.moved.notify_all();
    }
}
