//! The slots of agents and connections, and which holder is displaced by a new one when all slots are occupied.
//!
//! The user with the most slots makes room; HQ's own user never makes room for others. A connection that was shut
//! down occupies no slot, so that a new one does not wait for its thread, which may have much to read. The number
//! of such threads is limited.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_os::loopback::Shares;

use super::agent::{Agent, Phase};
use super::shared::{Shared, User, locked};
use super::{AgentId, Event};

/// The time that a new connection waits while too many threads of closed connections still run; these threads have
/// nothing to wait for.
const THREAD_EXIT_TIME: Duration = Duration::from_millis(100);
/// The number of such threads that is always acceptable.
const MIN_CLOSING_THREADS: usize = 16;

/// A connection whose thread is still running.
pub(super) struct OpenConnection {
    /// `None` if it was shut down.
    socket: Option<Arc<TcpStream>>,
    user: User,
    /// `None` before hello.
    agent: Option<Arc<Agent>>,
}

impl OpenConnection {
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
            // An error means that it is already closed.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// An agent or a connection that occupies a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotHolder<T> {
    pub(super) id: T,
    pub(super) user: User,
    /// Whether displacing the holder loses no data.
    pub(super) silent: bool,
}

/// Returns the holder that is displaced by a newcomer; `holders` are sorted by age. Of the user who makes room, it
/// is the oldest silent holder, or the newest one, whose trace is the shortest. If no user makes room, it is a
/// silent holder of a user with at least as many slots as the newcomer's user. All other users make room for HQ's
/// own user while that user has no slot, and always with `own_first`.
pub(super) fn displaced<T: Copy>(
    holders: &[SlotHolder<T>],
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
    let is_candidate = |holder: &&SlotHolder<T>| {
        let held = shares.held_by(&holder.user);
        let gives_way = holder.user != own && held >= shares.held_by(&newcomer);
        holder.silent && (holder.user == newcomer || gives_way)
    };
    holders.iter().find(is_candidate).map(|holder| holder.id)
}

/// Returns the number of connections that may be closing beside this number of open ones.
pub(super) fn max_closing(connections: usize) -> usize {
    (connections / 4).max(MIN_CLOSING_THREADS)
}

