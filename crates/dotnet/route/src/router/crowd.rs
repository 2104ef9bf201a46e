//! Limits the number of clients, and selects which one is disconnected to make room for the next.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use runtap_os::loopback::Shares;
use runtap_os::my_uid;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::link::Link;
use super::notice::NoticeReporter;

/// The minimum time that a client has for its request when all places are taken.
const GRACE: Duration = Duration::from_millis(100);
/// The time within which the place of a disconnected client becomes free.
const LEAVING: Duration = Duration::from_millis(100);
/// Poll interval if no client can be disconnected.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a client, which determines the order in [`ClientPool::next_to_leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The client failed and waits only for the answer that reports it.
    Refused,
    /// The client has sent nothing relevant.
    Silent,
    /// The client has sent a valid beginning.
    Greeted,
    /// The request is complete: the client stays.
    Asked,
    /// The request is complete, the client may be gone, and the runtime has not started to answer.
    Abandoned,
}

/// The stage of one client, which its task updates.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<AtomicU8>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(Stage::Silent as u8)))
    }
}

impl Progress {
    pub(crate) fn is_now(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The origin of a client, which clients can't choose. Many clients from one origin displace only each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A user of this machine.
    User(u32),
    /// Another machine, or for IPv6 a network of 64 bits.
    Address(IpAddr),
    /// The connection is already broken.
    Unknown,
}

impl Origin {
    /// Returns the origin of a connection.
    pub(crate) fn of_link(link: &Link) -> Self {
        match link {
            Link::Local(stream) => stream.peer().map_or(Self::Unknown, |peer| Self::User(peer.uid)),
            Link::Tcp(stream) => Self::of_tcp(stream),
        }
    }

    pub(crate) fn of_tcp(stream: &TcpStream) -> Self {
        let (Ok(peer), Ok(own)) = (stream.peer_addr(), stream.local_addr()) else { return Self::Unknown };
        let user =
            runtap_os::loopback::is_known(own).then(|| runtap_os::loopback::user_of(peer, own)).flatten();
        user.map_or_else(|| Self::at(peer.ip()), Self::User)
    }

    /// Whether it is a process of the router's own user.
    pub(crate) fn is_own(self) -> bool {
        self == Self::User(my_uid())
    }

    fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Ipv6Addr::from(network).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The clients of a router.
#[derive(Debug)]
pub(crate) struct ClientPool {
    room: Arc<Semaphore>,
    /// The clients without a complete request, oldest first.
    silent: VecDeque<Client>,
    /// The clients with a complete request, oldest first.
    asked: VecDeque<Client>,
    most_silent: usize,
    /// The part of `most_silent` that clients that have greeted can't occupy, because a new client needs a place until its greeting
    /// arrives.
    ungreeted: usize,
    reporter: NoticeReporter,
}

/// A client that occupies a place.
#[derive(Debug)]
struct Client {
    task: AbortHandle,
    progress: Progress,
    origin: Origin,
    since: Instant,
}

impl Client {
    fn is_silent(&self) -> bool {
        ![Stage::Asked as u8, Stage::Abandoned as u8].contains(&self.progress.stage())
    }

    fn is_abandoned(&self) -> bool {
        self.progress.stage() == Stage::Abandoned as u8
    }
}

impl ClientPool {
    /// Creates an empty crowd. At most a quarter of all places are for `silent` clients, to leave room for others.
    pub(crate) fn new(connections: usize, silent: usize, reporter: NoticeReporter) -> Self {
        let most_silent = silent.min(connections / 4).max(1);
        Self {
            room: Arc::new(Semaphore::new(connections.max(1))),
            silent: VecDeque::new(),
            asked: VecDeque::new(),
            most_silent,
            ungreeted: most_silent / 4,
            reporter,
        }
    }

    /// Waits for a free place. If there is none, an abandoned client is disconnected at once, or a client that has sent nothing and
    /// has not just arrived.
    pub(crate) async fn admit(&mut self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                return permit;
            }
            let room = Arc::clone(&self.room).acquire_owned();
            self.settle();
            let is_one_abandoned = self.asked.iter().any(Client::is_abandoned);
            let permit = match self.next_to_leave(self.silent.len()).and_then(|at| self.silent.get(at)) {
                Some(next) if !is_one_abandoned && next.since.elapsed() < GRACE => tokio::select! {
                    permit = room => Some(permit),
                    () = sleep_until(next.since + GRACE) => None,
                },
                None if !is_one_abandoned => timeout(POLL_INTERVAL, room).await.ok(),
                _ => {
                    self.disconnect_one();
                    timeout(LEAVING, room).await.ok()
                }
            };
            match permit {
                Some(Ok(permit)) => return permit,
                // The semaphore is never closed.
                Some(Err(_closed)) => return std::future::pending().await,
                None => {}
            }
        }
    }

