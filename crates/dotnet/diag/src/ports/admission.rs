//! Limits on the connections of a port: who may have one, how many, and how long identification may take.
//!
//! A state machine without I/O and without a clock. Kin, the processes that a port exists for, always get a connection.
//! All others are guests: a limit per user and one for all guests reserve descriptors for the kin, and surplus guests are
//! disconnected, because a runtime reconnects. A ticket stands for one connection, from its first moment until its
//! descriptor is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time limit for a complete Advertise message, as in Microsoft's tools.
pub const DEADLINE: Duration = Duration::from_millis(250);

/// The relation of a process to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A process of the port's user or of root, or a descendant of this process: always served.
    Kin,
    /// A process of another user: accepted within the limits.
    Guest,
}

/// The limits on the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most connections of kin that have not identified themselves yet.
    pub kin_greeting: usize,
    /// The most guests of one user.
    pub per_user: usize,
    /// The most guests in total. As many again may be in the course of disconnecting.
    pub guests: usize,
}

impl Limits {
    /// Returns the limits for a process with at most `most` descriptors: guests never hold more than a quarter of them.
    pub fn for_descriptors(most: u64) -> Self {
        let share = |of: u64, least: usize, limit: usize| {
            usize::try_from(most / of).unwrap_or(usize::MAX).clamp(least, limit)
        };
        Self { kin_greeting: share(4, 16, 256), per_user: share(16, 4, 256), guests: share(8, 8, 1024) }
    }
}

/// The decision about a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The ticket of the connection. `None` if it must be closed at once.
    pub ticket: Option<u64>,
    /// The ticket of a connection that must be closed to make room.
    pub evicted: Option<u64>,
}

/// The connections of a port.
#[derive(Debug, Default)]
pub struct Admission {
    /// The next ticket. Tickets increase, so that the oldest is the least.
    next: u64,
    connections: BTreeMap<u64, Connection>,
    /// The guests that may stay, by user.
    guests: BTreeMap<u32, Guests>,
    kin_greeting: BTreeSet<u64>,
    /// The number of connections that were told to close and still hold a descriptor.
    leaving: usize,
    /// The deadlines of the Advertise messages, by ticket: later tickets never have earlier deadlines.
    deadlines: BTreeMap<u64, Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Connection {
    uid: u32,
    standing: Standing,
    leaving: bool,
}

/// The guests of one user.
#[derive(Debug, Default)]
struct Guests {
    greeting: BTreeSet<u64>,
    registered: BTreeSet<u64>,
}

impl Guests {
    fn len(&self) -> usize {
        self.greeting.len() + self.registered.len()
    }

    /// Returns the guest to disconnect first: the oldest one that has not identified itself, else the oldest one.
    fn dispensable(&self) -> Option<u64> {
        self.greeting.first().or_else(|| self.registered.first()).copied()
    }
}

impl Admission {
    /// Handles a new connection at the time `now`, which must not decrease.
    pub fn handle_connection(
        &mut self,
        standing: Standing,
        uid: u32,
        now: Duration,
        limits: &Limits,
    ) -> Verdict {
        let evicted_ticket = match standing {
            Standing::Kin if self.kin_greeting.len() >= limits.kin_greeting => {
                self.kin_greeting.first().copied()
            }
            Standing::Kin => None,
            Standing::Guest => {
                if self.leaving >= limits.guests {
                    return Verdict { ticket: None, evicted: None };
                }
                self.guest_to_evict(uid, limits)
            }
        };
        let evicted = evicted_ticket.filter(|ticket| self.evict(*ticket));
        let ticket = self.next;
        self.next += 1;
        self.connections.insert(ticket, Connection { uid, standing, leaving: false });
        match standing {
            Standing::Kin => self.kin_greeting.insert(ticket),
            Standing::Guest => self.guests.entry(uid).or_default().greeting.insert(ticket),
        };
        self.deadlines.insert(ticket, now.saturating_add(DEADLINE));
        Verdict { ticket: Some(ticket), evicted }
    }

    /// Returns the guest to disconnect for another guest of this user. `None` if there is room.
    fn guest_to_evict(&self, uid: u32, limits: &Limits) -> Option<u64> {
        let own = self.guests.get(&uid);
        if let Some(own) = own
            && own.len() >= limits.per_user
        {
            return own.dispensable();
        }
        if self.guests() < limits.guests {
            return None;
        }
        // The user with most guests, so that users with few guests lose none.
        self.guests.values().max_by_key(|guests| guests.len()).and_then(Guests::dispensable)
    }

