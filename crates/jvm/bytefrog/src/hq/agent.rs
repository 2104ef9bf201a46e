//! An agent: the state of its control connection, its trace, and the number of its open connections.

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{CommandError, Control};
use runtap_bytefrog_proto::{Dialect, Side};

use super::ordered_access::WaitQueue;
use super::record::RecordedConnection;
use super::shared::{User, locked};
use super::slots::is_own_or_root;
use super::{AgentId, AgentStatus, DRAIN_TIME, HqError};
use crate::{Counters, Model};

pub(super) struct Agent {
    pub(super) id: AgentId,
    pub(super) run: u8,
    /// The user of the agent's process.
    pub(super) user: User,
    pub(super) dialect: Dialect,
    /// Whether the agent occupies one of the slots for large traces ([`super::Options::large`]).
    large: AtomicBool,
    control: Mutex<Control>,
    /// The socket of the control connection; `None` once that is closed, so that a closed agent holds no descriptor.
    socket: Mutex<Option<Arc<TcpStream>>>,
    /// Orders the commands of several threads on the wire as they change the state. A write may block while the
    /// agent does not read; the state stays visible meanwhile.
    writing: Mutex<()>,
    /// The recording of the control connection.
    pub(super) tape: RecordedConnection,
    model: Mutex<Model>,
    /// Held by the thread that acquires the model next.
    next: Mutex<()>,
    /// The counters of the model when it was last unlocked, and the number of its waiting events.
    counted: Mutex<(Counters, usize)>,
    pub(super) queue: WaitQueue,
    connections: Mutex<Connections>,
}

/// The progress of an agent toward its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Running,
    /// All connections are closed, and the trace is being completed.
    Closed,
    /// The trace is complete and no longer changes.
    Complete,
}

/// The connections of an agent.
#[derive(Debug, Clone, Copy, Default)]
struct Connections {
    control_closed: bool,
    /// The number of open data connections.
    data: usize,
    /// The number of data connections so far.
    numbered: u32,
    phase: Phase,
    /// Whether another agent took the slot of this one.
    displaced: bool,
    /// The time until which the connections are read; `None` if unlimited.
    read_until: Option<Instant>,
    /// The time at which the last data connection was opened, while further ones may follow.
    opened: Option<Instant>,
}

impl Connections {
    fn read_until(&mut self, at: Instant) {
        self.read_until = Some(self.read_until.map_or(at, |before| before.min(at)));
    }

    fn close_if_last(&mut self) {
        if self.control_closed && self.data == 0 {
            self.phase = Phase::Closed;
        }
    }
}

impl Agent {
    pub(super) fn new(
        id: AgentId,
        (run, user): (u8, User),
        dialect: Dialect,
        control: Control,
        socket: Arc<TcpStream>,
        (model, large): (Model, bool),
    ) -> Self {
        Self {
            id,
            run,
            user,
            dialect,
            large: AtomicBool::new(large),
            control: Mutex::new(control),
            socket: Mutex::new(Some(socket)),
            writing: Mutex::default(),
            tape: RecordedConnection::off(),
            model: Mutex::new(model),
            next: Mutex::default(),
            counted: Mutex::default(),
            queue: WaitQueue::default(),
            connections: Mutex::default(),
        }
    }

    /// Changes the state of the control connection and sends the resulting bytes with one write. Closes the
    /// connection if the write fails.
    pub(super) fn command(
        &self,
        now: Duration,
        command: impl FnOnce(&mut Control) -> Result<Vec<u8>, CommandError>,
    ) -> Result<(), HqError> {
        let _next = locked(&self.writing);
        let bytes = self.with(command)?;
        self.tape.write(Side::Hq, now, &bytes);
        let socket =
            locked(&self.socket).clone().ok_or(io::ErrorKind::NotConnected).map_err(io::Error::from)?;
        (&*socket).write_all(&bytes).inspect_err(|_| {
            // The bytes may have been written in part, so further ones would be misread.
            self.close();
        })?;
        Ok(())
    }

