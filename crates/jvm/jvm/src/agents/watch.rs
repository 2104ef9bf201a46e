//! Facts about all agents of a collector, and the notices about them.
//!
//! Owns: [`AgentWatch`], which receives all events of the collector on the threads of its connections and never blocks:
//! notices are kept in a bounded queue until they are printed. The number of notices left out is reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtap_bytefrog::Counters;
use runtap_bytefrog::hq::{AgentId, AgentStatus, Event, Hq, RejectReason};
use runtap_bytefrog_proto::{ClassOutcome, Dialect, Rule};
use tokio::sync::Notify;

use super::facts::AgentFacts;
use super::notice::{MAX_WARNINGS, News, Notice, Weight};
use crate::recording::ClassCounts;

/// The capacity of the queue of notices.
const MAX_PENDING_NOTICES: usize = 1000;
/// The maximum number of agents whose facts are kept. It exceeds the number that the collector keeps, so that agents which the
/// collector has dropped are removed first.
const MAX_AGENTS: usize = 1000;

#[derive(Debug, Default)]
struct WatchState {
    /// Whether notices of weight `Detail` are kept.
    details: bool,
    agents: BTreeMap<AgentId, AgentFacts>,
    /// Agents that the collector no longer keeps. An agent may be displaced before its `Connected` event arrives.
    gone: BTreeSet<AgentId>,
    /// The classes of agents whose facts were removed, and whether any of these agents was partial.
    forgotten_classes: ClassCounts,
    forgotten_partial: bool,
    notices: VecDeque<Notice>,
    left_out: u64,
    /// The number of rejected connections that belong to no agent, by the broken rule.
    rule_counts: BTreeMap<Rule, u64>,
    /// The number of connections of users who may not connect.
    rejected_users: u64,
    /// The distinct reasons for rejecting connections at a limit.
    causes: Vec<Discriminant<RejectReason>>,
    /// The number of connections rejected at a limit.
    refused: u64,
    /// The number of agents that were disconnected to make room, and of the notices about them.
    displaced: u64,
    displacement_notices: u64,
    /// The first agent whose connections have all closed.
    first_finished: Option<AgentId>,
    /// The number of agents that have connected.
    connected_agents: u64,
}

/// The facts about all agents, and the pending notices.
#[derive(Debug)]
pub struct AgentWatch {
    state: Mutex<WatchState>,
    /// Notified when a notice or a fact has changed.
    pub news: Notify,
}

/// What is known about an agent at one time.
#[derive(Debug, Clone)]
pub struct AgentSummary {
    /// The status.
    pub status: AgentStatus,
    /// The facts; `None` if they are not known yet, or no longer.
    pub facts: Option<AgentFacts>,
    /// The counters of the trace.
    pub counters: Counters,
    /// The number of events that wait for earlier events.
    pub waiting: usize,
}

