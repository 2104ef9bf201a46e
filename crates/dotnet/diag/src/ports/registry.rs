//! The runtimes of a port, each identified by its cookie and the process that the kernel reports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_diag_proto::Advertise;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::admission::{Admission, Standing};
use super::{Runtime, Slot};

/// The number of kin to remember after they have disconnected, so that they do not count as new. Above this number they
/// are forgotten.
const MAX_REMEMBERED_KIN: usize = 10_000;
/// The number of guests to remember after they have disconnected: little is stored, and a repetition is harmless.
const MAX_REMEMBERED_GUESTS: usize = 64;
/// The most users whose visits are reported.
const MAX_REPORTED_USERS: usize = 16;

/// The identity of one run of one runtime. A cookie alone can be repeated by any process that has seen it.
type Key = (Uuid, Option<u32>, u32);

/// The runtimes of a port.
#[derive(Debug)]
pub(super) struct Registry {
    endpoint: Endpoint,
    pub(super) everybody: bool,
    arrivals: mpsc::UnboundedSender<Runtime>,
    slots: Mutex<Slots>,
    admission: Arc<Mutex<Admission>>,
    visitors: Mutex<VisitorQueue>,
    visited: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    kin: BTreeMap<Key, Arc<Slot>>,
    guests: BTreeMap<Key, Arc<Slot>>,
    closed: bool,
}

/// The permission to hold one connection. Returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: u64,
    admission: Arc<Mutex<Admission>>,
}

impl Ticket {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.admission).handle_closed(self.id);
    }
}

/// Locks a mutex. No code under these locks can panic in the middle of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(super) fn new(endpoint: Endpoint, everybody: bool, arrivals: mpsc::UnboundedSender<Runtime>) -> Self {
        Self {
            endpoint,
            everybody,
            arrivals,
            slots: Mutex::default(),
            admission: Arc::default(),
            visitors: Mutex::default(),
            visited: Notify::new(),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn admission(&self) -> MutexGuard<'_, Admission> {
        lock(&self.admission)
    }

    /// Returns the ticket that admission has issued for a connection.
    pub(super) fn ticket(&self, id: u64) -> Ticket {
        Ticket { id, admission: Arc::clone(&self.admission) }
    }

    /// Handles a runtime that has identified itself and whose connection is idle.
    pub(super) fn handle_runtime(
        &self,
        advertise: Advertise,
        peer: Peer,
        standing: Standing,
        stream: Stream,
        ticket: Ticket,
    ) {
        let mut slots = lock(&self.slots);
        if slots.closed || !self.admission().handle_advertise(ticket.id) {
            return;
        }
        let (map, remembered, ticket) = match standing {
            Standing::Kin => {
                // Kin that has identified itself is not counted any more.
                drop(ticket);
                (&mut slots.kin, MAX_REMEMBERED_KIN, None)
            }
            Standing::Guest => (&mut slots.guests, MAX_REMEMBERED_GUESTS, Some(ticket)),
        };
        let key = (advertise.runtime_cookie, peer.pid, peer.uid);
        if let Some(slot) = map.get(&key) {
            slot.put(stream, ticket);
            return;
        }
        if map.len() >= remembered {
            map.retain(|_, slot| !slot.has_hung_up());
        }
        let slot = Arc::new(Slot::new(self.endpoint.clone(), advertise, peer));
        slot.put(stream, ticket);
        map.insert(key, Arc::clone(&slot));
        // The receiver is gone while the port is being dropped.
        let _ = self.arrivals.send(Runtime::new(slot, standing));
    }

    /// Closes the slot of an evicted guest.
    pub(super) fn hang_up_on(&self, ticket: u64) {
        let mut slots = lock(&self.slots);
        let guests = &mut slots.guests;
        let found = guests.iter().find(|(_, slot)| slot.holds(ticket)).map(|(key, _)| *key);
        if let Some(slot) = found.and_then(|key| guests.remove(&key)) {
            slot.close();
        }
    }

    /// Closes all slots because the port is gone.
    pub(super) fn close(&self) {
        let mut slots = lock(&self.slots);
        slots.closed = true;
        for slot in slots.kin.values().chain(slots.guests.values()) {
            slot.close();
        }
    }

    /// Reports a guest that was accepted.
    pub(super) fn report_accepted(&self, peer: Peer) {
        self.visitor(Visitor { peer, was_let_in: true });
    }

    /// Reports a connection that was closed without reading from it.
    pub(super) fn report_rejected(&self, peer: Peer) {
        self.visitor(Visitor { peer, was_let_in: false });
    }

    fn visitor(&self, visitor: Visitor) {
        let mut told = lock(&self.visitors);
        if told.users.len() < MAX_REPORTED_USERS && told.users.insert(visitor.peer.uid) {
            told.waiting.push_back(visitor);
            drop(told);
            self.visited.notify_one();
        }
    }
}

#[derive(Debug, Default)]
struct VisitorQueue {
    users: BTreeSet<u32>,
    waiting: VecDeque<Visitor>,
}

/// A process that connected, belongs to another user, and is not a descendant of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visitor {
    /// The process.
    pub peer: Peer,
    /// Whether the port is for all users; otherwise the connection was closed.
    pub was_let_in: bool,
}

/// A receiver of the connections to a [`Port`](super::Port) from processes that are not kin: the first one of each user,
/// for a limited number of users.
#[derive(Debug)]
pub struct Visitors(Arc<Registry>);

