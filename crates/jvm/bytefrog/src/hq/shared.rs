//! What the threads of connections share: the agents, and the connections that are open.
//!
//! Owns: admitting agents, and the runs that they are given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::model::Sums;

use super::agent::Agent;
use super::places::{Open, own};
use super::{AgentId, Event, HqError, Options};

/// What is told of an agent. None: of a connection that is no agent's.
pub(super) type Tell = Box<dyn Fn(Option<AgentId>, Event) + Send + Sync>;

/// What agents had come to that are not kept any more. Others can't fill the tables of the own user and root.
#[derive(Default)]
pub(super) struct Former {
    pub(super) own: Sums,
    pub(super) others: Sums,
}

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) tell: Tell,
    pub(super) began: Instant,
    pub(super) closing: AtomicBool,
    /// When connections stop reading what has already come.
    pub(super) abandoned: Mutex<Option<Instant>>,
    pub(super) next_agent: AtomicU32,
    pub(super) agents: Mutex<BTreeMap<AgentId, Arc<Agent>>>,
    /// What agents had come to that have ended and made room for others.
    pub(super) former: Mutex<Former>,
    /// Every open connection, by its number.
    pub(super) connections: Mutex<BTreeMap<u64, Open>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The lock, also if a thread has panicked with it: what it guards is counts and tables, each of them whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The user whose process is at the other end of a connection; `None` if unknown.
pub(super) type User = Option<u32>;

impl Shared {
    pub(super) fn new(options: Options, tell: Tell) -> Self {
        Self {
            options,
            tell,
            began: Instant::now(),
            closing: AtomicBool::new(false),
            abandoned: Mutex::default(),
            next_agent: AtomicU32::new(0),
            agents: Mutex::default(),
            former: Mutex::default(),
            connections: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// Time since HQ began to listen.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Limits for how long connections read on.
    pub(super) fn abandon_at(&self, at: Instant) {
        {
            let mut abandoned = locked(&self.abandoned);
            *abandoned = Some(abandoned.map_or(at, |before| before.min(at)));
        }
        // Their connections may wait for each other.
        let agents: Vec<_> = locked(&self.agents).values().cloned().collect();
        for agent in agents {
            agent.read_until(at);
        }
    }

    /// Whether connections should end without what they have not read yet.
    pub(super) fn is_abandoned(&self) -> bool {
        locked(&self.abandoned).is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn agent(&self, id: AgentId) -> Result<Arc<Agent>, HqError> {
        locked(&self.agents).get(&id).cloned().ok_or(HqError::NoAgent(id))
    }

    /// Returns the running agent with this run number and user. The user is compared because a run number is one byte, which
    /// another user can guess. A run number is reused after 255 agents, so agents that have ended are left out.
    pub(super) fn by_run(&self, run: u8, user: User) -> Option<Arc<Agent>> {
        let is_it = |agent: &Arc<Agent>| (agent.run, agent.user) == (run, user) && !agent.is_over();
        locked(&self.agents).values().rev().find(|agent| is_it(agent)).cloned()
    }

    /// A new agent of a user, with a run that no living one has, and whether its trace may be large. `None`: there is no room for it.
    pub(super) fn admit(
        &self,
        user: User,
        make: impl FnOnce(AgentId, u8, bool) -> Agent,
    ) -> Option<Arc<Agent>> {
        let mut agents = locked(&self.agents);
        let mut left = None;
        if agents.len() >= self.options.agents {
            let leaving = Self::leaving(agents.values().map(Arc::as_ref), user)?;
            left = agents.remove(&leaving);
        }
        let admitted = self.insert(&mut agents, user, make);
        drop(agents);
        if let Some(agent) = left {
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
        let taken = |run: u8| agents.values().any(|agent| agent.run == run && !agent.is_over());
        let run = (0..=255u8).map(|step| first.wrapping_add(step)).find(|run| !taken(*run))?;
        self.next_agent.store(id.wrapping_add(1), Ordering::Relaxed);
        let large = self.has_large_place(agents, user);
        let agent = Arc::new(make(AgentId(id), run, large));
        agents.insert(AgentId(id), Arc::clone(&agent));
        Some(agent)
    }

    /// Whether a new agent's trace may be large. Of the places for these, one is left for HQ's own user, and one for each other user
    /// that may connect and has none.
    fn has_large_place(&self, agents: &BTreeMap<AgentId, Arc<Agent>>, user: User) -> bool {
        let has_one = |user: User| agents.values().any(|agent| agent.is_large() && agent.user == user);
        let waits = |other: &User| *other != user && !has_one(*other);
        let users = self.options.users.iter().flatten().copied().map(Some);
        let others: BTreeSet<User> = users.chain([own()]).filter(waits).collect();
        let left = if has_one(user) { others.len() } else { usize::from(others.contains(&own())) };
        agents.values().filter(|agent| agent.is_large()).count() + left < self.options.large
    }
}