impl AgentWatch {
    /// Creates a watch without agents. `details` keeps notices of weight [`Weight::Detail`].
    pub fn new(details: bool) -> Self {
        Self { state: Mutex::new(WatchState { details, ..WatchState::default() }), news: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event of an agent, or of a connection that belongs to no agent.
    pub fn handle_event(&self, agent: Option<AgentId>, event: Event) {
        {
            let mut state = self.lock();
            match agent {
                Some(id) => state.handle_event(id, event),
                None => state.handle_unknown(event),
            }
        }
        self.news.notify_one();
    }

    /// Appends a notice to the queue.
    pub fn add(&self, notice: Notice) {
        self.lock().add(notice);
        self.news.notify_one();
    }

    /// Removes and returns the pending notices.
    pub fn take_notices(&self) -> Vec<Notice> {
        let mut state = self.lock();
        let mut notices: Vec<Notice> = state.notices.drain(..).collect();
        let left_out = std::mem::take(&mut state.left_out);
        if left_out > 0 {
            notices.push(Notice::new(Weight::Warning, None, News::LeftOut(left_out)));
        }
        notices
    }

    /// Returns what is known about the agents that a collector keeps.
    pub fn summaries(&self, hq: &Hq) -> Vec<AgentSummary> {
        let summary = |status: AgentStatus| {
            let (counters, waiting) = hq.counters(status.id).ok()?;
            Some(AgentSummary { facts: self.facts(status.id), status, counters, waiting })
        };
        hq.agents().into_iter().filter_map(summary).collect()
    }

    /// Returns the facts about an agent; `None` if unknown.
    pub fn facts(&self, agent: AgentId) -> Option<AgentFacts> {
        self.lock().agents.get(&agent).cloned()
    }

    /// Returns the sums of classes of all agents.
    pub fn classes(&self) -> ClassCounts {
        let state = self.lock();
        state.agents.values().fold(state.forgotten_classes, |sum, facts| sum.and(facts.classes))
    }

    /// Returns whether all connections of at least one agent have closed.
    pub fn one_has_finished(&self) -> bool {
        self.lock().first_finished.is_some()
    }

    /// Returns whether at least one agent has connected and all agents have ended.
    pub fn all_have_finished(&self) -> bool {
        let state = self.lock();
        !state.agents.is_empty() && state.agents.values().all(|facts| facts.finished)
    }

    /// Returns whether data of any agent is known to be missing.
    pub fn is_partial(&self) -> bool {
        let state = self.lock();
        state.forgotten_partial || state.agents.values().any(|facts| facts.partial)
    }

    /// Returns the number of connections rejected at a limit; their data is in no report.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// Returns the number of agents that were disconnected to make room after they had started to trace.
    pub fn displaced(&self) -> u64 {
        self.lock().displaced
    }

    /// Returns the number of connections of users who may not connect.
    pub fn rejected_users(&self) -> u64 {
        self.lock().rejected_users
    }

    /// Returns the number of agents that have connected.
    pub fn connected_agents(&self) -> u64 {
        self.lock().connected_agents
    }
}

impl WatchState {
    fn add(&mut self, notice: Notice) {
        if notice.weight == Weight::Detail && !self.details {
            return;
        }
        if self.notices.len() < MAX_PENDING_NOTICES {
            self.notices.push_back(notice);
        } else {
            self.left_out += 1;
        }
    }

    /// Handles an event of a connection that belongs to no agent.
    fn handle_unknown(&mut self, event: Event) {
        let is_shown = match &event {
            Event::Violation(violation) => {
                let count = self.rule_counts.entry(violation.rule).or_default();
                *count += 1;
                *count <= MAX_WARNINGS
            }
            Event::UserRejected { .. } => {
                self.rejected_users += 1;
                self.rejected_users <= MAX_WARNINGS
            }
            // Each reason is reported once; the total is reported at the end.
            Event::Rejected { cause, .. } => {
                self.refused += 1;
                let is_new = !self.causes.contains(&discriminant(cause));
                if is_new {
                    self.causes.push(discriminant(cause));
                }
                is_new
            }
            _ => return,
        };
        let weight = if is_shown { Weight::Warning } else { Weight::Detail };
        self.add(Notice::new(weight, None, News::Event(event)));
    }

    fn handle_event(&mut self, id: AgentId, event: Event) {
        if let Event::Connected { peer, dialect, run, .. } = event {
            self.connected(id, peer, dialect, run);
            return self.add(Notice::new(Weight::Note, id, News::Event(event)));
        }
        if matches!(event, Event::Replaced | Event::Displaced { .. }) {
            self.gone.insert(id);
            // Bounds the set: it may have ids of agents whose facts were removed before.
            if self.gone.len() > 2 * MAX_AGENTS {
                self.gone.pop_first();
            }
        }
        let Some(facts) = self.agents.get_mut(&id) else { return };
        let notice = |weight, news| Notice::new(weight, id, news);
        // The number of notices of this kind so far, if it is limited.
        let mut count = None;
        let shown = match event {
            Event::Heartbeat { mode, queue } => {
                let before = facts.last_heartbeat.replace((mode, queue));
                let news = if std::mem::take(&mut facts.silent) {
                    News::AliveAgain(mode)
                } else if before.is_some_and(|(before, _)| before == mode) {
                    return;
                } else {
                    News::Event(event)
                };
                count = Some(&mut facts.mode_notices);
                notice(Weight::Note, news)
            }
            Event::Class { outcome, .. } => {
                let (count, weight) = match outcome {
                    ClassOutcome::Transformed => (&mut facts.classes.transformed, Weight::Detail),
                    ClassOutcome::Ignored => (&mut facts.classes.ignored, Weight::Detail),
                    ClassOutcome::Failed => (&mut facts.classes.failed, Weight::Note),
                };
                *count += 1;
                // A program has thousands of classes.
                notice(if *count > MAX_WARNINGS { Weight::Detail } else { weight }, News::Event(event))
            }
            Event::Process(ref process) => {
                facts.process = Some(process.clone());
                count = Some(&mut facts.process_notices);
                notice(Weight::Note, News::Event(event))
            }
            Event::Error(_) => {
                facts.partial = true;
                count = Some(&mut facts.error_notices);
                notice(Weight::Warning, News::Event(event))
            }
            Event::NotConfigured(_) | Event::RecordingFailed { .. } => {
                facts.partial = true;
                notice(Weight::Warning, News::Event(event))
            }
            Event::Displaced { user, newcomer, silent } => {
                self.displaced += u64::from(!silent);
                count = Some(&mut self.displacement_notices);
                let process = facts.process.clone();
                notice(Weight::Warning, News::Displaced { process, user, newcomer, silent })
            }
            Event::Violation(ref violation) => {
                let count = facts.record_violation(violation);
                notice(Weight::Warning, News::Event(event)).limited(count)
            }
            Event::Data(open) => {
                let before = std::mem::replace(&mut facts.data, open);
                let news = if open > before { News::Event(event) } else { News::DataClosed(open) };
                notice(Weight::Detail, news)
            }
            Event::ControlEnded => notice(Weight::Detail, News::Event(event)),
            Event::Finished => {
                facts.finished = true;
                self.first_finished.get_or_insert(id);
                notice(Weight::Note, News::Event(event))
            }
            _ => return,
        };
        let shown = match count {
            Some(count) => {
                *count += 1;
                shown.limited(*count)
            }
            None => shown,
        };
        self.add(shown);
    }

    fn connected(&mut self, id: AgentId, peer: SocketAddr, dialect: Dialect, run: u8) {
        self.connected_agents += 1;
        while self.agents.len() >= MAX_AGENTS {
            let gone = self.gone.iter().find(|gone| self.agents.contains_key(gone)).copied();
            let Some(first) = gone.or_else(|| self.agents.keys().next().copied()) else { break };
            self.gone.remove(&first);
            let Some(facts) = self.agents.remove(&first) else { break };
            self.forgotten_classes = self.forgotten_classes.and(facts.classes);
            self.forgotten_partial |= facts.partial;
        }
        self.agents.insert(id, AgentFacts::new(peer, dialect, run));
    }
}

#[cfg(test)]
mod tests {
    use runtap_bytefrog_proto::hq::AgentProcess;
    use runtap_bytefrog_proto::{JavaString, ModeByte, Severity, Violation};

    use super::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    fn connected(watch: &AgentWatch, agent: AgentId) {
        let event = Event::Connected { peer: peer(), dialect: Dialect::V1, project: Some(3), run: 9 };
        watch.handle_event(Some(agent), event);
    }

    #[test]
    fn the_queue_of_notices_is_bounded_and_left_out_ones_are_counted() {
        let detail = || Notice::new(Weight::Detail, None, News::DataClosed(0));
        let watch = AgentWatch::new(true);
        for _ in 0..MAX_PENDING_NOTICES + 20 {
            watch.add(detail());
        }
        let notices = watch.take_notices();
        assert_eq!(notices.len(), MAX_PENDING_NOTICES + 1);
        assert_eq!(notices.last(), Some(&Notice::new(Weight::Warning, None, News::LeftOut(20))));
        assert!(watch.take_notices().is_empty());
        let curt = AgentWatch::new(false);
        curt.add(detail());
        assert!(curt.take_notices().is_empty());
    }

    #[test]
    fn warnings_about_one_rule_are_limited() {
        let (watch, agent) = (AgentWatch::new(true), AgentId(0));
        connected(&watch, agent);
        for id in [Some(agent), None] {
            for _ in 0..100 {
                let violation = Violation::new(Rule::UnknownMode, "mode 0x39", Some(1));
                watch.handle_event(id, Event::Violation(violation));
            }
        }
        let notices = watch.take_notices();
        let warnings = notices.iter().filter(|notice| notice.weight == Weight::Warning).count();
        assert_eq!(u64::try_from(warnings), Ok(2 * MAX_WARNINGS));
        assert!(!watch.is_partial());
        let broken = watch.facts(agent).unwrap().broken;
        assert_eq!(
            broken.rules().first().map(|finding| (finding.count, finding.first.len())),
            Some((100, 5))
        );
    }

    #[test]
    fn repeated_notices_about_an_agent_are_limited() {
        let (watch, agent) = (AgentWatch::new(false), AgentId(0));
        connected(&watch, agent);
        watch.take_notices();
        let shown = |event: fn(u32) -> Event| {
            (0..200).for_each(|number| watch.handle_event(Some(agent), event(number)));
            watch.take_notices()
        };
        let process = |pid| {
            let [jvm, main] = [(); 2].map(|()| JavaString::from(""));
            Event::Process(AgentProcess { pid, wall: 0, resolution: 1, jvm, main })
        };
        for (notices, most) in [
            (shown(|n| Event::Heartbeat { mode: ModeByte(b"ST"[n as usize % 2]), queue: 0 }), 50),
            (shown(process), 50),
            (shown(|n| Event::Error(JavaString::from(n.to_string().as_str()))), 5),
        ] {
            let last: Vec<usize> = (0..notices.len()).filter(|at| notices[*at].is_last).collect();
            assert_eq!((notices.len(), last), (most, vec![most - 1]));
        }
        assert!(watch.is_partial());
    }

    #[test]
    fn rejected_connections_are_counted_and_each_reason_is_reported_once() {
        let watch = AgentWatch::new(false);
        let rejected = |cause| Event::Rejected { peer: peer(), cause };
        for cause in [RejectReason::Agents(64), RejectReason::Agents(64), RejectReason::Connections(200)] {
            watch.handle_event(None, rejected(cause));
        }
        let news: Vec<News> = watch.take_notices().into_iter().map(|notice| notice.news).collect();
        let expected = [RejectReason::Agents(64), RejectReason::Connections(200)];
        assert_eq!(news, expected.map(|cause| News::Event(rejected(cause))));
        assert_eq!((watch.refused(), watch.connected_agents()), (3, 0));
    }

    #[test]
    fn a_displaced_agent_is_reported_with_its_process() {
        let (watch, agent) = (AgentWatch::new(false), AgentId(4));
        connected(&watch, agent);
        let [jvm, main] = ["17", "shop/Main"].map(JavaString::from);
        let process = AgentProcess { pid: 77, wall: 0, resolution: 1, jvm, main };
        watch.handle_event(Some(agent), Event::Process(process.clone()));
        watch.take_notices();
        for silent in [false, true] {
            let (user, newcomer) = (Some(65_534), Some(0));
            watch.handle_event(Some(agent), Event::Displaced { user, newcomer, silent });
            let news = News::Displaced { process: Some(process.clone()), user, newcomer, silent };
            assert_eq!(watch.take_notices(), [Notice::new(Weight::Warning, agent, news)]);
            assert_eq!(watch.displaced(), 1);
        }
    }

    /// A violation that makes the collector discard data of an agent makes the result partial.
    #[test]
    fn a_violation_that_loses_data_makes_the_result_partial() {
        for rule in Rule::ALL.iter().copied() {
            let (watch, agent) = (AgentWatch::new(false), AgentId(0));
            connected(&watch, agent);
            watch.handle_event(None, Event::Violation(Violation::new(rule, "", None)));
            assert!(!watch.is_partial(), "{rule}: a connection that is no agent's");
            watch.handle_event(Some(agent), Event::Violation(Violation::new(rule, "", None)));
            let has_losses = rule.severity() == Severity::Error || rule == Rule::EndWithoutShutdown;
            assert_eq!(watch.is_partial(), has_losses, "{rule}");
        }
    }

    #[test]
    fn mode_changes_are_reported() {
        let (watch, agent) = (AgentWatch::new(false), AgentId(0));
        connected(&watch, agent);
        watch.take_notices();
        let heartbeat = |mode| Event::Heartbeat { mode: ModeByte(mode), queue: 0 };
        for mode in [b'I', b'T', b'T', b'T', b'?'] {
            watch.handle_event(Some(agent), heartbeat(mode));
        }
        let news: Vec<News> = watch.take_notices().into_iter().map(|notice| notice.news).collect();
        assert_eq!(news, [b'I', b'T', b'?'].map(|mode| News::Event(heartbeat(mode))));
        watch.handle_event(Some(agent), Event::Violation(Violation::new(Rule::HeartbeatMissing, "", None)));
        watch.take_notices();
        watch.handle_event(Some(agent), heartbeat(b'?'));
        assert_eq!(watch.take_notices()[0].news, News::AliveAgain(ModeByte(b'?')));
    }

    #[test]
    fn old_agents_are_removed() {
        let watch = AgentWatch::new(false);
        connected(&watch, AgentId(0));
        watch.handle_event(Some(AgentId(0)), Event::Finished);
        assert!(watch.one_has_finished());
        for number in 1..=u32::try_from(MAX_AGENTS).unwrap() {
            connected(&watch, AgentId(number));
        }
        assert!(watch.facts(AgentId(0)).is_none() && watch.facts(AgentId(1)).is_some());
        // Agents that the collector has dropped are removed first, and their errors are remembered.
        watch.handle_event(Some(AgentId(7)), Event::Error("broken".into()));
        watch.handle_event(Some(AgentId(7)), Event::Replaced);
        assert!(watch.facts(AgentId(7)).is_some());
        connected(&watch, AgentId(2000));
        assert!(watch.facts(AgentId(7)).is_none() && watch.facts(AgentId(1)).is_some() && watch.is_partial());
        // This also applies to agents that were displaced before their `Connected` event.
        watch
            .handle_event(Some(AgentId(3000)), Event::Displaced { user: None, newcomer: None, silent: true });
        connected(&watch, AgentId(3000));
        connected(&watch, AgentId(3001));
        assert!(watch.facts(AgentId(3000)).is_none() && watch.facts(AgentId(1)).is_none());
        // Events of unknown agents are ignored.
        watch.handle_event(Some(AgentId(5000)), Event::Finished);
        assert!(watch.facts(AgentId(5000)).is_none());
    }
}
