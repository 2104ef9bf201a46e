//! HQ on a socket: several agents at the same time, each with a control connection and its data connections.
//!
//! Contains the listener, a thread per connection, and the assignment of runs to agents. Threads block instead of
//! using tokio: an agent has few connections, and each one that carries events keeps a thread busy.
//!
//! ```text
//! Hq::listen(address, options, on_event)
//!     │ change_mode(agent, mode), command(…), configure(…), fail(…) …  from any thread
//!     │ report(agent), call_tree(agent, …)                             at any time
//!     ▼ close()                                                        closes all connections
//! ```
//!
//! An agent that breaks a rule, stops responding or disconnects does not affect other agents: what it has sent is
//! kept, and the problem is reported as an [`Event`]. A connection that does not say hello in time is closed. The
//! protocol has no password; on Linux, the users whose processes may connect over the loopback interface can be
//! restricted ([`Options::users`]). Slots are shared fairly among users: the user who occupies the most makes room
//! for others, first by connections that have only said hello.

mod agent;
mod keep_alive;
mod options;
mod ordered_access;
mod record;
mod serve;
mod shared;
mod slots;
#[cfg(test)]
mod tests;
mod users;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{AgentProcess, CommandError};
use runtap_bytefrog_proto::{
    AgentState, ClassOutcome, Command, Configuration, Dialect, JavaString, Mode, ModeByte, Violation,
};
use thiserror::Error;

use crate::{CallTree, Counters, Report};
use agent::Agent;
use shared::{Shared, locked};

pub use options::Options;
pub use record::{Connection, Recorder, Tape};
pub use users::{UnknownUser, allowed_users};

/// The time for which connections continue to read what has already arrived, after HQ closes or their agent is
/// displaced.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The number of connections that may wait to be accepted. A flood of connections fills the 128 of the standard
/// library, and a client that finds the queue full retries after 1, 3, 7 and 15 seconds.
#[cfg(unix)]
const BACKLOG: i32 = 4096;

/// The number of an agent: 0, 1, 2 … in the order in which agents said hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u32);

/// An event of HQ, mostly of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The agent said hello and was sent its configuration.
    Connected {
        /// The address of the agent.
        peer: SocketAddr,
        /// The dialect that the agent speaks.
        dialect: Dialect,
        /// Version 4: the project that the agent was started for.
        project: Option<u32>,
        /// The run number in its configuration.
        run: u8,
    },
    /// The agent sent a heartbeat.
    Heartbeat {
        /// The mode that the agent reports.
        mode: ModeByte,
        /// The number of buffers that wait to be sent.
        queue: u16,
    },
    /// A class was loaded in the agent's JVM.
    Class {
        /// What the agent did with the class.
        outcome: ClassOutcome,
        /// The name of the class, with slashes.
        name: JavaString,
    },
    /// F1: the agent described its process.
    Process(AgentProcess),
    /// The agent reported an error, which ends the trace.
    Error(JavaString),
    /// The agent was rejected, because its version cannot represent the configuration.
    NotConfigured(CommandError),
    /// A connection was closed, because its user may not connect.
    UserRejected {
        /// The address of the client.
        peer: SocketAddr,
        /// The user of the client; `None` if unknown.
        user: Option<u32>,
    },
    /// A connection was rejected, because a limit is reached: its data is in no report.
    Rejected {
        /// The address of the client.
        peer: SocketAddr,
        /// The limit.
        cause: RejectReason,
    },
    /// The agent had finished, and a new agent took its slot. Its totals are in [`Hq::former`].
    Replaced,
    /// The agent's connections are closed, to make room for a new agent. Its totals are in [`Hq::former`].
    Displaced {
        /// The user of the agent's process; `None` if unknown.
        user: Option<u32>,
        /// The user of the new agent's process; `None` if unknown.
        newcomer: Option<u32>,
        /// Whether the agent has sent nothing but hello.
        silent: bool,
    },
    /// The agent broke a rule of the protocol.
    Violation(Violation),
    /// A data connection was opened or closed; the number of open ones.
    Data(usize),
    /// The recording of a connection failed. The trace continues.
    RecordingFailed {
        /// The connection.
        connection: Connection,
        /// The error of the [`Recorder`].
        reason: String,
    },
    /// The control connection is closed. Data may still arrive.
    ControlEnded,
    /// All connections are closed: the report no longer changes.
    Finished,
}

/// The reason why a connection was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// This number of connections is open, and all of them have said hello ([`Options::connections`]).
    Connections(usize),
    /// This number of agents is kept, and all of them are connected ([`Options::agents`]).
    Agents(usize),
    /// The operating system has no file descriptor or thread left.
    System,
}

impl std::fmt::Display for RejectReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connections(open) => write!(f, "{open} connections are open, which is the limit"),
            Self::Agents(agents) => write!(f, "{agents} agents are traced, which is the limit"),
            Self::System => f.write_str("the system has no file descriptor or thread left"),
        }
    }
}

/// An error of a command to an agent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HqError {
    /// The agent does not exist.
    #[error("there is no agent {}", .0.0)]
    NoAgent(AgentId),
    /// The command cannot be sent now.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Writing to the agent failed.
    #[error("cannot write to the agent: {0}")]
    Write(#[from] io::Error),
}

/// The status of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// The agent.
    pub id: AgentId,
    /// The run number of the agent.
    pub run: u8,
    /// The dialect that the agent speaks.
    pub dialect: Dialect,
    /// The state that the commands led to.
    pub state: AgentState,
    /// The mode in the last heartbeat; `None` before the first one.
    pub reported_mode: Option<ModeByte>,
    /// Whether the control connection is closed.
    pub ended: bool,
    /// The number of open data connections.
    pub data: usize,
    /// Whether the agent's process belongs to HQ's own user, or to root.
    pub is_own: bool,
}