    /// Adds a client that has sent nothing yet. Disconnects another one if too many have not sent a request.
    pub(crate) fn enter(&mut self, task: AbortHandle, progress: Progress, origin: Origin) {
        self.silent.push_back(Client { task, progress, origin, since: Instant::now() });
        if self.silent.len() > self.most_silent {
            self.settle();
            if self.silent.len() > self.most_silent {
                self.disconnect(self.next_to_leave(self.silent.len().saturating_sub(1)));
            }
        }
    }

    /// Disconnects one client because descriptors or places are exhausted: the oldest abandoned one, or else, of the origin with the
    /// most clients, the oldest one with the least progress.
    pub(crate) fn disconnect_one(&mut self) {
        self.settle();
        let abandoned = self.asked.iter().position(Client::is_abandoned);
        match abandoned.and_then(|at| self.asked.remove(at)) {
            Some(leaving) => leaving.task.abort(),
            None => self.disconnect(self.next_to_leave(self.silent.len())),
        }
    }

    /// Removes clients that have ended, and moves those with complete requests.
    fn settle(&mut self) {
        self.asked.retain(|client| !client.task.is_finished());
        for client in std::mem::take(&mut self.silent) {
            let is_silent = client.is_silent();
            let among = if is_silent { &mut self.silent } else { &mut self.asked };
            among.extend(Some(client).filter(|client| !client.task.is_finished()));
        }
    }

    fn disconnect(&mut self, at: Option<usize>) {
        if let Some(leaving) = at.and_then(|at| self.silent.remove(at)) {
            leaving.task.abort();
            // A rejected client has already been counted.
            if leaving.progress.stage() != Stage::Refused as u8 {
                self.reporter.silent();
            }
        }
    }

    /// Returns the next client to disconnect, among the oldest `among`: a rejected one; or else, of the origin with the most
    /// clients, one that has not greeted, if there are more of those than reserved places, otherwise one that has greeted. So
    /// clients of neither kind can displace the other kind.
    fn next_to_leave(&self, among: usize) -> Option<usize> {
        let shares: Shares<Origin> = self.silent.iter().take(among).map(|silent| silent.origin).collect();
        let oldest = |stage: Stage| {
            self.silent.iter().take(among).position(|silent| {
                let may_leave = stage == Stage::Refused || shares.has_most(&silent.origin);
                may_leave && silent.progress.stage() == stage as u8
            })
        };
        let ungreeted = self.silent.iter().filter(|silent| silent.progress.stage() == Stage::Silent as u8);
        let (first, second) = if ungreeted.count() > self.ungreeted {
            (Stage::Silent, Stage::Greeted)
        } else {
            (Stage::Greeted, Stage::Silent)
        };
        oldest(Stage::Refused).or_else(|| oldest(first)).or_else(|| oldest(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool in which a silent client occupies each place that it can get.
    async fn enter_from(crowd: &mut ClientPool, stage: Stage, origin: Origin) -> AbortHandle {
        let permit = crowd.admit().await;
        let task = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(permit);
        });
        let progress = Progress::default();
        progress.is_now(stage);
        crowd.enter(task.abort_handle(), progress, origin);
        task.abort_handle()
    }

    async fn enter(crowd: &mut ClientPool, stage: Stage) -> AbortHandle {
        enter_from(crowd, stage, Origin::User(0)).await
    }

    #[tokio::test]
    async fn silent_clients_never_occupy_all_places() {
        let mut crowd = ClientPool::new(16, 16, NoticeReporter::default());
        for _ in 0..100 {
            enter(&mut crowd, Stage::Silent).await;
            tokio::task::yield_now().await;
            assert!(crowd.room.available_permits() >= 11, "{crowd:?}");
        }
        assert_eq!(crowd.reporter.statistics().silent(), 96);
    }

    #[tokio::test]
    async fn a_silent_client_leaves_if_all_places_are_taken() {
        let mut crowd = ClientPool::new(4, 4, NoticeReporter::default());
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(enter(&mut crowd, Stage::Asked).await);
        }
        let silent = enter(&mut crowd, Stage::Silent).await;
        asked.push(enter(&mut crowd, Stage::Asked).await);
        assert!(silent.is_finished());
        assert!(asked.iter().all(|task| !task.is_finished()));
    }

