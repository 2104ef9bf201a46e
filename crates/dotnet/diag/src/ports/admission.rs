//! Who may hold a connection at a port, how many of them, and how long one may take to say who it is.
//!
//! A state machine without I/O and without a clock. Kin, the processes that a port is there for, always have room. All
//! others are guests: a limit for each user and one for all of them keeps descriptors for the kin, and whoever is in the
//! way is hung up on, because a runtime dials in again. What is called a ticket is one connection, from its first moment
//! to that in which its descriptor is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// For a whole Advertise message; the same as Microsoft's tools.
pub const DEADLINE: Duration = Duration::from_millis(250);

/// What a process is to the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Of our own user, of root, or started below us: always served.
    Kin,
    /// Of any other user: let in as long as there is room.
    Guest,
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of kin that have not said yet who they are.
    pub kin_greeting: usize,
    /// Of guests of one user.
    pub per_user: usize,
    /// Of all guests. As many again may be on their way out.
    pub guests: usize,
}

impl Limits {
    /// For a process that may have this many descriptors: guests never hold more than a quarter of them.
    pub fn for_descriptors(most: u64) -> Self {
        let share = |of: u64, least: usize, limit: usize| {
            usize::try_from(most / of).unwrap_or(usize::MAX).clamp(least, limit)
        };
        Self { kin_greeting: share(4, 16, 256), per_user: share(16, 4, 256), guests: share(8, 8, 1024) }
    }
}

/// What becomes of a connection that has just been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Its ticket; none: it is to be closed at once.
    pub ticket: Option<u64>,
    /// Who has to be hung up on in its favour.
    pub evicted: Option<u64>,
}

/// The connections of a port.
#[derive(Debug, Default)]
pub struct Admission {
    /// Ascending, so that the oldest is the least.
    next: u64,
    holders: BTreeMap<u64, Holder>,
    /// Guests that may stay, by user.
    guests: BTreeMap<u32, Guests>,
    kin_greeting: BTreeSet<u64>,
    /// Those that were told to leave and still hold a descriptor.
    leaving: usize,
    /// When the greetings are over, in the order of their tickets: later ones are never earlier.
    deadlines: BTreeMap<u64, Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Holder {
    uid: u32,
    standing: Standing,
    leaving: bool,
}

/// Those of one user.
#[derive(Debug, Default)]
struct Guests {
    greeting: BTreeSet<u64>,
    registered: BTreeSet<u64>,
}

impl Guests {
    fn len(&self) -> usize {
        self.greeting.len() + self.registered.len()
    }

    /// Who goes first: one that has said nothing yet, and of those the oldest.
    fn dispensable(&self) -> Option<u64> {
        self.greeting.first().or_else(|| self.registered.first()).copied()
    }
}

impl Admission {
    /// Somebody has connected, at `now`, a time that never goes back.
    pub fn handle_connection(
        &mut self,
        standing: Standing,
        uid: u32,
        now: Duration,
        limits: &Limits,
    ) -> Verdict {
        let in_the_way = match standing {
            Standing::Kin if self.kin_greeting.len() >= limits.kin_greeting => {
                self.kin_greeting.first().copied()
            }
            Standing::Kin => None,
            Standing::Guest => {
                if self.leaving >= limits.guests {
                    return Verdict { ticket: None, evicted: None };
                }
                self.guest_in_the_way(uid, limits)
            }
        };
        let evicted = in_the_way.filter(|ticket| self.tell_to_leave(*ticket));
        let ticket = self.next;
        self.next += 1;
        self.holders.insert(ticket, Holder { uid, standing, leaving: false });
        match standing {
            Standing::Kin => self.kin_greeting.insert(ticket),
            Standing::Guest => self.guests.entry(uid).or_default().greeting.insert(ticket),
        };
        self.deadlines.insert(ticket, now.saturating_add(DEADLINE));
        Verdict { ticket: Some(ticket), evicted }
    }

