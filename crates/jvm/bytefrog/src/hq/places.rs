//! The places of agents and connections: who leaves for a newcomer where all are taken.
//!
//! Owns: the choice, by user. The user with most places gives way, HQ's own user to no other one. A connection that was shut holds
//! no place, so that a newcomer does not wait for its thread, which may have much to read. The number of these threads is limited.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_os::loopback::Shares;

use super::agent::{Agent, Phase};
use super::shared::{Shared, User, locked};
use super::{AgentId, Event};

/// How long a newcomer waits where too many threads of connections that were shut have not ended: they have nothing to wait for.
const ENDING: Duration = Duration::from_millis(100);
/// So many of these are never too many.
const FEW: usize = 16;

/// A connection whose thread has not ended.
pub(super) struct Open {
    /// `None` if it was shut.
    socket: Option<Arc<TcpStream>>,
    user: User,
    /// `None` if it has not said hello.
    agent: Option<Arc<Agent>>,
}

impl Open {
    pub(super) fn new(socket: Arc<TcpStream>, user: User) -> Self {
        Self { socket: Some(socket), user, agent: None }
    }

    fn is_shut(&self) -> bool {
        self.socket.is_none()
    }

    fn belongs_to(&self, id: AgentId) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.id == id)
    }

    fn shut(&mut self) {
        if let Some(socket) = self.socket.take() {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// An agent or a connection that holds a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder<T> {
    pub(super) id: T,
    pub(super) user: User,
    /// Whether no data is lost with it.
    pub(super) silent: bool,
}

/// Returns who leaves for a newcomer, of holders that are listed by age. Of the user who gives way, the oldest silent one, or the
/// newest: its trace is the shortest. If no user does, a silent one of a user who holds no fewer places than the newcomer's.
/// All others give way to the own user while it has no place, and with `own_first` always.
pub(super) fn leaves<T: Copy>(
    holders: &[Holder<T>],
    newcomer: User,
    own: User,
    own_first: bool,
) -> Option<T> {
    let shares: Shares<User> = holders.iter().map(|holder| holder.user).collect();
    let gives_way = shares.gives_way_to(&newcomer, |user| *user != own);
    let own_first = newcomer == own && (own_first || shares.held_by(&own) == 0);
    let to_own = || shares.most(|user| own_first && *user != own);
    if let Some(user) = gives_way.or_else(to_own) {
        let of_user = || holders.iter().filter(|holder| holder.user == *user);
        return of_user()
            .find(|holder| holder.silent)
            .or_else(|| of_user().next_back())
            .map(|holder| holder.id);
    }
    let may_leave = |holder: &&Holder<T>| {
        let held = shares.held_by(&holder.user);
        let gives_way = holder.user != own && held >= shares.held_by(&newcomer);
        holder.silent && (holder.user == newcomer || gives_way)
    };
    holders.iter().find(may_leave).map(|holder| holder.id)
}

/// Returns the number of connections whose threads may be about to end, beside as many open ones as there may be.
pub fn most_ending(connections: usize) -> usize {
    (connections / 4).max(FEW)
}

/// Returns the user that HQ runs as.
#[cfg_attr(unix, expect(clippy::unnecessary_wraps, reason = "not every system has numbers of users"))]
pub(super) fn own() -> User {
    #[cfg(unix)]
    return Some(rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    None
}

/// Whether what a user's programs send is trusted as much as that of HQ's own.
pub(super) fn is_own_or_root(user: User) -> bool {
    user == own() || user == Some(0)
}

impl Shared {
    /// Returns the agent whose place a newcomer's may take: one that is over, of the newcomer's user or one with no fewer places,
    /// of these the user with most that are over; else as in [`leaves`].
    pub(super) fn leaving<'a>(
        agents: impl Iterator<Item = &'a Agent> + Clone,
        newcomer: User,
    ) -> Option<AgentId> {
        let held: Shares<User> = agents.clone().map(|agent| agent.user).collect();
        let may_leave = |user: &User| *user == newcomer || held.held_by(user) >= held.held_by(&newcomer);
        let over = || agents.clone().filter(|agent| agent.is_over() && may_leave(&agent.user));
        let shares: Shares<User> = over().map(|agent| agent.user).collect();
        if let Some(agent) = over().find(|agent| shares.has_most(&agent.user)) {
            return Some(agent.id);
        }
        let holder =
            |agent: &Agent| Holder { id: agent.id, user: agent.user, silent: agent.has_only_said_hello() };
        let holders: Vec<_> = agents.map(holder).collect();
        leaves(&holders, newcomer, own(), false)
    }

    /// Whether there is room for one more connection; if need be, because another one leaves, or an agent with all of its own.
    pub(super) fn has_room(&self, newcomer: User) -> bool {
        let is_own = newcomer.is_some() && newcomer == own();
        if !is_own && !self.few_are_ending(newcomer) {
            return false;
        }
        let holders: Vec<_> = locked(&self.connections)
            .iter()
            .filter(|(_, open)| !open.is_shut())
            .map(|(number, open)| Holder {
                id: (*number, open.agent.as_ref().map(|agent| agent.id)),
                user: open.user,
                silent: open.agent.is_none(),
            })
            .collect();
        if holders.len() < self.options.connections {
            return true;
        }
        match leaves(&holders, newcomer, own(), true) {
            Some((_, Some(id))) => {
                let agent = locked(&self.agents).remove(&id);
                match agent {
                    Some(agent) => self.displace(&agent, newcomer),
                    // It has lost its place before, and its connections end.
                    None => self.shut_agent(id),
                }
            }
            Some((number, None)) => {
                locked(&self.connections).get_mut(&number).into_iter().for_each(Open::shut);
            }
            None => return false,
        }
        true
    }

    /// Whether not too many threads of connections that were shut are left. Where they are, these read no more of what they have
    /// received. The newcomer's user does not wait for its own: others wait to be accepted meanwhile.
    fn few_are_ending(&self, newcomer: User) -> bool {
        let most = most_ending(self.options.connections);
        let few = || locked(&self.connections).values().filter(|open| open.is_shut()).count() <= most;
        if few() {
            return true;
        }
        let abandon = |open: &Open| open.agent.iter().for_each(|agent| agent.abandon());
        let ending: Shares<User> = {
            let connections = locked(&self.connections);
            let ending = connections.values().filter(|open| open.is_shut());
            ending.inspect(|open| abandon(open)).map(|open| open.user).collect()
        };
        if newcomer.is_some() && ending.has_most(&newcomer) {
            return few();
        }
        let began = Instant::now();
        while !few() && began.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(1));
        }
        few()
    }

    /// Ends an agent that has lost its place. What its connections have received is still read as far as it is in order, and its
    /// sums are kept.
    pub(super) fn displace(&self, agent: &Agent, newcomer: User) {
        let silent = agent.has_only_said_hello();
        match agent.leave() {
            Phase::Lives => {}
            // Its last thread keeps its sums.
            Phase::Over => return (self.tell)(Some(agent.id), Event::Replaced),
            Phase::Complete => {
                self.keep_sums(agent);
                return (self.tell)(Some(agent.id), Event::Replaced);
            }
        }
        (self.tell)(Some(agent.id), Event::Displaced { user: agent.user, newcomer, silent });
        self.shut_agent(agent.id);
    }

    /// Keeps what an agent without a place has come to.
    pub(super) fn keep_sums(&self, agent: &Agent) {
        // A report takes a while, in which others look at the sums.
        let report = agent.model().report();
        let mut former = locked(&self.former);
        let sums = if is_own_or_root(agent.user) { &mut former.own } else { &mut former.others };
        sums.add(report);
    }

    /// Notes whose connection it is.
    pub(super) fn belongs(&self, number: u64, agent: &Arc<Agent>) {
        if let Some(open) = locked(&self.connections).get_mut(&number) {
            open.agent = Some(Arc::clone(agent));
            if agent.has_left() {
                open.shut();
            }
        }
    }

    fn shut_agent(&self, id: AgentId) {
        locked(&self.connections).values_mut().filter(|open| open.belongs_to(id)).for_each(Open::shut);
    }

    /// Ends all connections.
    pub(super) fn shut(&self) {
        locked(&self.connections).values_mut().for_each(Open::shut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: User = Some(0);
    const ONE: User = Some(1);
    const OTHER: User = Some(2);

    fn crowd(user: User, count: usize, silent: bool) -> Vec<(User, bool)> {
        vec![(user, silent); count]
    }

    /// The index of who leaves.
    fn leaving(holders: &[Vec<(User, bool)>], newcomer: User) -> Option<usize> {
        leaving_for(holders, newcomer, false)
    }

    fn leaving_for(holders: &[Vec<(User, bool)>], newcomer: User, own_first: bool) -> Option<usize> {
        let holders: Vec<_> = holders.concat();
        let holders: Vec<_> = holders
            .iter()
            .enumerate()
            .map(|(id, (user, silent))| Holder { id, user: *user, silent: *silent })
            .collect();
        leaves(&holders, newcomer, OWN, own_first)
    }

    #[test]
    fn the_newest_of_the_user_with_most_leaves_before_it_the_oldest_silent_one() {
        let [one, other] = [crowd(ONE, 40, false), crowd(OTHER, 24, false)];
        assert_eq!(leaving(&[one.clone(), other.clone()], OWN), Some(39));
        assert_eq!(leaving(&[other.clone(), one.clone(), crowd(ONE, 2, true)], OWN), Some(64));
        assert_eq!(leaving(&[one.clone(), other.clone()], OTHER), Some(39));
        assert_eq!(leaving(&[one, other], ONE), None);
    }

    #[test]
    fn own_agents_stay() {
        let own = crowd(OWN, 63, false);
        assert_eq!(leaving(&[own.clone(), crowd(ONE, 1, false)], OTHER), None);
        assert_eq!(leaving(&[own.clone(), crowd(ONE, 2, false)], OTHER), Some(64));
        assert_eq!(leaving(&[crowd(OWN, 64, true)], ONE), None);
        assert_eq!(leaving(&[crowd(OWN, 64, true)], OWN), Some(0));
        assert_eq!(leaving(&[own, crowd(ONE, 1, false)], OWN), None);
    }

    /// A user may act as thousands of others.
    #[test]
    fn the_first_of_the_own_user_has_a_place() {
        let crowd: Vec<Vec<(User, bool)>> = (1..=64).map(|user| crowd(Some(user), 1, false)).collect();
        assert_eq!(leaving(&crowd, OWN), Some(63));
        let with_own = [&[vec![(OWN, false)]], &crowd[..63]].concat();
        assert_eq!(leaving(&with_own, OWN), None, "one is enough");
        assert_eq!(leaving(&with_own, Some(64)), None);
    }

    #[test]
    fn all_others_give_way_to_an_own_connection() {
        for one in [1, 2, 63] {
            let held = [crowd(OWN, 64 - one, true), crowd(ONE, one, false)];
            assert_eq!(leaving_for(&held, OWN, true), Some(63), "{one}");
        }
        let held = [crowd(OWN, 32, false), crowd(ONE, 32, false)];
        assert_eq!(leaving_for(&held, ONE, true), None);
        assert_eq!(leaving_for(&held, OTHER, true), Some(63));
        assert_eq!(leaving_for(&[crowd(OWN, 64, false)], OWN, true), None);
    }

    #[test]
    fn silent_ones_leave_for_users_with_no_more_places() {
        assert_eq!(leaving(&[crowd(ONE, 32, false), crowd(OTHER, 32, true)], ONE), Some(32));
        assert_eq!(leaving(&[crowd(ONE, 33, false), crowd(OTHER, 31, true)], ONE), None);
        assert_eq!(leaving(&[crowd(ONE, 3, true)], ONE), Some(0));
        assert_eq!(leaving(&[crowd(None, 3, true)], None), Some(0), "of unknown users");
        assert_eq!(leaving(&[crowd(None, 3, false)], None), None);
    }
}