    /// Locks the trace. Threads acquire it in turn: a single lock may return to the thread that just released it as
    /// long as its connection is busy.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        let _next = locked(&self.next);
        locked(&self.model)
    }

    /// Returns whether the agent occupies a slot for a large trace.
    pub(super) fn is_large(&self) -> bool {
        self.large.load(Ordering::Relaxed)
    }

    /// Releases the slot for a large trace, because the trace turned out to be small.
    pub(super) fn release_large_slot(&self) {
        self.large.store(false, Ordering::Relaxed);
    }

    /// Publishes the counters of the trace for [`Self::counters`].
    pub(super) fn publish(&self, model: &Model) {
        *locked(&self.counted) = (model.counters(), model.waiting());
    }

    /// Returns the counters as last published, without waiting for the trace.
    pub(super) fn counters(&self) -> (Counters, usize) {
        *locked(&self.counted)
    }

    /// Accesses the state of the control connection.
    pub(super) fn with<T>(&self, with: impl FnOnce(&mut Control) -> T) -> T {
        with(&mut locked(&self.control))
    }

    pub(super) fn status(&self) -> AgentStatus {
        let connections = *locked(&self.connections);
        let (state, reported_mode) = self.with(|control| (control.state(), control.reported_mode()));
        AgentStatus {
            id: self.id,
            run: self.run,
            dialect: self.dialect,
            state,
            reported_mode,
            ended: connections.control_closed,
            data: connections.data,
            is_own: is_own_or_root(self.user),
        }
    }

    /// Returns whether the agent has sent neither a heartbeat nor data: any client can say hello.
    pub(super) fn has_only_said_hello(&self) -> bool {
        locked(&self.connections).numbered == 0 && self.with(|control| control.reported_mode().is_none())
    }

    /// Marks the agent as displaced. Returns its phase.
    pub(super) fn mark_displaced(&self) -> Phase {
        let phase = {
            let mut connections = locked(&self.connections);
            connections.displaced = true;
            connections.read_until(Instant::now() + DRAIN_TIME);
            connections.phase
        };
        // The model is not locked, because other threads may hold it for a while; a thread that misses this wakes
        // up again soon.
        self.queue.moved.notify_all();
        phase
    }

    /// If the agent is displaced, discards what its connections have not read yet.
    pub(super) fn abandon(&self) {
        let mut connections = locked(&self.connections);
        if connections.displaced {
            connections.read_until(Instant::now());
        }
    }

    /// Discards what the connections have not read at this time.
    pub(super) fn read_until(&self, at: Instant) {
        locked(&self.connections).read_until(at);
    }

    /// Returns whether the connections should close without reading what they have received.
    pub(super) fn is_abandoned(&self) -> bool {
        locked(&self.connections).read_until.is_some_and(|until| until <= Instant::now())
    }

    /// Marks the trace as complete. Returns whether the agent was displaced before.
    pub(super) fn finish(&self) -> bool {
        let mut connections = locked(&self.connections);
        connections.phase = Phase::Complete;
        connections.displaced
    }

    /// Returns whether another agent took the slot of this one.
    pub(super) fn is_displaced(&self) -> bool {
        locked(&self.connections).displaced
    }

    /// Closes the control connection.
    pub(super) fn close(&self) {
        if let Some(socket) = &*locked(&self.socket) {
            // An error means that it is already closed.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns whether all connections are closed.
    pub(super) fn is_closed(&self) -> bool {
        locked(&self.connections).phase != Phase::Running
    }

    /// Registers a new data connection. Returns the number of open data connections and the number of the new one;
    /// `None` if the agent is already closed.
    pub(super) fn open_data(&self) -> Option<(usize, u32)> {
        let mut connections = locked(&self.connections);
        if connections.phase != Phase::Running {
            return None;
        }
        connections.data += 1;
        connections.numbered = connections.numbered.wrapping_add(1);
        connections.opened = Some(Instant::now());
        Some((connections.data, connections.numbered.wrapping_sub(1)))
    }

    /// Unregisters a data connection. Returns the number of open data connections, and whether this was the last
    /// connection of the agent.
    pub(super) fn close_data(&self) -> (usize, bool) {
        let now = {
            let mut connections = locked(&self.connections);
            connections.data = connections.data.saturating_sub(1);
            connections.close_if_last();
            *connections
        };
        // A thread that locks the model after this has seen the change; the others are woken.
        drop(self.model());
        self.queue.moved.notify_all();
        (now.data, now.phase == Phase::Closed)
    }

    /// Returns the number of open data connections, and the time since the last one was opened.
    pub(super) fn data(&self) -> (usize, Duration) {
        let connections = *locked(&self.connections);
        (connections.data, connections.opened.map_or(Duration::MAX, |opened| opened.elapsed()))
    }

    /// Notes that no further data connection is expected, so that connections do not wait for one.
    pub(super) fn settle(&self) {
        locked(&self.connections).opened = None;
        // A thread that locks the model after this has seen the change; the others are woken.
        drop(self.model());
        self.queue.moved.notify_all();
    }

    /// Notes that the control connection is closed. Returns whether this was the last connection of the agent.
    pub(super) fn close_control(&self) -> bool {
        *locked(&self.socket) = None;
        let mut connections = locked(&self.connections);
        connections.control_closed = true;
        connections.close_if_last();
        connections.phase == Phase::Closed
    }
}
