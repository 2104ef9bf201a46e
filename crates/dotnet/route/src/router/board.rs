//! Keeps the runtimes that have connected, each with the one connection that waits for a request, and the clients that wait for such
//! a connection.
//!
//! Runtimes are identified by their cookie. A router stands for one of them, the first; others wait until it is gone. The numbers of
//! runtimes, of their connections and of waiting clients are limited. If all places of runtimes are taken, [`Places`] decides which
//! runtime is disconnected.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_diag_proto::Advertise;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::crowd::Origin;
use super::in_use::InUse;
use super::limits::Limits;
use super::link::Link;
use super::notice::{Notice, NoticeReporter};
use super::places::{Entry, Places, RECONNECT_TIMEOUT, RUNTIMES};

/// Why a client gets no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoConnection {
    /// Too many clients are waiting.
    Full,
    /// No connection became available in time.
    TooLong,
    /// The runtime is gone.
    Gone,
}

/// A runtime that has connected.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) advertise: Advertise,
    /// Closed when the runtime has disconnected or lost its place. A runtime that connects again is another arrival.
    place: watch::Receiver<()>,
}

/// The runtimes of a router.
#[derive(Debug)]
pub(crate) struct RuntimeRegistry {
    pub(super) limits: Limits,
    pub(super) reporter: NoticeReporter,
    places: Mutex<Places>,
    /// Notified after every change.
    pub(super) changed: Notify,
    /// Gives clients connections in their order of arrival.
    turn: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
    /// The channel for runtimes that connect for the first time.
    arrivals: Mutex<Option<mpsc::Sender<Arrival>>>,
}

impl RuntimeRegistry {
    pub(crate) fn new(limits: Limits, reporter: NoticeReporter) -> Self {
        Self {
            limits,
            reporter,
            places: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            waiting: AtomicUsize::default(),
            arrivals: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Places> {
        // Code under the lock can't panic in the middle of a change.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a channel that receives every new runtime from now on.
    pub(crate) fn arrivals(&self) -> mpsc::Receiver<Arrival> {
        let (tell, arrivals) = mpsc::channel(RUNTIMES);
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
        arrivals
    }

    /// Adds the connection of a runtime that has identified itself.
    pub(super) fn runtime_connected(self: &Arc<Self>, advertise: Advertise, link: Link, origin: Origin) {
        let (want, wanted) = oneshot::channel();
        let mut state = self.lock();
        state.numbers += 1;
        let number = state.numbers;
        let (mut news, mut arrival) = (Vec::new(), None);
        if let Some(gone) = state.remove_gone(advertise.runtime_cookie) {
            news.push(Notice::RuntimeGone { process_id: gone.process_id });
        }
        if let Some(entry) = state.find(advertise.runtime_cookie) {
            // This closes the older connection, which the runtime has given up too.
            entry.idle = Some(want);
            (entry.seen, entry.number) = (Instant::now(), number);
        } else {
            if let Some(without) = state.make_room(advertise, origin) {
                self.reporter.without_place(without.process_id, RUNTIMES);
                if without.runtime_cookie == advertise.runtime_cookie {
                    return;
                }
            }
            let routed = state.routed();
            let entry = Entry::new(advertise, origin, want, number);
            arrival = Some(Arrival { advertise, place: entry.place.subscribe() });
            state.entries.push(entry);
            news.push(Notice::Runtime { process_id: advertise.process_id });
            if let Some(routed) = routed.and_then(|cookie| state.find(cookie)) {
                let routed = routed.advertise.process_id;
                news.push(Notice::Another { process_id: advertise.process_id, routed });
            }
        }
        drop(state);
        tokio::spawn(hold(Arc::clone(self), advertise, number, link, wanted));
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for notice in &news {
            // If the router connects to tools, each runtime has a tool connection of its own.
            if arrivals.is_none() || !matches!(notice, Notice::Another { .. }) {
                self.reporter.report(notice);
            }
        }
        if let (Some(arrivals), Some(arrival)) = (arrivals, arrival) {
            // The channel has capacity for all known runtimes.
            let _ = arrivals.try_send(arrival);
        }
        self.changed.notify_waiters();
    }

    /// Returns a connection of the runtime with this cookie, or of the one that the router stands for. Clients are served in order.
    pub(crate) async fn take(self: &Arc<Self>, cookie: Option<Uuid>) -> Result<(Link, InUse), NoConnection> {
        let waiting = Waiting::begin(self)?;
        let taking = async {
            // Clients of a specific runtime do not wait for others.
            let _turn = match cookie {
                None => Some(self.turn.lock().await),
                Some(_) => None,
            };
            loop {
                let changed = self.changed.notified();
                let (wanted, gone) = self.want(cookie);
                if gone {
                    return Err(NoConnection::Gone);
                }
                if let Some((idle, in_use)) = wanted {
                    let (give, given) = oneshot::channel();
                    // The task that holds the connection may have ended just now.
                    if idle.send(give).is_ok()
                        && let Ok(link) = given.await
                    {
                        return Ok((link, in_use));
                    }
                    continue;
                }
                waiting.report_once();
                // Whether a runtime is gone is known only after a time.
                let _ = timeout(RECONNECT_TIMEOUT, changed).await;
            }
        };
        timeout(self.limits.wait, taking).await.unwrap_or(Err(NoConnection::TooLong))
    }

    /// Takes the idle connection, and returns whether there can't be another one.
    #[allow(clippy::type_complexity, reason = "used once, just above")]
    fn want(
        self: &Arc<Self>,
        cookie: Option<Uuid>,
    ) -> (Option<(oneshot::Sender<oneshot::Sender<Link>>, InUse)>, bool) {
        let mut state = self.lock();
        let Some(wanted) = cookie.or_else(|| state.routed()) else { return (None, false) };
        let Some(entry) = state.find(wanted) else { return (None, cookie.is_some()) };
        let gone = cookie.is_some() && !entry.is_there();
        let idle = entry.idle.take();
        (idle.map(|idle| (idle, InUse::begin(self, entry))), gone)
    }

    /// Waits until this runtime waits for a request. Returns `false` if it is gone.
    pub(crate) async fn is_idle(&self, cookie: Uuid) -> bool {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                match state.find(cookie) {
                    Some(entry) if entry.idle.is_some() => return true,
                    Some(entry) if entry.is_there() => {}
                    _ => return false,
                }
            }
            let _ = timeout(RECONNECT_TIMEOUT, changed).await;
        }
    }

    /// Waits until the runtime of this arrival has disconnected.
    pub(crate) async fn is_gone(&self, arrival: &Arrival) {
        loop {
            let changed = self.changed.notified();
            let has_left = arrival.place.has_changed().is_err();
            let cookie = arrival.advertise.runtime_cookie;
            if has_left || !self.lock().find(cookie).is_some_and(|entry| entry.is_there()) {
                return;
            }
            let _ = timeout(RECONNECT_TIMEOUT, changed).await;
        }
    }

    /// Waits until there has been no runtime for this time.
    pub(crate) async fn deserted(&self, limit: Duration) {
        let mut since = Instant::now();
        loop {
            let changed = self.changed.notified();
            if self.lock().entries.iter().any(|entry| entry.idle.is_some() || entry.active > 0) {
                changed.await;
                since = Instant::now();
                continue;
            }
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() || timeout(left, changed).await.is_err() {
                return;
            }
        }
    }

    /// Called when an idle connection was closed by the runtime.
    fn hung_up(&self, advertise: Advertise, number: u64) {
        let mut state = self.lock();
        let same = |entry: &Entry| {
            entry.advertise.runtime_cookie == advertise.runtime_cookie && entry.number == number
        };
        let Some(at) = state.entries.iter().position(same) else { return };
        let gone = state.entries.get(at).is_some_and(|entry| entry.active == 0);
        if gone {
            state.entries.remove(at);
        } else if let Some(entry) = state.entries.get_mut(at) {
            entry.idle = None;
        }
        drop(state);
        if gone {
            self.reporter.report(&Notice::RuntimeGone { process_id: advertise.process_id });
        }
        self.changed.notify_waiters();
    }
}

/// A waiting client, which is counted until dropped.
struct Waiting<'a> {
    board: &'a RuntimeRegistry,
    clients: usize,
    told: AtomicUsize,
}