    #[tokio::test]
    async fn an_abandoned_client_leaves_first() {
        let mut crowd = ClientPool::new(8, 8, NoticeReporter::default());
        let mut asked = Vec::new();
        for stage in [Stage::Asked, Stage::Abandoned, Stage::Abandoned].into_iter().cycle().take(7) {
            asked.push(enter(&mut crowd, stage).await);
        }
        let silent = enter(&mut crowd, Stage::Silent).await;
        for left in [1, 2, 4, 5] {
            enter(&mut crowd, Stage::Asked).await;
            assert!(asked[left].is_finished(), "{left}: {crowd:?}");
        }
        assert!(!silent.is_finished());
        enter(&mut crowd, Stage::Asked).await;
        assert!(silent.is_finished());
        assert!([0, 3, 6].iter().all(|stays| !asked[*stays].is_finished()));
        // An abandoned client is noticed while the next one waits.
        let progress = crowd.asked[0].progress.clone();
        tokio::spawn(async move {
            tokio::time::sleep(POLL_INTERVAL).await;
            progress.is_now(Stage::Abandoned);
        });
        enter(&mut crowd, Stage::Asked).await;
        assert!(asked[0].is_finished());
    }

    #[tokio::test]
    async fn the_client_with_the_least_progress_leaves_first() {
        let mut crowd = ClientPool::new(16, 3, NoticeReporter::default());
        let greeted = enter(&mut crowd, Stage::Greeted).await;
        let silent = enter(&mut crowd, Stage::Silent).await;
        let refused = enter(&mut crowd, Stage::Refused).await;
        for (stage, left) in [(Stage::Greeted, refused), (Stage::Greeted, silent), (Stage::Greeted, greeted)]
        {
            enter(&mut crowd, stage).await;
            tokio::task::yield_now().await;
            assert!(left.is_finished(), "{crowd:?}");
        }
    }

    #[tokio::test]
    async fn a_new_client_stays_if_all_others_have_greeted() {
        for places in [1, 2, 16] {
            let mut crowd = ClientPool::new(places * 4, places, NoticeReporter::default());
            let mut greeted = Vec::new();
            for _ in 0..places {
                greeted.push(enter(&mut crowd, Stage::Greeted).await);
            }
            let newcomer = enter(&mut crowd, Stage::Silent).await;
            tokio::task::yield_now().await;
            assert!(!newcomer.is_finished(), "{places}: {crowd:?}");
            let left: Vec<bool> = greeted.iter().map(AbortHandle::is_finished).collect();
            assert_eq!(left.iter().filter(|left| **left).count(), 1, "{places}");
            assert!(left[0], "{places}: the oldest");
        }
    }

    #[tokio::test]
    async fn clients_displace_only_those_of_their_own_origin() {
        let mut crowd = ClientPool::new(64, 16, NoticeReporter::default());
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|text| Origin::at(text.parse().unwrap()));
        assert_eq!(one, other, "of one network");
        let client = enter_from(&mut crowd, Stage::Silent, Origin::User(0)).await;
        let greeted = enter_from(&mut crowd, Stage::Greeted, Origin::at("192.0.2.1".parse().unwrap())).await;
        for stage in [Stage::Silent, Stage::Greeted].into_iter().cycle().take(1_000) {
            enter_from(&mut crowd, stage, one).await;
        }
        tokio::task::yield_now().await;
        assert!(!client.is_finished() && !greeted.is_finished(), "{crowd:?}");
    }

    /// A client needs a moment for its greeting, while others arrive.
    #[tokio::test]
    async fn greeted_and_silent_clients_do_not_displace_each_other() {
        let mut crowd = ClientPool::new(64, 16, NoticeReporter::default());
        for _ in 0..32 {
            enter(&mut crowd, Stage::Greeted).await;
        }
        let silent = enter(&mut crowd, Stage::Silent).await;
        for _ in 0..100 {
            enter(&mut crowd, Stage::Greeted).await;
        }
        for _ in 0..3 {
            enter(&mut crowd, Stage::Silent).await;
        }
        tokio::task::yield_now().await;
        assert!(!silent.is_finished(), "{crowd:?}");
        let greeted = enter(&mut crowd, Stage::Greeted).await;
        for _ in 0..100 {
            enter(&mut crowd, Stage::Silent).await;
        }
        tokio::task::yield_now().await;
        assert!(!greeted.is_finished() && silent.is_finished(), "{crowd:?}");
    }
}