/// A collector that listens for agents.
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
    /// Listens on an address. `on_event` receives the events, on the threads of the connections: it should return
    /// quickly, and may request reports and send commands.
    ///
    /// # Errors
    /// Fails if the address cannot be listened on.
    pub fn listen(
        address: SocketAddr,
        options: Options,
        on_event: impl Fn(Option<AgentId>, Event) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        // A failure leaves the shorter queue, which works too.
        #[cfg(unix)]
        let _ = rustix::net::listen(&listener, BACKLOG);
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(options, Box::new(on_event)));
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("bytefrog-accept".to_owned())
                .spawn(move || serve::accept(&listener, &shared))?
        };
        Ok(Self { shared, address, acceptor: Mutex::new(Some(acceptor)) })
    }

    /// Returns the address on which HQ listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all agents, in the order in which they said hello.
    pub fn agents(&self) -> Vec<AgentStatus> {
        let agents: Vec<Arc<Agent>> = locked(&self.shared.agents).values().cloned().collect();
        agents.iter().map(|agent| agent.status()).collect()
    }

    /// Changes the mode of an agent, using legal commands only.
    ///
    /// # Errors
    /// Fails if the agent does not exist, if no commands lead to the mode, or if writing fails.
    pub fn change_mode(&self, agent: AgentId, mode: Mode) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.change_mode(mode, now))
    }

    /// Sends one command, if it is legal in the agent's state.
    ///
    /// # Errors
    /// Fails if the agent does not exist, if the command is illegal, or if writing fails.
    pub fn command(&self, agent: AgentId, command: Command) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.command(command, now))
    }

    /// Sends an agent its current configuration with changes, before start. The run number is unchanged.
    ///
    /// # Errors
    /// Fails if the agent does not exist or was started, or if writing fails.
    pub fn configure(&self, agent: AgentId, change: impl FnOnce(&mut Configuration)) -> Result<(), HqError> {
        let agent = self.shared.agent(agent)?;
        agent.command(self.shared.now(), |control| {
            let mut configuration = control.configuration().cloned().unwrap_or_default();
            change(&mut configuration);
            configuration.run = agent.run;
            control.configure(&configuration)
        })
    }

    /// Requests counts and coverage from an F1 agent.
    ///
    /// # Errors
    /// Fails if the agent does not exist or speaks another version, or if writing fails.
    pub fn snapshot(&self, agent: AgentId, reset: bool) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| control.snapshot(reset))
    }

    /// Sends an agent an error, which ends its trace.
    ///
    /// # Errors
    /// Fails if the agent does not exist, or if writing fails.
    pub fn fail(&self, agent: AgentId, text: &str) -> Result<(), HqError> {
        let now = self.shared.now();
        self.shared.agent(agent)?.command(now, |control| Ok(control.fail(text)))
    }

    /// Starts or ends a named part of the recording, for all agents. Does nothing without a [`Recorder`].
    ///
    /// # Errors
    /// Fails if the recorder cannot write the mark.
    pub fn mark(&self, name: &str, begins: bool) -> io::Result<()> {
        let now = self.shared.now();
        self.shared.options.recorder.as_ref().map_or(Ok(()), |recorder| recorder.mark(now, name, begins))
    }

    /// Returns the counters so far, and the number of events that wait for earlier ones. Does not wait for busy
    /// connections: what such a connection delivers is included at its next pause.
    ///
    /// # Errors
    /// Fails if the agent does not exist.
    pub fn counters(&self, agent: AgentId) -> Result<(Counters, usize), HqError> {
        Ok(self.shared.agent(agent)?.counters())
    }

    /// Returns the report on an agent's trace so far.
    ///
    /// # Errors
    /// Fails if the agent does not exist.
    pub fn report(&self, agent: AgentId) -> Result<Report, HqError> {
        Ok(self.shared.agent(agent)?.model().report())
    }

    /// Returns the number and the combined report of the agents that made room for others: agents of HQ's own user
    /// and root (`own`), or all other agents. `None` if there are none.
    pub fn former(&self, own: bool) -> Option<(u64, Report)> {
        let former = locked(&self.shared.former);
        let sums = if own { &former.own } else { &former.others };
        (sums.agents() > 0).then(|| (sums.agents(), sums.report()))
    }

    /// Returns the call tree of one thread (an index into [`Report::threads`]) or of all threads.
    ///
    /// # Errors
    /// Fails if the agent does not exist.
    pub fn call_tree(&self, agent: AgentId, thread: Option<usize>) -> Result<CallTree, HqError> {
        Ok(self.shared.agent(agent)?.model().call_tree(thread))
    }

    /// Removes an agent whose connections are all closed, and its trace.
    pub fn forget(&self, agent: AgentId) {
        let mut agents = locked(&self.shared.agents);
        if agents.get(&agent).is_some_and(|agent| agent.is_closed()) {
            agents.remove(&agent);
        }
    }

    /// Makes [`Self::close`] not wait for data that connections have received but not read yet. To be called before
    /// `close`, or while it waits.
    pub fn abandon(&self) {
        self.shared.abandon_at(Instant::now());
    }

    /// Closes all connections and waits for their threads; must not be called by the receiver of events. Data that
    /// connections have received is still read, for at most two seconds. Reports remain available.
    pub fn close(&self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.abandon_at(Instant::now() + DRAIN_TIME);
        self.shared.shut();
        let acceptor = locked(&self.acceptor).take();
        if let Some(acceptor) = acceptor {
            let _ = acceptor.join();
            // Connections that were accepted in the meantime.
            self.shared.shut();
        }
        // Settling waits for each agent's trace, so the table of agents is not locked during it.
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
