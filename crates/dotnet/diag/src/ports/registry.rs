//! The runtimes of a port: each is a cookie and the process that the kernel sees behind it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_diag_proto::Advertise;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::admission::{Admission, Standing};
use super::{Runtime, Slot};

/// Kin that is remembered although it has hung up, so that none is taken for a new one. Above this number they are
/// forgotten.
const REMEMBERED: usize = 10_000;
/// The same of guests: what is kept of one is small, and that it comes a second time does no harm.
const GUESTS_REMEMBERED: usize = 64;
/// Users of whom is told that they have come.
const TOLD: usize = 16;

/// One run of one runtime. A cookie alone can be repeated by anybody who has seen it.
type Key = (Uuid, Option<u32>, u32);

/// The runtimes of a port.
#[derive(Debug)]
pub(super) struct Registry {
    endpoint: Endpoint,
    pub(super) everybody: bool,
    tell: mpsc::UnboundedSender<Runtime>,
    slots: Mutex<Slots>,
    admission: Arc<Mutex<Admission>>,
    visitors: Mutex<Told>,
    visited: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    kin: BTreeMap<Key, Arc<Slot>>,
    guests: BTreeMap<Key, Arc<Slot>>,
    closed: bool,
}

/// The permission to hold one connection. Given back when it is dropped.
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

/// Nothing that runs under a lock of ours can panic halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(super) fn new(endpoint: Endpoint, everybody: bool, tell: mpsc::UnboundedSender<Runtime>) -> Self {
        Self {
            endpoint,
            everybody,
            tell,
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

    /// What admission has given to a connection.
    pub(super) fn ticket(&self, id: u64) -> Ticket {
        Ticket { id, admission: Arc::clone(&self.admission) }
    }

    /// A runtime has said who it is; its connection is idle now.
    pub(super) fn dialled_in(
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
                // Kin is not counted any more.
                drop(ticket);
                (&mut slots.kin, REMEMBERED, None)
            }
            Standing::Guest => (&mut slots.guests, GUESTS_REMEMBERED, Some(ticket)),
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
        // Nobody listens any more: the port is being dropped.
        let _ = self.tell.send(Runtime::new(slot, standing));
    }

    /// Closes the slot of a guest that was told to leave.
    pub(super) fn hang_up_on(&self, ticket: u64) {
        let mut slots = lock(&self.slots);
        let guests = &mut slots.guests;
        let found = guests.iter().find(|(_, slot)| slot.holds(ticket)).map(|(key, _)| *key);
        if let Some(slot) = found.and_then(|key| guests.remove(&key)) {
            slot.close();
        }
    }

    /// The port is gone.
    pub(super) fn close(&self) {
        let mut slots = lock(&self.slots);
        slots.closed = true;
        for slot in slots.kin.values().chain(slots.guests.values()) {
            slot.close();
        }
    }

    /// A guest has come in.
    pub(super) fn came_in(&self, peer: Peer) {
        self.visitor(Visitor { peer, was_let_in: true });
    }

    /// Somebody was hung up on without a word.
    pub(super) fn turned_away(&self, peer: Peer) {
        self.visitor(Visitor { peer, was_let_in: false });
    }

    fn visitor(&self, visitor: Visitor) {
        let mut told = lock(&self.visitors);
        if told.users.len() < TOLD && told.users.insert(visitor.peer.uid) {
            told.waiting.push_back(visitor);
            drop(told);
            self.visited.notify_one();
        }
    }
}

#[derive(Debug, Default)]
struct Told {
    users: BTreeSet<u32>,
    waiting: VecDeque<Visitor>,
}

/// Somebody of another user, who is not below us, has dialled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visitor {
    /// Who it was.
    pub peer: Peer,
    /// Whether the port is for everybody; at others it was hung up on.
    pub was_let_in: bool,
}

/// Tells of those who dial in at a [`Port`](super::Port) and are no kin: the first one of each user, of a few users.
#[derive(Debug)]
pub struct Visitors(Arc<Registry>);