    /// Records that a connection has identified itself. `false` if it was told to close meanwhile.
    pub fn handle_advertise(&mut self, ticket: u64) -> bool {
        let Some(Connection { uid, standing, leaving: false }) = self.connections.get(&ticket).copied()
        else {
            return false;
        };
        self.deadlines.remove(&ticket);
        match standing {
            Standing::Kin => {
                self.kin_greeting.remove(&ticket);
            }
            Standing::Guest => {
                let guests = self.guests.entry(uid).or_default();
                guests.greeting.remove(&ticket);
                guests.registered.insert(ticket);
            }
        }
        true
    }

    /// Records that the descriptor of a connection was closed.
    pub fn handle_closed(&mut self, ticket: u64) {
        let Some(holder) = self.connections.remove(&ticket) else { return };
        if holder.leaving {
            self.leaving -= 1;
        } else {
            self.forget(ticket, holder);
        }
    }

    /// Returns the connections to close because there is no descriptor for the next connection.
    pub fn handle_out_of_descriptors(&mut self) -> Vec<u64> {
        let guests = |(ticket, holder): (&u64, &Connection)| {
            (holder.standing == Standing::Guest && !holder.leaving).then_some(*ticket)
        };
        let mut out: Vec<u64> = self.connections.iter().filter_map(guests).collect();
        out.retain(|ticket| self.evict(*ticket));
        out
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadlines.values().next().copied()
    }

    /// Returns the connections that have not identified themselves in time.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<u64> {
        let mut late: Vec<u64> =
            self.deadlines.iter().take_while(|(_, end)| **end <= now).map(|(ticket, _)| *ticket).collect();
        late.retain(|ticket| self.evict(*ticket));
        late
    }

    /// Returns the number of guests that may stay.
    pub fn guests(&self) -> usize {
        self.guests.values().map(Guests::len).sum()
    }