    /// Who has to leave for one more guest of this user.
    fn guest_in_the_way(&self, uid: u32, limits: &Limits) -> Option<u64> {
        let own = self.guests.get(&uid);
        if let Some(own) = own
            && own.len() >= limits.per_user
        {
            return own.dispensable();
        }
        if self.guests() < limits.guests {
            return None;
        }
        // The user who has most: nobody gets room by taking it from those who have little.
        self.guests.values().max_by_key(|guests| guests.len()).and_then(Guests::dispensable)
    }

    /// It has said who it is. `false`: it was told to leave meanwhile.
    pub fn handle_advertise(&mut self, ticket: u64) -> bool {
        let Some(Holder { uid, standing, leaving: false }) = self.holders.get(&ticket).copied() else {
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

    /// Its descriptor is closed.
    pub fn handle_closed(&mut self, ticket: u64) {
        let Some(holder) = self.holders.remove(&ticket) else { return };
        if holder.leaving {
            self.leaving -= 1;
        } else {
            self.forget(ticket, holder);
        }
    }

    /// There is no descriptor for the next connection: who is to be hung up on.
    pub fn handle_out_of_descriptors(&mut self) -> Vec<u64> {
        let guests = |(ticket, holder): (&u64, &Holder)| {
            (holder.standing == Standing::Guest && !holder.leaving).then_some(*ticket)
        };
        let mut out: Vec<u64> = self.holders.iter().filter_map(guests).collect();
        out.retain(|ticket| self.tell_to_leave(*ticket));
        out
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadlines.values().next().copied()
    }

    /// Who has taken too long to say who it is.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<u64> {
        let mut late: Vec<u64> =
            self.deadlines.iter().take_while(|(_, end)| **end <= now).map(|(ticket, _)| *ticket).collect();
        late.retain(|ticket| self.tell_to_leave(*ticket));
        late
    }

    /// Guests that may stay.
    pub fn guests(&self) -> usize {
        self.guests.values().map(Guests::len).sum()
    }

    /// Every connection that has a ticket.
    #[cfg(any(test, fuzzing))]
    pub fn connections(&self) -> usize {
        self.holders.len()
    }

    fn tell_to_leave(&mut self, ticket: u64) -> bool {
        let Some(holder) = self.holders.get_mut(&ticket).filter(|holder| !holder.leaving) else {
            return false;
        };
        holder.leaving = true;
        let holder = *holder;
        self.leaving += 1;
        self.forget(ticket, holder);
        true
    }

    fn forget(&mut self, ticket: u64, holder: Holder) {
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
    fn a_user_who_comes_too_often_is_in_nobodys_way_but_his_own() {
        let mut admission = Admission::default();
        let first = guest(&mut admission, 1).ticket.unwrap();
        assert!(admission.handle_advertise(first));
        for _ in 0..2 {
            assert_eq!(guest(&mut admission, 1).evicted, None);
        }
        // The oldest that has said nothing, before the one that has.
        assert_eq!(guest(&mut admission, 1), Verdict { ticket: Some(3), evicted: Some(1) });
        assert!(!admission.handle_advertise(1), "it was told to leave");
        assert_eq!(guest(&mut admission, 2), Verdict { ticket: Some(4), evicted: None });
        assert_eq!(admission.guests(), 4);
    }

    #[test]
    fn the_room_of_all_guests_is_taken_from_who_has_most() {
        let mut admission = Admission::default();
        for uid in [1, 1, 1, 2, 2, 3] {
            assert_eq!(guest(&mut admission, uid).evicted, None);
        }
        assert_eq!(guest(&mut admission, 4), Verdict { ticket: Some(6), evicted: Some(0) });
        let kin = admission.handle_connection(Standing::Kin, 1, Duration::ZERO, &LIMITS);
        assert_eq!(kin, Verdict { ticket: Some(7), evicted: None });
    }

    #[test]
    fn who_does_not_leave_is_replaced_only_so_often() {
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
        /// Whatever is done in whatever order: the limits hold, kin always get in, and nobody says nothing for longer
        /// than the deadline.
        #[test]
        fn nobody_gets_around_the_limits(steps in prop::collection::vec(step(), 0..400)) {
            let mut admission = Admission::default();
            let mut now = Duration::ZERO;
            // (ticket, since when it says nothing), of those whose descriptor is open.
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