impl Visitors {
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        Self(Arc::clone(registry))
    }

    /// The next one. Cancel safe. One at a time may wait.
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
        let (tell, told) = mpsc::unbounded_channel();
        (Registry::new(Endpoint::unix("/port"), true, tell), told)
    }

    /// Somebody connects and says that it is the runtime with this cookie; its end of the connection.
    fn dial(registry: &Registry, cookie: u128, peer: Peer) -> Stream {
        let standing = if peer.uid == 0 { Standing::Kin } else { Standing::Guest };
        let (near, far) = Stream::pair().unwrap();
        let limits = Limits::for_descriptors(256);
        let verdict = registry.admission().handle_connection(standing, peer.uid, Duration::ZERO, &limits);
        verdict.evicted.into_iter().for_each(|ticket| registry.hang_up_on(ticket));
        let advertise = Advertise { runtime_cookie: Uuid::from_u128(cookie), process_id: 10 };
        if let Some(ticket) = verdict.ticket {
            registry.dialled_in(advertise, peer, standing, near, registry.ticket(ticket));
        }
        far
    }

    async fn is_closed(mut stream: Stream) -> bool {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest.is_empty()
    }

    #[tokio::test]
    async fn a_cookie_is_no_key_to_the_place_of_another_process() {
        let thieves = [
            Peer { pid: Some(11), uid: 65534 },
            Peer { pid: Some(10), uid: 65534 },
            Peer { pid: None, uid: 65534 },
            Peer { pid: Some(11), uid: 0 },
        ];
        for thief in thieves {
            for thief_comes_first in [false, true] {
                let (registry, mut told) = registry();
                let mut stolen = thief_comes_first.then(|| dial(&registry, 7, thief));
                let honest = dial(&registry, 7, VICTIM);
                let stolen = stolen.take().unwrap_or_else(|| dial(&registry, 7, thief));
                let mut runtimes = [told.recv().await.unwrap(), told.recv().await.unwrap()];
                runtimes.sort_by_key(|runtime| runtime.peer() != VICTIM);
                let [victim, other] = runtimes;
                assert_eq!((victim.peer(), other.peer()), (VICTIM, thief));
                let ask = async |runtime: &Runtime| runtime.slot().take(Duration::ZERO).await.unwrap();
                // What is sent over the victim's connection arrives at the victim.
                drop(ask(&victim).await);
                assert!(is_closed(honest).await && stolen.is_idle());
                drop(ask(&other).await);
                assert!(is_closed(stolen).await);
            }
        }
    }

    #[tokio::test]
    async fn the_same_process_has_one_place() {
        let (registry, mut told) = registry();
        let peer = Peer { pid: Some(11), uid: 65534 };
        let older = dial(&registry, 7, peer);
        let newer = dial(&registry, 7, peer);
        assert!(is_closed(older).await && newer.is_idle());
        told.recv().await.unwrap();
        assert!(told.try_recv().is_err());
    }

    #[tokio::test]
    async fn guests_that_are_told_to_leave_leave_whatever_they_are_asked() {
        let (registry, mut told) = registry();
        let limits = Limits::for_descriptors(256);
        let guest = |n: u32| Peer { pid: Some(n), uid: 1 };
        let first = dial(&registry, 1, guest(1));
        let runtime = told.recv().await.unwrap();
        let resuming = tokio::spawn({
            let runtime = runtime.clone();
            async move { runtime.resume().await }
        });
        // It was asked, and does not answer.
        assert!(first.readable().await.unwrap());
        let mut others = Vec::new();
        for n in 0..limits.per_user {
            others.push(dial(&registry, u128::try_from(n).unwrap() + 2, guest(2)));
        }
        resuming.await.unwrap().unwrap_err();
        drop(runtime);
        assert_eq!(registry.admission().guests(), limits.per_user);
        let victim = dial(&registry, 7, VICTIM);
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
    async fn what_is_kept_of_those_who_hang_up_has_an_end() {
        let (registry, mut told) = registry();
        for n in 0..1000 {
            drop(dial(&registry, n, Peer { pid: Some(1), uid: 1 }));
            let runtime = told.recv().await.unwrap();
            runtime.resume().await.unwrap_err();
        }
        assert!(lock(&registry.slots).guests.len() <= 2 * GUESTS_REMEMBERED);
        assert!(registry.admission().guests() <= Limits::for_descriptors(256).per_user);
    }

    #[tokio::test]
    async fn each_user_is_told_of_once() {
        let (registry, _told) = registry();
        for uid in [1, 1, 2] {
            registry.came_in(Peer { pid: None, uid });
        }
        registry.turned_away(Peer { pid: None, uid: 3 });
        (4..1000).for_each(|uid| registry.came_in(Peer { pid: None, uid }));
        let registry = Arc::new(registry);
        let visitors = Visitors::new(&registry);
        for uid in 1..=u32::try_from(TOLD).unwrap() {
            let visitor = visitors.next().await;
            assert_eq!((visitor.peer.uid, visitor.was_let_in), (uid, uid != 3));
        }
        assert!(lock(&registry.visitors).waiting.is_empty());
    }
}
