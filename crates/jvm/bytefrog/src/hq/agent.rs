//! One agent: its control connection's state, its trace, and how many of its connections are open.

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{CommandError, Control};
use runtap_bytefrog_proto::{Dialect, Side};

use super::places::is_own_or_root;
use super::record::Taped;
use super::shared::{User, locked};
use super::turn::Queue;
use super::{AgentId, AgentState, HqError, REST};
use crate::{Counters, Model};

pub(super) struct Agent {
    pub(super) id: AgentId,
    pub(super) run: u8,
    /// Whose process it is.
    pub(super) user: User,
    pub(super) dialect: Dialect,
    /// Whether it holds one of the places for large traces ([`super::Options::large`]).
    large: AtomicBool,
    control: Mutex<Control>,
    /// Of the control connection; `None` after its end, so that an ended agent holds no descriptor.
    socket: Mutex<Option<Arc<TcpStream>>>,
    /// Commands of two threads are written in the order in which they change the state. An agent may take its time to read
    /// one: its state is to be seen meanwhile.
    writing: Mutex<()>,
    /// The recording of the control connection.
    pub(super) tape: Taped,
    model: Mutex<Model>,
    /// Held by the thread that gets the model next.
    next: Mutex<()>,
    /// The model's counters when it was last free, and its events that waited.
    counted: Mutex<(Counters, usize)>,
    pub(super) queue: Queue,
    ends: Mutex<Ends>,
}

/// How far an agent has come to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Lives,
    /// All connections have ended, and what they brought is being added up.
    Over,
    /// The trace is complete, and does not change any more.
    Complete,
}

/// Which connections are open.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    control: bool,
    data: usize,
    /// Data connections that there have been.
    numbered: u32,
    phase: Phase,
    /// Another agent has its place.
    left: bool,
    /// Until when its connections are read; `None` if that has no limit.
    read_until: Option<Instant>,
    /// When the last of them began, while further ones may.
    opened: Option<Instant>,
}

impl Ends {
    fn read_until(&mut self, at: Instant) {
        self.read_until = Some(self.read_until.map_or(at, |before| before.min(at)));
    }

    fn end_if_all_closed(&mut self) {
        if self.control && self.data == 0 {
            self.phase = Phase::Over;
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
            tape: Taped::off(),
            model: Mutex::new(model),
            next: Mutex::default(),
            counted: Mutex::default(),
            queue: Queue::default(),
            ends: Mutex::default(),
        }
    }

    /// Changes the state of the control connection and writes what follows from it, in one call. What can't be written ends
    /// the connection.
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
            // A part of it may have been taken: what came next would land inside of it.
            self.close();
        })?;
        Ok(())
    }

    /// The trace. Threads get it in turn: a lock alone may go to the thread that has just returned it, as often as a busy
    /// connection asks.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        let _next = locked(&self.next);
        locked(&self.model)
    }

    /// Whether it holds a place for a large trace.
    pub(super) fn is_large(&self) -> bool {
        self.large.load(Ordering::Relaxed)
    }

    /// Its trace has turned out to be small: it gives that place back.
    pub(super) fn give_large_place_back(&self) {
        self.large.store(false, Ordering::Relaxed);
    }

    /// Makes the counters of the trace visible to [`Self::counters`].
    pub(super) fn publish(&self, model: &Model) {
        *locked(&self.counted) = (model.counters(), model.waiting());
    }

    /// The counters as they were last published. Does not wait for the trace.
    pub(super) fn counters(&self) -> (Counters, usize) {
        *locked(&self.counted)
    }

    /// The state of the control connection.
    pub(super) fn with<T>(&self, with: impl FnOnce(&mut Control) -> T) -> T {
        with(&mut locked(&self.control))
    }

    pub(super) fn state(&self) -> AgentState {
        let ends = *locked(&self.ends);
        let (state, said) = self.with(|control| (control.state(), control.said()));
        AgentState {
            id: self.id,
            run: self.run,
            dialect: self.dialect,
            state,
            said,
            ended: ends.control,
            data: ends.data,
            is_own: is_own_or_root(self.user),
        }
    }

    /// Whether it has neither said that it lives nor sent anything: whoever connects can say hello.
    pub(super) fn has_only_said_hello(&self) -> bool {
        locked(&self.ends).numbered == 0 && self.with(|control| control.said().is_none())
    }

    /// Takes its place away. Returns how far it had come.
    pub(super) fn leave(&self) -> Phase {
        let phase = {
            let mut ends = locked(&self.ends);
            ends.left = true;
            ends.read_until(Instant::now() + REST);
            ends.phase
        };
        // Without the model, which others may hold for a while: those that miss this look again.
        self.queue.moved.notify_all();
        phase
    }

    /// If it has lost its place, what its connections have not read yet is left out.
    pub(super) fn abandon(&self) {
        let mut ends = locked(&self.ends);
        if ends.left {
            ends.read_until(Instant::now());
        }
    }

    /// What its connections have not read by then is left out.
    pub(super) fn read_until(&self, at: Instant) {
        locked(&self.ends).read_until(at);
    }

    /// Whether its connections should end without what they have not read yet.
    pub(super) fn is_abandoned(&self) -> bool {
        locked(&self.ends).read_until.is_some_and(|until| until <= Instant::now())
    }

    /// Its trace is complete: whether it had lost its place by then.
    pub(super) fn finish(&self) -> bool {
        let mut ends = locked(&self.ends);
        ends.phase = Phase::Complete;
        ends.left
    }

    /// Whether it has lost its place.
    pub(super) fn has_left(&self) -> bool {
        locked(&self.ends).left
    }

    /// Ends the control connection.
    pub(super) fn close(&self) {
        if let Some(socket) = &*locked(&self.socket) {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether nothing more can come.
    pub(super) fn is_over(&self) -> bool {
        locked(&self.ends).phase != Phase::Lives
    }

    /// A data connection has begun: how many are open, and its number. `None`: it came too late.
    pub(super) fn open_data(&self) -> Option<(usize, u32)> {
        let mut ends = locked(&self.ends);
        if ends.phase != Phase::Lives {
            return None;
        }
        ends.data += 1;
        ends.numbered = ends.numbered.wrapping_add(1);
        ends.opened = Some(Instant::now());
        Some((ends.data, ends.numbered.wrapping_sub(1)))
    }

    /// A data connection has ended: how many are open, and whether that was the last of all.
    pub(super) fn close_data(&self) -> (usize, bool) {
        let now = {
            let mut ends = locked(&self.ends);
            ends.data = ends.data.saturating_sub(1);
            ends.end_if_all_closed();
            *ends
        };
        // Whoever holds the model has seen that, or waits.
        drop(self.model());
        self.queue.moved.notify_all();
        (now.data, now.phase == Phase::Over)
    }

    /// How many data connections are open, and how long no further one has begun.
    pub(super) fn data(&self) -> (usize, Duration) {
        let ends = *locked(&self.ends);
        (ends.data, ends.opened.map_or(Duration::MAX, |opened| opened.elapsed()))
    }

    /// No further data connection is expected: those that wait for one another do not wait for it.
    pub(super) fn settle(&self) {
        locked(&self.ends).opened = None;
        // Whoever holds the model has seen that, or waits.
        drop(self.model());
        self.queue.moved.notify_all();
    }

    /// The control connection has ended: whether that was the last of all.
    pub(super) fn close_control(&self) -> bool {
        *locked(&self.socket) = None;
        let mut ends = locked(&self.ends);
        ends.control = true;
        ends.end_if_all_closed();
        ends.phase == Phase::Over
    }
}
