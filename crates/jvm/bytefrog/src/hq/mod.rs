//! HQ on a socket: several agents at a time, each with a control connection and its data connections.
//!
//! Owns: the listener, a thread for each connection, and the runs that data connections name. Blocking threads, not tokio: an
//! agent has a handful of connections, and each of those that carry events keeps a thread busy.
//!
//! ```text
//! Hq::listen(address, options, what to do with an Event)
//!     │ go(agent, mode), command(…), configure(…), fail(…) …  from any thread
//!     │ report(agent), call_tree(agent, …)                    at any time
//!     ▼ close()                                               all connections end
//! ```
//!
//! An agent that breaks a rule, falls silent or goes away costs nobody else anything: what it has sent is kept, and what is
//! wrong with it is an [`Event`]. A connection that does not say hello in time is closed. The protocol has no password; on
//! Linux the users whose processes may connect by loopback can be named ([`Options::users`]). Places
//! are shared among users: the one with most makes room for others, first with what has only said hello.

mod agent;
mod keep_alive;
mod options;
mod places;
mod record;
mod serve;
mod shared;
#[cfg(test)]
mod tests;
mod turn;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{AgentProcess, CommandError};
use runtap_bytefrog_proto::{
    ClassOutcome, Command, Configuration, Dialect, JavaString, Mode, ModeByte, State, Violation,
};
use thiserror::Error;

use crate::{CallTree, Counters, Report};
use agent::Agent;
use shared::{Shared, locked};

pub use options::Options;
pub use places::most_ending;
pub use record::{Connection, Recorder, Tape};

/// How long connections read on after the end, or when their agent has lost its place, for what has already come.
const REST: Duration = Duration::from_secs(2);

/// The number of connections that may wait to be accepted. A flood fills the 128 of the standard library, and a client that finds the
/// queue full tries again after 1, 3, 7 and 15 seconds.
#[cfg(unix)]
const BACKLOG: i32 = 4096;

/// Names an agent: 0, 1, 2 … in the order in which they said hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u32);

/// Something that has happened at an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It has said hello, and got its configuration.
    Connected {
        /// Where it is.
        peer: SocketAddr,
        /// What it speaks.
        dialect: Dialect,
        /// Version 4: the project that it was started for.
        project: Option<u32>,
        /// The run in its configuration.
        run: u8,
    },
    /// It lives.
    Heartbeat {
        /// What it says that it does.
        mode: ModeByte,
        /// Its buffers that wait to be sent.
        queue: u16,
    },
    /// A class was loaded.
    Class {
        /// What became of it.
        outcome: ClassOutcome,
        /// Its name, with slashes.
        name: JavaString,
    },
    /// F1: what process it is.
    Process(AgentProcess),
    /// It says that the trace ends.
    Error(JavaString),
    /// Its version has no room for what it should be told, so that it was sent away.
    NotConfigured(CommandError),
    /// A connection was closed, since it is not of a user that may connect.
    Stranger {
        /// Where it came from.
        peer: SocketAddr,
        /// Whose it is, as far as that can be known.
        user: Option<u32>,
    },
    /// A connection was closed, since there is no room for it: what it would have brought is in no report.
    Refused {
        /// Where it came from.
        peer: SocketAddr,
        /// What there is no room for.
        cause: Refusal,
    },
    /// It had ended, and its place was taken by another one. What it had come to is in [`Hq::former`].
    Replaced,
    /// Its connections are closed, to make room for another one. What they have brought is in [`Hq::former`].
    Displaced {
        /// Whose process it is; `None` if unknown.
        user: Option<u32>,
        /// The user of the other one.
        newcomer: Option<u32>,
        /// Whether it has said nothing but hello.
        silent: bool,
    },
    /// It has broken a rule.
    Violation(Violation),
    /// A data connection has begun or ended; so many are open now.
    Data(usize),
    /// A connection is not recorded any more, and why. The trace goes on.
    RecordingFailed {
        /// Which one.
        connection: Connection,
        /// What the [`Recorder`] has said.
        reason: String,
    },
    /// Its control connection has ended. Data may still come.
    ControlEnded,
    /// All its connections have ended: its report does not change any more.
    Finished,
}

/// Why there was no room for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// So many are open, and each has said hello ([`Options::connections`]).
    Connections(usize),
    /// So many agents are kept, and each lives ([`Options::agents`]).
    Agents(usize),
    /// The system has no descriptor or thread for it.
    System,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connections(open) => write!(f, "{open} connections are open, which is the limit"),
            Self::Agents(agents) => write!(f, "{agents} agents are traced, which is the limit"),
            Self::System => f.write_str("the system has no descriptor or thread for it"),
        }
    }
}

/// Why a command was not carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HqError {
    /// There is no such agent.
    #[error("there is no agent {}", .0.0)]
    NoAgent(AgentId),
    /// It can't be sent now.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// It could not be written.
    #[error("the agent does not take it: {0}")]
    Write(#[from] io::Error),
}

/// An agent at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentState {
    /// Which one.
    pub id: AgentId,
    /// Its run.
    pub run: u8,
    /// What it speaks.
    pub dialect: Dialect,
    /// Where commands have led it.
    pub state: State,
    /// What its last heartbeat said.
    pub said: Option<ModeByte>,
    /// Whether its control connection has ended.
    pub ended: bool,
    /// Data connections that are open.
    pub data: usize,
    /// Whether its process is of HQ's own user, or root's.
    pub is_own: bool,
}

