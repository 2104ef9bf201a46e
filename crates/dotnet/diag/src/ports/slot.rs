//! The connection of one runtime that connects to a port: at most one idle connection, used by the next command.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::Ticket;
use crate::Error;

/// A runtime and its idle connection.
#[derive(Debug)]
pub(crate) struct Slot {
    endpoint: Endpoint,
    advertise: Advertise,
    peer: Peer,
    state: Mutex<SlotState>,
    /// Notified once for each new connection, and for all waiting tasks when there will be no more.
    arrived: Notify,
    /// Notifies all waiting tasks when the slot is closed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct SlotState {
    idle: Option<Idle>,
    /// The ticket of the connection that was taken last. Its taker also holds the slot, and has one connection at a time.
    taken: Option<Ticket>,
    /// Whether the runtime closed its idle connection, and therefore has exited.
    hung_up: bool,
    /// Whether the port is gone.
    closed: bool,
}

/// A connection that waits for a command.
#[derive(Debug)]
struct Idle {
    stream: Stream,
    /// The task that notices when the runtime disconnects, so that no descriptor is kept for it.
    _watcher: Watcher,
    /// The ticket of a guest, returned when the connection is closed or the slot is dropped.
    ticket: Option<Ticket>,
}

/// Aborts its task when it is dropped.
#[derive(Debug)]
struct Watcher(AbortHandle);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Slot {
    pub(super) fn new(endpoint: Endpoint, advertise: Advertise, peer: Peer) -> Self {
        Self {
            endpoint,
            advertise,
            peer,
            state: Mutex::default(),
            arrived: Notify::new(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn advertise(&self) -> Advertise {
        self.advertise
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the process id from the kernel or, if unknown, the one that the runtime claims.
    fn process_id(&self) -> u64 {
        self.peer.pid.map_or(self.advertise.process_id, u64::from)
    }

    /// Returns whether its connection was admitted with this ticket.
    pub(super) fn holds(&self, ticket: u64) -> bool {
        let state = self.lock();
        let held = state.idle.as_ref().and_then(|idle| idle.ticket.as_ref()).into_iter().chain(&state.taken);
        held.into_iter().any(|held| held.id() == ticket)
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        // No code under the lock can panic in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a new connection of the runtime; an older idle connection is closed.
    pub(super) fn put(self: &Arc<Self>, stream: Stream, ticket: Option<Ticket>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let slot = Arc::downgrade(self);
        let watcher = tokio::spawn(poll_fn(move |cx| Self::poll_hang_up(&slot, cx)));
        state.idle = Some(Idle { stream, _watcher: Watcher(watcher.abort_handle()), ticket });
        state.hung_up = false;
        drop(state);
        self.arrived.notify_one();
    }

    /// Closes the connection and ends all waits, because the port is gone.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle = None;
        drop(state);
        self.arrived.notify_waiters();
        self.changed.notify_waiters();
    }

    /// Completes when the port is gone, or has disconnected this runtime.
    pub(super) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().closed {
                return;
            }
            changed.await;
        }
    }

    /// Returns whether the runtime has closed its idle connection without a newer one.
    pub(super) fn has_hung_up(&self) -> bool {
        self.lock().hung_up
    }

    /// Takes the idle connection, or waits up to `within` for the next one.
    pub(crate) async fn take(&self, within: Duration) -> Result<Stream, Error> {
        let process_id = self.process_id();
        let waiting = async {
            loop {
                let arrived = self.arrived.notified();
                if let Some(stream) = self.try_take()? {
                    return Ok(stream);
                }
                arrived.await;
            }
        };
        let elapsed = timeout(within, waiting).await;
        elapsed.unwrap_or_else(|_elapsed| {
            Err(Error::NotReconnected { endpoint: self.endpoint.clone(), process_id, waited: within })
        })
    }

    fn try_take(&self) -> Result<Option<Stream>, Error> {
        let mut state = self.lock();
        if state.closed {
            let source = io::Error::new(io::ErrorKind::NotConnected, "the port was closed");
            return Err(Error::Io { endpoint: self.endpoint.clone(), source });
        }
        if let Some(idle) = state.idle.take() {
            // The watcher may not have been woken yet.
            if idle.stream.is_idle() {
                state.taken = idle.ticket;
                return Ok(Some(idle.stream));
            }
            state.hung_up = true;
        }
        if state.hung_up {
            let (endpoint, process_id) = (self.endpoint.clone(), self.process_id());
            return Err(Error::HungUp { endpoint, process_id });
        }
        Ok(None)
    }

    /// Completes when there is nothing to watch any more. Drops the connection when its runtime has closed it, or has sent
    /// data without a command.
    fn poll_hang_up(slot: &Weak<Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(slot) = slot.upgrade() else { return Poll::Ready(()) };
        let mut state = slot.lock();
        let Some(idle) = &mut state.idle else { return Poll::Ready(()) };
        let mut byte = [0; 1];
        if Pin::new(&mut idle.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending() {
            return Poll::Pending;
        }
        state.idle = None;
        state.hung_up = true;
        drop(state);
        // Waiting tasks learn that no connection will come.
        slot.arrived.notify_waiters();
        Poll::Ready(())
    }
}