    /// Returns the number of connections with a ticket.
    #[cfg(any(test, fuzzing))]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    fn evict(&mut self, ticket: u64) -> bool {
        let Some(holder) = self.connections.get_mut(&ticket).filter(|holder| !holder.leaving) else {
            return false;
        };
        holder.leaving = true;
        let holder = *holder;
        self.leaving += 1;
        self.forget(ticket, holder);
        true
    }

    fn forget(&mut self, ticket: u64, holder: Connection) {
        self.deadlines.remove(&ticket);
        self.kin_greeting.remove(&ticket);
        if let Some(guests) = self.guests.get_mut(&holder.uid) {
            guests.greeting.remove(&ticket);
            guests.registered.remove(&ticket);
            if guests.len() == 0 {
                self.guests.remove(&holder.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { kin_greeting: 4, per_user: 3, guests: 6 };

    fn guest(admission: &mut Admission, uid: u32) -> Verdict {
        admission.handle_connection(Standing::Guest, uid, Duration::ZERO, &LIMITS)
    }

    #[test]
    fn a_user_with_too_many_guests_evicts_only_his_own() {
        let mut admission = Admission::default();
        let first = guest(&mut admission, 1).ticket.unwrap();
        assert!(admission.handle_advertise(first));
        for _ in 0..2 {
            assert_eq!(guest(&mut admission, 1).evicted, None);
        }
        // The oldest that has not identified itself, before the one that has.
        assert_eq!(guest(&mut admission, 1), Verdict { ticket: Some(3), evicted: Some(1) });
        assert!(!admission.handle_advertise(1), "it was evicted");
        assert_eq!(guest(&mut admission, 2), Verdict { ticket: Some(4), evicted: None });
        assert_eq!(admission.guests(), 4);
    }

    #[test]
    fn the_total_limit_evicts_guests_of_the_user_with_most() {
        let mut admission = Admission::default();
        for uid in [1, 1, 1, 2, 2, 3] {
            assert_eq!(guest(&mut admission, uid).evicted, None);
        }
        assert_eq!(guest(&mut admission, 4), Verdict { ticket: Some(6), evicted: Some(0) });
        let kin = admission.handle_connection(Standing::Kin, 1, Duration::ZERO, &LIMITS);
        assert_eq!(kin, Verdict { ticket: Some(7), evicted: None });
    }

    #[test]
    fn evicted_guests_that_do_not_leave_are_limited() {
        let mut admission = Admission::default();
        let taken = (0..100).filter(|_| guest(&mut admission, 1).ticket.is_some()).count();
        assert_eq!(taken, LIMITS.per_user + LIMITS.guests);
        admission.handle_closed(0);
        assert!(guest(&mut admission, 1).ticket.is_some());
    }

    #[test]
    fn limits_follow_the_descriptors() {
        assert_eq!(Limits::for_descriptors(256), Limits { kin_greeting: 64, per_user: 16, guests: 32 });
        assert_eq!(Limits::for_descriptors(1024), Limits { kin_greeting: 256, per_user: 64, guests: 128 });
        let many = Limits { kin_greeting: 256, per_user: 256, guests: 1024 };
        assert_eq!(Limits::for_descriptors(u64::MAX), many);
        assert_eq!(Limits::for_descriptors(0), Limits { kin_greeting: 16, per_user: 4, guests: 8 });
    }

    #[derive(Debug, Clone)]
    enum Step {
        Connect(Option<u32>),
        Advertise(usize),
        Close(usize),
        OutOfDescriptors,
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..5u32).prop_map(|uid| Step::Connect((uid > 0).then_some(uid))),
            4 => any::<usize>().prop_map(Step::Advertise),
            3 => any::<usize>().prop_map(Step::Close),
            1 => Just(Step::OutOfDescriptors),
            2 => (0..400u64).prop_map(Step::Wait),
        ]
    }

    proptest! {
        /// In any sequence of steps the limits hold, kin are always accepted, and no connection is silent for longer than the
        /// deadline.
        #[test]
        fn the_limits_always_hold(steps in prop::collection::vec(step(), 0..400)) {
            let mut admission = Admission::default();
            let mut now = Duration::ZERO;
            // (ticket, time of its connection) of silent connections with an open descriptor.
            let mut open: Vec<(u64, Option<Duration>)> = Vec::new();
            let mut told: BTreeSet<u64> = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Connect(guest) => {
                        let standing = guest.map_or(Standing::Kin, |_| Standing::Guest);
                        let verdict = admission.handle_connection(standing, guest.unwrap_or(0), now, &LIMITS);
                        prop_assert!(guest.is_some() || verdict.ticket.is_some(), "kin was turned away");
                        told.extend(verdict.evicted);
                        open.extend(verdict.ticket.map(|ticket| (ticket, Some(now))));
                    }
                    Step::Advertise(n) if !open.is_empty() => {
                        let n = n % open.len();
                        let stays = admission.handle_advertise(open[n].0);
                        prop_assert_eq!(stays, !told.contains(&open[n].0));
                        if stays {
                            open[n].1 = None;
                        }
                    }
                    Step::Close(n) if !open.is_empty() => {
                        let (ticket, _) = open.swap_remove(n % open.len());
                        admission.handle_closed(ticket);
                    }
                    Step::OutOfDescriptors => {
                        told.extend(admission.handle_out_of_descriptors());
                        prop_assert_eq!(admission.guests(), 0);
                    }
                    Step::Wait(milliseconds) => {
                        now += Duration::from_millis(milliseconds);
                        told.extend(admission.handle_timeout(now));
                        for (ticket, since) in &open {
                            let late = since.is_some_and(|since| since + DEADLINE <= now);
                            prop_assert!(!late || told.contains(ticket));
                        }
                        prop_assert!(admission.poll_timeout().is_none_or(|next| next > now));
                    }
                    Step::Advertise(_) | Step::Close(_) => {}
                }
                prop_assert!(admission.guests() <= LIMITS.guests);
                prop_assert!(admission.guests.values().all(|guests| (1..=LIMITS.per_user).contains(&guests.len())));
                prop_assert!(admission.kin_greeting.len() <= LIMITS.kin_greeting);
                let leaving = open.iter().filter(|(ticket, _)| told.contains(ticket)).count();
                prop_assert_eq!(admission.leaving, leaving);
                prop_assert_eq!(admission.connections(), open.len());
            }
        }
    }
}