impl<'a> Waiting<'a> {
    fn begin(board: &'a RuntimeRegistry) -> Result<Self, NoConnection> {
        let clients = board.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        let waiting = Self { board, clients, told: AtomicUsize::new(0) };
        if clients > board.limits.queue {
            return Err(NoConnection::Full);
        }
        if clients > 1 {
            waiting.report_once();
        }
        Ok(waiting)
    }

    /// Reports once that the client has to wait.
    fn report_once(&self) {
        if self.told.fetch_add(1, Ordering::Relaxed) == 0 {
            self.board.reporter.report(&Notice::Waiting(self.clients));
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.board.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Holds an idle connection until it is requested, replaced or closed.
async fn hold(
    board: Arc<RuntimeRegistry>,
    advertise: Advertise,
    number: u64,
    link: Link,
    wanted: oneshot::Receiver<oneshot::Sender<Link>>,
) {
    tokio::select! {
        biased;
        // The connection was closed, or the runtime sent unrequested data.
        _ = link.readable() => board.hung_up(advertise, number),
        wanted = wanted => if let Ok(give) = wanted {
            // The client may have left. The runtime will connect again.
            let _ = give.send(link);
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const RUNTIME: Advertise = Advertise { runtime_cookie: Uuid::from_u128(7), process_id: 7 };

    /// The runtime connects, is queried, and its connection ends.
    async fn is_asked_once(board: &Arc<RuntimeRegistry>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let runtime = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        board.runtime_connected(RUNTIME, Link::tcp(stream), Origin::Unknown);
        let taken = board.take(Some(RUNTIME.runtime_cookie)).await.unwrap();
        drop((taken, runtime));
    }

    #[tokio::test]
    async fn a_runtime_that_connects_late_is_a_new_arrival() {
        let board = Arc::new(RuntimeRegistry::new(Limits::default(), NoticeReporter::default()));
        let mut arrivals = board.arrivals();
        is_asked_once(&board).await;
        let first = arrivals.try_recv().expect("it has come");
        is_asked_once(&board).await;
        assert!(arrivals.try_recv().is_err(), "in time");
        board.lock().find(RUNTIME.runtime_cookie).expect("it is known").seen =
            Instant::now() - RECONNECT_TIMEOUT;
        is_asked_once(&board).await;
        let second = arrivals.try_recv().expect("it has come again");
        assert_eq!(board.reporter.statistics().runtimes(), 2);
        // The task that connects to a tool for the first arrival ends even if it has not checked meanwhile.
        board.is_gone(&first).await;
        assert!(timeout(Duration::ZERO, board.is_gone(&second)).await.is_err());
    }
}