impl Visitors {
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        Self(Arc::clone(registry))
    }

    /// Waits for the next visitor. Cancel safe. Only one task may wait at a time.
    pub async fn next(&self) -> Visitor {
        loop {
            let visited = self.0.visited.notified();
            if let Some(visitor) = lock(&self.0.visitors).waiting.pop_front() {
                return visitor;
            }
            visited.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::super::admission::Limits;
    use super::*;

    const VICTIM: Peer = Peer { pid: Some(10), uid: 0 };

    fn registry() -> (Registry, mpsc::UnboundedReceiver<Runtime>) {
        let (arrivals, told) = mpsc::unbounded_channel();
        (Registry::new(Endpoint::unix("/port"), true, arrivals), told)
    }

    /// Connects as the runtime with this cookie, and returns its end of the connection.
    fn connect(registry: &Registry, cookie: u128, peer: Peer) -> Stream {
        let standing = if peer.uid == 0 { Standing::Kin } else { Standing::Guest };
        let (near, far) = Stream::pair().unwrap();
        let limits = Limits::for_descriptors(256);
        let verdict = registry.admission().handle_connection(standing, peer.uid, Duration::ZERO, &limits);
        verdict.evicted.into_iter().for_each(|ticket| registry.hang_up_on(ticket));
        let advertise = Advertise { runtime_cookie: Uuid::from_u128(cookie), process_id: 10 };
        if let Some(ticket) = verdict.ticket {
            registry.handle_runtime(advertise, peer, standing, near, registry.ticket(ticket));
        }
        far
    }

    async fn is_closed(mut stream: Stream) -> bool {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest.is_empty()
    }

    #[tokio::test]
    async fn a_cookie_does_not_give_access_to_the_slot_of_another_process() {
        let thieves = [
            Peer { pid: Some(11), uid: 65534 },
            Peer { pid: Some(10), uid: 65534 },
            Peer { pid: None, uid: 65534 },
            Peer { pid: Some(11), uid: 0 },
        ];
        for thief in thieves {
            for thief_comes_first in [false, true] {
                let (registry, mut told) = registry();
                let mut stolen = thief_comes_first.then(|| connect(&registry, 7, thief));
                let honest = connect(&registry, 7, VICTIM);
                let stolen = stolen.take().unwrap_or_else(|| connect(&registry, 7, thief));
                let mut runtimes = [told.recv().await.unwrap(), told.recv().await.unwrap()];
                runtimes.sort_by_key(|runtime| runtime.peer() != VICTIM);
                let [victim, other] = runtimes;
                assert_eq!((victim.peer(), other.peer()), (VICTIM, thief));
                let ask = async |runtime: &Runtime| runtime.slot().take(Duration::ZERO).await.unwrap();
                // Data sent over the victim's connection arrives at the victim.
                drop(ask(&victim).await);
                assert!(is_closed(honest).await && stolen.is_idle());
                drop(ask(&other).await);
                assert!(is_closed(stolen).await);
            }
        }
    }

    #[tokio::test]
    async fn one_process_has_one_slot() {
        let (registry, mut told) = registry();
        let peer = Peer { pid: Some(11), uid: 65534 };
        let older = connect(&registry, 7, peer);
        let newer = connect(&registry, 7, peer);
        assert!(is_closed(older).await && newer.is_idle());
        told.recv().await.unwrap();
        assert!(told.try_recv().is_err());
    }

    #[tokio::test]
    async fn evicted_guests_are_disconnected_even_during_a_command() {
        let (registry, mut told) = registry();
        let limits = Limits::for_descriptors(256);
        let guest = |n: u32| Peer { pid: Some(n), uid: 1 };
        let first = connect(&registry, 1, guest(1));
        let runtime = told.recv().await.unwrap();
        let resuming = tokio::spawn({
            let runtime = runtime.clone();
            async move { runtime.resume().await }
        });
        // A command was sent, and is not answered.
        assert!(first.readable().await.unwrap());
        let mut others = Vec::new();
        for n in 0..limits.per_user {
            others.push(connect(&registry, u128::try_from(n).unwrap() + 2, guest(2)));
        }
        resuming.await.unwrap().unwrap_err();
        drop(runtime);
        assert_eq!(registry.admission().guests(), limits.per_user);
        let victim = connect(&registry, 7, VICTIM);
        assert!(victim.is_idle() && others.iter().all(Stream::is_idle));

        let late = registry.admission().handle_out_of_descriptors();
        for ticket in late {
            registry.hang_up_on(ticket);
        }
        for other in others {
            assert!(is_closed(other).await);
        }
        assert!(victim.is_idle());
        drop(told);
        assert_eq!(registry.admission().connections(), 0);
    }

    #[tokio::test]
    async fn disconnected_runtimes_are_forgotten_eventually() {
        let (registry, mut told) = registry();
        for n in 0..1000 {
            drop(connect(&registry, n, Peer { pid: Some(1), uid: 1 }));
            let runtime = told.recv().await.unwrap();
            runtime.resume().await.unwrap_err();
        }
        assert!(lock(&registry.slots).guests.len() <= 2 * MAX_REMEMBERED_GUESTS);
        assert!(registry.admission().guests() <= Limits::for_descriptors(256).per_user);
    }

    #[tokio::test]
    async fn each_user_is_reported_once() {
        let (registry, _told) = registry();
        for uid in [1, 1, 2] {
            registry.report_accepted(Peer { pid: None, uid });
        }
        registry.report_rejected(Peer { pid: None, uid: 3 });
        (4..1000).for_each(|uid| registry.report_accepted(Peer { pid: None, uid }));
        let registry = Arc::new(registry);
        let visitors = Visitors::new(&registry);
        for uid in 1..=u32::try_from(MAX_REPORTED_USERS).unwrap() {
            let visitor = visitors.next().await;
            assert_eq!((visitor.peer.uid, visitor.was_let_in), (uid, uid != 3));
        }
        assert!(lock(&registry.visitors).waiting.is_empty());
    }
}
