//! The places of runtimes that connect, and the selection of one to disconnect if all are taken.
//!
//! The user or machine with the most places gives one up, except for the router's own user, which always gets at least one. A
//! runtime that is in use is protected only from runtimes of its own origin, because any process can connect as a runtime that is
//! queried and never answers.

use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_os::loopback::Shares;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::client_pool::Origin;
use super::link::Link;

/// The maximum number of known runtimes.
pub(super) const RUNTIMES: usize = 64;
/// A runtime connects again within half a second of a request. After this time it counts as gone.
pub(super) const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A runtime.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) advertise: Advertise,
    origin: Origin,
    /// The channel to the task that holds the idle connection, which passes it to the given receiver.
    pub(super) idle: Option<oneshot::Sender<oneshot::Sender<Link>>>,
    /// The number of connections in use.
    pub(super) active: usize,
    /// Whether it has ever answered.
    pub(super) has_answered: bool,
    /// When it was last connected.
    pub(super) seen: Instant,
    /// The number of the idle connection.
    pub(super) number: u64,
    /// Dropped with the place, which ends its connections.
    pub(super) place: watch::Sender<()>,
}

impl Entry {
    pub(super) fn new(
        advertise: Advertise,
        origin: Origin,
        idle: oneshot::Sender<oneshot::Sender<Link>>,
        number: u64,
    ) -> Self {
        Self {
            advertise,
            origin,
            idle: Some(idle),
            active: 0,
            has_answered: false,
            seen: Instant::now(),
            number,
            place: watch::Sender::default(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.idle.is_some() || self.active > 0 || self.seen.elapsed() < RECONNECT_TIMEOUT
    }

    /// Returns the loss if it is disconnected.
    fn worth(&self) -> (bool, bool) {
        (self.active > 0, self.active > 0 && self.has_answered)
    }
}

/// The runtimes of a router.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) entries: Vec<Entry>,
    /// The runtime that the router stands for.
    routed: Option<Uuid>,
    pub(super) numbers: u64,
}

impl Places {
    pub(super) fn find(&mut self, cookie: Uuid) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.advertise.runtime_cookie == cookie)
    }

    /// Removes a runtime that is gone and returns it. `None` if it is present or unknown.
    pub(super) fn remove_gone(&mut self, cookie: Uuid) -> Option<Advertise> {
        let is_gone = |entry: &Entry| entry.advertise.runtime_cookie == cookie && !entry.is_there();
        let at = self.entries.iter().position(is_gone)?;
        Some(self.entries.remove(at).advertise)
    }

    /// Makes room for a new runtime of this origin. Returns the runtime that has no place, if any. Of the origin that must give one
    /// up, the newest unused runtime is removed, or else the newest that has never answered, or else the newest, but not the one
    /// that the router stands for. If no origin must give one up, the new runtime has no place.
    pub(super) fn make_room(&mut self, newcomer: Advertise, origin: Origin) -> Option<Advertise> {
        if self.entries.len() >= RUNTIMES {
            self.entries.retain(Entry::is_there);
        }
        if self.entries.len() < RUNTIMES {
            return None;
        }
        let routed = self.routed();
        let shares: Shares<Origin> = self.entries.iter().map(|entry| entry.origin).collect();
        let is_routed = |entry: &Entry| routed == Some(entry.advertise.runtime_cookie);
        let others = self.entries.iter().filter(|entry| !is_routed(entry) && !entry.origin.is_own());
        let others: Shares<Origin> = others.map(|entry| entry.origin).collect();
        let to_own = || others.most(|_| origin.is_own() && shares.held_by(&origin) == 0);
        let gives_way = shares.gives_way_to(&origin, |origin| !origin.is_own()).or_else(to_own);
        let Some(gives_way) = gives_way else { return Some(newcomer) };
        let may_leave = |entry: &Entry| entry.origin == *gives_way && !is_routed(entry);
        let leaving = self.entries.iter().enumerate().rev().filter(|(_, entry)| may_leave(entry));
        // The first of equal elements.
        let Some((at, _)) = leaving.min_by_key(|(_, entry)| entry.worth()) else { return Some(newcomer) };
        Some(self.entries.remove(at).advertise)
    }

    /// Returns the runtime that the router stands for: the first one present.
    pub(super) fn routed(&mut self) -> Option<Uuid> {
        let is_there = |entry: &&Entry| entry.is_there();
        let there = self.entries.iter().filter(is_there).map(|entry| entry.advertise.runtime_cookie);
        let there: Vec<Uuid> = there.collect();
        if self.routed.is_none_or(|routed| !there.contains(&routed)) {
            self.routed = there.first().copied();
        }
        self.routed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Origin = Origin::User(u32::MAX - 2);
    const OTHER: Origin = Origin::User(u32::MAX - 3);

    fn advertise(number: u64) -> Advertise {
        Advertise { runtime_cookie: Uuid::from_u128(number.into()), process_id: number }
    }

    fn entry(number: u64, origin: Origin, active: usize, has_answered: bool) -> Entry {
        let (idle, _) = oneshot::channel();
        Entry { active, has_answered, ..Entry::new(advertise(number), origin, idle, number) }
    }

    #[tokio::test]
    async fn the_least_used_runtime_leaves_first() {
        let mut places = Places::default();
        let kind = |number| match number {
            // The router stands for this one.
            0 => (0, false),
            1..=20 => (0, true),
            21..=40 => (1, false),
            _ => (1, true),
        };
        for number in 0..64 {
            let (active, has_answered) = kind(number);
            places.entries.push(entry(number, ONE, active, has_answered));
        }
        let mut left = Vec::new();
        for number in 64..128 {
            let gone = places.make_room(advertise(number), OTHER).expect("all places are taken").process_id;
            if gone == number {
                break;
            }
            left.push(gone);
            places.entries.push(entry(number, OTHER, 1, false));
        }
        // Until both have equal numbers.
        assert_eq!(left, (1..=20).rev().chain((29..=40).rev()).collect::<Vec<_>>());
        assert!(places.entries.iter().any(|entry| entry.advertise.process_id == 0));
    }

    #[tokio::test]
    async fn runtimes_of_the_own_user_stay() {
        let mut places = Places::default();
        let own = Origin::User(runtap_os::my_uid());
        for number in 0..64 {
            places.entries.push(entry(number, own, 0, false));
        }
        assert_eq!(places.make_room(advertise(64), ONE).map(|gone| gone.process_id), Some(64));
    }

    /// One user may have thousands of user ids.
    #[tokio::test]
    async fn the_first_runtime_of_the_own_user_has_a_place() {
        // The first runtime, for which the router stands, never leaves.
        for routed in [u32::MAX - 63, u32::MAX - 2] {
            let mut places = Places::default();
            let others = (u32::MAX - 65..=u32::MAX - 2).filter(|user| *user != routed);
            for user in std::iter::once(routed).chain(others) {
                places.entries.push(entry(user.into(), Origin::User(user), 0, false));
            }
            let own = Origin::User(runtap_os::my_uid());
            let gone = places.make_room(advertise(64), own).map(|gone| gone.process_id);
            assert!(gone.is_some_and(|gone| ![64, routed.into()].contains(&gone)), "{gone:?}");
            places.entries.push(entry(64, own, 0, false));
            assert_eq!(places.make_room(advertise(65), own).map(|gone| gone.process_id), Some(65));
            assert_eq!(places.make_room(advertise(66), ONE).map(|gone| gone.process_id), Some(66));
        }
    }
}
