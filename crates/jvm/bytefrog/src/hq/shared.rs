//! State that the threads of connections share: the agents and the open connections.
//!
//! Admits agents and assigns run numbers to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runtap_model::order;

use crate::model::CombinedReport;

use super::agent::Agent;
use super::slots::{OpenConnection, own};
use super::{AgentId, Event, HqError, Options};

/// A receiver of events. `None` for connections that belong to no agent.
pub(super) type OnEvent = Box<dyn Fn(Option<AgentId>, Event) + Send + Sync>;

/// The totals of displaced agents. They are kept apart so that other users cannot fill the tables of HQ's own user
/// and root.
#[derive(Default)]
pub(super) struct Former {
    pub(super) own: CombinedReport,
    pub(super) others: CombinedReport,
}

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) on_event: OnEvent,
    pub(super) started: Instant,
    pub(super) closing: AtomicBool,
    /// The time at which connections stop reading what has already arrived.
    pub(super) abandoned: Mutex<Option<Instant>>,
    pub(super) next_agent: AtomicU32,
    pub(super) agents: Mutex<BTreeMap<AgentId, Arc<Agent>>>,
    /// The totals of agents that made room for others.
    pub(super) former: Mutex<Former>,
    /// The connections whose threads are still running, by number.
    pub(super) connections: Mutex<BTreeMap<u64, OpenConnection>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Locks a mutex, even if a thread panicked with it: the guarded counts and tables are always consistent.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The user of the process at the other end of a connection; `None` if unknown.
pub(super) type User = Option<u32>;

impl Shared {
    pub(super) fn new(options: Options, on_event: OnEvent) -> Self {
        Self {
            options,
            on_event,
            started: Instant::now(),
            closing: AtomicBool::new(false),
            abandoned: Mutex::default(),
            next_agent: AtomicU32::new(0),
            agents: Mutex::default(),
            former: Mutex::default(),
            connections: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// Returns the time since HQ started to listen.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sets the time until which connections are read.
    pub(super) fn abandon_at(&self, at: Instant) {
        {
            let mut abandoned = locked(&self.abandoned);
            *abandoned = Some(abandoned.map_or(at, |before| before.min(at)));
        }
        // The agents are needed too, because their connections may wait for each other.
        let agents: Vec<_> = locked(&self.agents).values().cloned().collect();
        for agent in agents {
            agent.read_until(at);
        }
    }

    /// Returns whether connections should close without reading what they have received.
    pub(super) fn is_abandoned(&self) -> bool {
        locked(&self.abandoned).is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn agent(&self, id: AgentId) -> Result<Arc<Agent>, HqError> {
        locked(&self.agents).get(&id).cloned().ok_or(HqError::NoAgent(id))
    }

    /// Returns the running agent with this run number and user. The user is compared because a run number is one
    /// byte, which another user can guess. Run numbers are reused after 255 agents, so closed agents are skipped.
    pub(super) fn by_run(&self, run: u8, user: User) -> Option<Arc<Agent>> {
        let is_it = |agent: &Arc<Agent>| (agent.run, agent.user) == (run, user) && !agent.is_closed();
        locked(&self.agents).values().rev().find(|agent| is_it(agent)).cloned()
    }

    /// Admits a new agent, with an unused run number; `make` is also told whether the trace may be large. `None` if
    /// there is no room.
    pub(super) fn admit(
        &self,
        user: User,
        make: impl FnOnce(AgentId, u8, bool) -> Agent,
    ) -> Option<Arc<Agent>> {
        let mut agents = locked(&self.agents);
        let mut displaced = None;
        if agents.len() >= self.options.agents {
            let id = Self::displaced_agent(agents.values().map(Arc::as_ref), user)?;
            displaced = agents.remove(&id);
        }
        let admitted = self.insert(&mut agents, user, make);
        drop(agents);
        if let Some(agent) = displaced {
            self.displace(&agent, user);
        }
        admitted
    }

    fn insert(
        &self,
        agents: &mut BTreeMap<AgentId, Arc<Agent>>,
        user: User,
        make: impl FnOnce(AgentId, u8, bool) -> Agent,
    ) -> Option<Arc<Agent>> {
        let id = self.next_agent.load(Ordering::Relaxed);
        let [.., first] = id.to_be_bytes();
        let taken = |run: u8| agents.values().any(|agent| agent.run == run && !agent.is_closed());
        let run = (0..=255u8).map(|step| first.wrapping_add(step)).find(|run| !taken(*run))?;
        self.next_agent.store(id.wrapping_add(1), Ordering::Relaxed);
        let large = self.has_large_slot(agents, user);
        let agent = Arc::new(make(AgentId(id), run, large));
        agents.insert(AgentId(id), Arc::clone(&agent));
        Some(agent)
    }

    /// Returns whether a new agent's trace may be large. Of these slots, one is reserved for HQ's own user, and one
    /// for each other user that may connect and has none.
    fn has_large_slot(&self, agents: &BTreeMap<AgentId, Arc<Agent>>, user: User) -> bool {
        let has_one = |user: User| agents.values().any(|agent| agent.is_large() && agent.user == user);
        let waits = |other: &User| *other != user && !has_one(*other);
        let users = self.options.users.iter().flatten().copied().map(Some);
        let others = order::to_set(users.chain([own()]).filter(waits));
        let reserved = if has_one(user) { others.len() } else { usize::from(others.contains(&own())) };
        agents.values().filter(|agent| agent.is_large()).count() + reserved < self.options.large
    }
}