/// A collector that listens.
pub struct Hq {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Hq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hq").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Hq {
    /// Listens at an address. `tell` hears what happens, on the threads of the connections: it should not take long, and may
    /// ask for reports and send commands.
    ///
    /// # Errors
    /// The address can't be listened at.
    pub fn listen(
        address: SocketAddr,
        options: Options,
        tell: impl Fn(Option<AgentId>, Event) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        // A shorter queue works too.
        #[cfg(unix)]
        let _ = rustix::net::listen(&listener, BACKLOG);
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(options, Box::new(tell)));
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("bytefrog-accept".to_owned())
                .spawn(move || serve::accept(&listener, &shared))?
        };
        Ok(Self { shared, address, acceptor: Mutex::new(Some(acceptor)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All agents that have said hello, in that order.
    pub fn agents(&self) -> Vec<AgentState> {
        let agents: Vec<Arc<Agent>> = locked(&self.shared.agents).values().cloned().collect();
        agents.iter().map(|agent| agent.state()).collect()
    }

    /// Leads an agent to a mode, by legal commands only.
    ///
    /// # Errors
    /// No such agent, no way from where it is, or it does not take the command.
    pub fn go(&self, agent: AgentId, mode: Mode) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.go(mode, now))
    }

    /// Sends one command, if it is legal where the agent is.
    ///
    /// # Errors
    /// No such agent, a command that it would end of, or it does not take it.
    pub fn command(&self, agent: AgentId, command: Command) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.command(command, now))
    }

    /// Sends an agent the configuration that it has with changes, before start. Its run stays.
    ///
    /// # Errors
    /// No such agent, it was started, or it does not take it.
    pub fn configure(&self, agent: AgentId, change: impl FnOnce(&mut Configuration)) -> Result<(), HqError> {
        let agent = self.shared.agent(agent)?;
        agent.command(self.shared.now(), |control| {
            let mut configuration = control.configuration().cloned().unwrap_or_default();
            change(&mut configuration);
            configuration.run = agent.run;
            control.configure(&configuration)
        })
    }

    /// Asks an F1 agent for counts and coverage.
    ///
    /// # Errors
    /// No such agent, it speaks another version, or it does not take it.
    pub fn snapshot(&self, agent: AgentId, reset: bool) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.snapshot(reset))
    }

    /// Tells an agent that its trace ends because of an error.
    ///
    /// # Errors
    /// No such agent, or it does not take it.
    pub fn fail(&self, agent: AgentId, text: &str) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| Ok(control.fail(text)))
    }

    /// Begins or ends a named part of the recording, for all agents. Without a [`Recorder`] nothing is done.
    ///
    /// # Errors
    /// The recorder can't keep it.
    pub fn mark(&self, name: &str, begins: bool) -> io::Result<()> {
        let now = self.shared.now();
        self.shared.options.recorder.as_ref().map_or(Ok(()), |recorder| recorder.mark(now, name, begins))
    }

    /// What was counted so far, and how many events wait for those before them. This costs nothing, and does not wait for a
    /// connection that is busy: what such a connection brings is counted with its next pause.
    ///
    /// # Errors
    /// No such agent.
    pub fn counters(&self, agent: AgentId) -> Result<(Counters, usize), HqError> {
        Ok(self.shared.agent(agent)?.counters())
    }

    /// What an agent's trace has come to so far.
    ///
    /// # Errors
    /// No such agent.
    pub fn report(&self, agent: AgentId) -> Result<Report, HqError> {
        Ok(self.shared.agent(agent)?.model().report())
    }

    /// What agents had come to together that have ended or were displaced, and made room for others, and how many they are: agents of
    /// HQ's own user and root (`own`), or all others. `None` if there are none.
    pub fn former(&self, own: bool) -> Option<(u64, Report)> {
        let former = locked(&self.shared.former);
        let sums = if own { &former.own } else { &former.others };
        (sums.agents() > 0).then(|| (sums.agents(), sums.report()))
    }

    /// Who has called whom, in one thread (an index into [`Report::threads`]) or in all.
    ///
    /// # Errors
    /// No such agent.
    pub fn call_tree(&self, agent: AgentId, thread: Option<usize>) -> Result<CallTree, HqError> {
        Ok(self.shared.agent(agent)?.model().call_tree(thread))
    }

    /// Forgets an agent that is over, and its trace.
    pub fn forget(&self, agent: AgentId) {
        let mut agents = locked(&self.shared.agents);
        if agents.get(&agent).is_some_and(|agent| agent.is_over()) {
            agents.remove(&agent);
        }
    }

    /// Has [`Self::close`] not wait for what connections have received and not yet read. To be called before it, or while it
    /// waits.
    pub fn abandon(&self) {
        self.shared.abandon_at(Instant::now());
    }

    /// Ends all connections and waits for their threads; must not be called by the receiver of events. What connections have
    /// received is still read, for two seconds at most. Reports of what has come are still there while HQ is.
    pub fn close(&self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.abandon_at(Instant::now() + REST);
        self.shared.shut();
        let acceptor = locked(&self.acceptor).take();
        if let Some(acceptor) = acceptor {
            let _ = acceptor.join();
            // Those that it has accepted meanwhile.
            self.shared.shut();
        }
        // Settling waits for each agent's trace: others that look at the agents do not wait for that.
        let agents: Vec<Arc<Agent>> = locked(&self.shared.agents).values().cloned().collect();
        for agent in agents {
            agent.settle();
        }
        let threads = std::mem::take(&mut *locked(&self.shared.threads));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Drop for Hq {
    fn drop(&mut self) {
        self.close();
    }
}
