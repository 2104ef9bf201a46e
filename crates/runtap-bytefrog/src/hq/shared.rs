//! What the threads of connections share: the agents, and the connections that are open.
//!
//! Owns: which agent makes room for a new one, and the runs that they are given.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::model::Sums;

use super::agent::Agent;
use super::{AgentId, Event, HqError, Options};

/// What is told of an agent. None: of a connection that is no agent's.
pub(super) type Tell = Box<dyn Fn(Option<AgentId>, Event) + Send + Sync>;

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) tell: Tell,
    pub(super) began: Instant,
    pub(super) closing: AtomicBool,
    /// When connections stop reading what has already come.
    pub(super) abandoned: Mutex<Option<Instant>>,
    pub(super) open: AtomicUsize,
    pub(super) next_agent: AtomicU32,
    pub(super) agents: Mutex<BTreeMap<AgentId, Arc<Agent>>>,
    /// What agents had come to that have ended and made room for others.
    pub(super) former: Mutex<Sums>,
    /// Every open connection, to be shut when HQ closes.
    pub(super) sockets: Mutex<BTreeMap<u64, TcpStream>>,
    /// Those of them that have not said hello.
    pub(super) unknown: Mutex<BTreeSet<u64>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The lock, also if a thread has panicked with it: what it guards is counts and tables, each of them whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(options: Options, tell: Tell) -> Self {
        Self {
            options,
            tell,
            began: Instant::now(),
            closing: AtomicBool::new(false),
            abandoned: Mutex::default(),
            open: AtomicUsize::new(0),
            next_agent: AtomicU32::new(0),
            agents: Mutex::default(),
            former: Mutex::default(),
            sockets: Mutex::default(),
            unknown: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// Time since HQ began to listen.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Limits for how long connections read on.
    pub(super) fn abandon_at(&self, at: Instant) {
        let mut abandoned = locked(&self.abandoned);
        *abandoned = Some(abandoned.map_or(at, |before| before.min(at)));
    }

    /// Whether connections should end without what they have not read yet.
    pub(super) fn is_abandoned(&self) -> bool {
        locked(&self.abandoned).is_some_and(|at| at <= Instant::now())
    }

    /// Ends all connections.
    pub(super) fn shut(&self) {
        for socket in locked(&self.sockets).values() {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn agent(&self, id: AgentId) -> Result<Arc<Agent>, HqError> {
        locked(&self.agents).get(&id).cloned().ok_or(HqError::NoAgent(id))
    }

    /// The agent whose run this is. Of those that have ended none: a run is given again after 255 others.
    pub(super) fn by_run(&self, run: u8) -> Option<Arc<Agent>> {
        locked(&self.agents).values().rev().find(|agent| agent.run == run && !agent.is_over()).cloned()
    }

    /// A new agent, with a run that no living one has, and whether its trace may be large. `None`: there is no room for it.
    pub(super) fn admit(&self, make: impl FnOnce(AgentId, u8, bool) -> Agent) -> Option<Arc<Agent>> {
        let mut agents = locked(&self.agents);
        let mut left = None;
        if agents.len() >= self.options.agents {
            let over = agents.iter().find(|(_, agent)| agent.is_over());
            let leaves = over.or_else(|| agents.iter().find(|(_, agent)| agent.has_only_said_hello()));
            let leaves = leaves.map(|(id, _)| *id)?;
            left = agents.remove(&leaves);
        }
        let admitted = self.insert(&mut agents, make);
        drop(agents);
        // A report takes a while, in which others look at the agents.
        if let Some(agent) = left {
            if agent.is_over() {
                let report = agent.model().report();
                locked(&self.former).add(report);
            }
            agent.close();
        }
        admitted
    }

    fn insert(
        &self,
        agents: &mut BTreeMap<AgentId, Arc<Agent>>,
        make: impl FnOnce(AgentId, u8, bool) -> Agent,
    ) -> Option<Arc<Agent>> {
        let id = self.next_agent.load(Ordering::Relaxed);
        let [.., first] = id.to_be_bytes();
        let taken = |run: u8| agents.values().any(|agent| agent.run == run && !agent.is_over());
        let run = (0..=255u8).map(|step| first.wrapping_add(step)).find(|run| !taken(*run))?;
        self.next_agent.store(id.wrapping_add(1), Ordering::Relaxed);
        let large = agents.values().filter(|agent| agent.large).count() < self.options.large;
        let agent = Arc::new(make(AgentId(id), run, large));
        agents.insert(AgentId(id), Arc::clone(&agent));
        Some(agent)
    }
}