/// Returns the user that HQ runs as; `None` on systems without numeric user IDs.
#[cfg_attr(unix, expect(clippy::unnecessary_wraps, reason = "not every system has numeric user IDs"))]
pub(super) fn own() -> User {
    #[cfg(unix)]
    return Some(rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    None
}

/// Returns whether the programs of a user are trusted as much as those of HQ's own user.
pub(super) fn is_own_or_root(user: User) -> bool {
    user == own() || user == Some(0)
}

impl Shared {
    /// Returns the agent that is displaced by one of the newcomer's: preferably a closed one, of the newcomer's
    /// user or of a user with at least as many agents, and of these of the user with the most closed agents;
    /// otherwise as in [`displaced`].
    pub(super) fn displaced_agent<'a>(
        agents: impl Iterator<Item = &'a Agent> + Clone,
        newcomer: User,
    ) -> Option<AgentId> {
        let held: Shares<User> = agents.clone().map(|agent| agent.user).collect();
        let is_candidate = |user: &User| *user == newcomer || held.held_by(user) >= held.held_by(&newcomer);
        let closed = || agents.clone().filter(|agent| agent.is_closed() && is_candidate(&agent.user));
        let shares: Shares<User> = closed().map(|agent| agent.user).collect();
        if let Some(agent) = closed().find(|agent| shares.has_most(&agent.user)) {
            return Some(agent.id);
        }
        let holder = |agent: &Agent| SlotHolder {
            id: agent.id,
            user: agent.user,
            silent: agent.has_only_said_hello(),
        };
        let holders: Vec<_> = agents.map(holder).collect();
        displaced(&holders, newcomer, own(), false)
    }

    /// Returns whether there is room for one more connection. Displaces another connection, or an agent with all of
    /// its connections, if necessary.
    pub(super) fn make_room(&self, newcomer: User) -> bool {
        let is_own = newcomer.is_some() && newcomer == own();
        if !is_own && !self.few_are_closing(newcomer) {
            return false;
        }
        let holders: Vec<_> = locked(&self.connections)
            .iter()
            .filter(|(_, open)| !open.is_shut())
            .map(|(number, open)| SlotHolder {
                id: (*number, open.agent.as_ref().map(|agent| agent.id)),
                user: open.user,
                silent: open.agent.is_none(),
            })
            .collect();
        if holders.len() < self.options.connections {
            return true;
        }
        match displaced(&holders, newcomer, own(), true) {
            Some((_, Some(id))) => {
                let agent = locked(&self.agents).remove(&id);
                match agent {
                    Some(agent) => self.displace(&agent, newcomer),
                    // The agent was displaced before, and its connections are closing.
                    None => self.shut_agent(id),
                }
            }
            Some((number, None)) => {
                locked(&self.connections).get_mut(&number).into_iter().for_each(OpenConnection::shut);
            }
            None => return false,
        }
        true
    }

    /// Returns whether few enough threads of closed connections still run; if not, makes them discard what they
    /// have received. A newcomer whose user holds the most of these threads is not waited for, because others wait
    /// to be accepted.
    fn few_are_closing(&self, newcomer: User) -> bool {
        let limit = max_closing(self.options.connections);
        let few = || locked(&self.connections).values().filter(|open| open.is_shut()).count() <= limit;
        if few() {
            return true;
        }
        let abandon = |open: &OpenConnection| open.agent.iter().for_each(|agent| agent.abandon());
        let closing: Shares<User> = {
            let connections = locked(&self.connections);
            let closing = connections.values().filter(|open| open.is_shut());
            closing.inspect(|open| abandon(open)).map(|open| open.user).collect()
        };
        if newcomer.is_some() && closing.has_most(&newcomer) {
            return few();
        }
        let began = Instant::now();
        while !few() && began.elapsed() < THREAD_EXIT_TIME {
            std::thread::sleep(Duration::from_millis(1));
        }
        few()
    }

    /// Displaces an agent. What its connections have received is still read as far as it is in order, and its
    /// totals are kept.
    pub(super) fn displace(&self, agent: &Agent, newcomer: User) {
        let silent = agent.has_only_said_hello();
        match agent.mark_displaced() {
            Phase::Running => {}
            // The thread that completes the trace keeps its totals.
            Phase::Closed => return (self.on_event)(Some(agent.id), Event::Replaced),
            Phase::Complete => {
                self.keep_sums(agent);
                return (self.on_event)(Some(agent.id), Event::Replaced);
            }
        }
        (self.on_event)(Some(agent.id), Event::Displaced { user: agent.user, newcomer, silent });
        self.shut_agent(agent.id);
    }

    /// Adds the report of a displaced agent to the totals.
    pub(super) fn keep_sums(&self, agent: &Agent) {
        // A report takes a while, so the totals are not locked during it.
        let report = agent.model().report();
        let mut former = locked(&self.former);
        let sums = if is_own_or_root(agent.user) { &mut former.own } else { &mut former.others };
        sums.add(report);
    }

    /// Associates a connection with its agent.
    pub(super) fn assign(&self, number: u64, agent: &Arc<Agent>) {
        if let Some(open) = locked(&self.connections).get_mut(&number) {
            open.agent = Some(Arc::clone(agent));
            if agent.is_displaced() {
                open.shut();
            }
        }
    }

    fn shut_agent(&self, id: AgentId) {
        locked(&self.connections)
            .values_mut()
            .filter(|open| open.belongs_to(id))
            .for_each(OpenConnection::shut);
    }

    /// Shuts down all connections.
    pub(super) fn shut(&self) {
        locked(&self.connections).values_mut().for_each(OpenConnection::shut);
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

    /// Returns the index of the displaced holder.
    fn displaced_for(holders: &[Vec<(User, bool)>], newcomer: User) -> Option<usize> {
        displaced_with(holders, newcomer, false)
    }

    fn displaced_with(holders: &[Vec<(User, bool)>], newcomer: User, own_first: bool) -> Option<usize> {
        let holders: Vec<_> = holders.concat();
        let holders: Vec<_> = holders
            .iter()
            .enumerate()
            .map(|(id, (user, silent))| SlotHolder { id, user: *user, silent: *silent })
            .collect();
        displaced(&holders, newcomer, OWN, own_first)
    }

    #[test]
    fn the_oldest_silent_one_and_then_the_newest_of_the_user_with_most_is_displaced() {
        let [one, other] = [crowd(ONE, 40, false), crowd(OTHER, 24, false)];
        assert_eq!(displaced_for(&[one.clone(), other.clone()], OWN), Some(39));
        assert_eq!(displaced_for(&[other.clone(), one.clone(), crowd(ONE, 2, true)], OWN), Some(64));
        assert_eq!(displaced_for(&[one.clone(), other.clone()], OTHER), Some(39));
        assert_eq!(displaced_for(&[one, other], ONE), None);
    }

    #[test]
    fn own_agents_are_not_displaced_by_others() {
        let own = crowd(OWN, 63, false);
        assert_eq!(displaced_for(&[own.clone(), crowd(ONE, 1, false)], OTHER), None);
        assert_eq!(displaced_for(&[own.clone(), crowd(ONE, 2, false)], OTHER), Some(64));
        assert_eq!(displaced_for(&[crowd(OWN, 64, true)], ONE), None);
        assert_eq!(displaced_for(&[crowd(OWN, 64, true)], OWN), Some(0));
        assert_eq!(displaced_for(&[own, crowd(ONE, 1, false)], OWN), None);
    }

    /// One user may be able to act as thousands of others.
    #[test]
    fn the_first_of_the_own_user_gets_a_slot() {
        let crowd: Vec<Vec<(User, bool)>> = (1..=64).map(|user| crowd(Some(user), 1, false)).collect();
        assert_eq!(displaced_for(&crowd, OWN), Some(63));
        let with_own = [&[vec![(OWN, false)]], &crowd[..63]].concat();
        assert_eq!(displaced_for(&with_own, OWN), None, "one is enough");
        assert_eq!(displaced_for(&with_own, Some(64)), None);
    }

    #[test]
    fn all_others_make_room_for_an_own_connection() {
        for one in [1, 2, 63] {
            let held = [crowd(OWN, 64 - one, true), crowd(ONE, one, false)];
            assert_eq!(displaced_with(&held, OWN, true), Some(63), "{one}");
        }
        let held = [crowd(OWN, 32, false), crowd(ONE, 32, false)];
        assert_eq!(displaced_with(&held, ONE, true), None);
        assert_eq!(displaced_with(&held, OTHER, true), Some(63));
        assert_eq!(displaced_with(&[crowd(OWN, 64, false)], OWN, true), None);
    }

    #[test]
    fn silent_ones_make_room_for_users_with_no_more_slots() {
        assert_eq!(displaced_for(&[crowd(ONE, 32, false), crowd(OTHER, 32, true)], ONE), Some(32));
        assert_eq!(displaced_for(&[crowd(ONE, 33, false), crowd(OTHER, 31, true)], ONE), None);
        assert_eq!(displaced_for(&[crowd(ONE, 3, true)], ONE), Some(0));
        assert_eq!(displaced_for(&[crowd(None, 3, true)], None), Some(0), "of unknown users");
        assert_eq!(displaced_for(&[crowd(None, 3, false)], None), None);
    }
}
