//! Facts about agents apart from their traces, and the lines printed about them.
//!
//! Owns: [`Watch`], which receives all events of the collector on the threads of its connections and never blocks: lines are
//! kept in a bounded queue until they are printed. The number of lines left out is reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtap_bytefrog::hq::{AgentId, Event, RejectReason};
use runtap_bytefrog_proto::{ClassOutcome, Dialect, ModeByte, Rule};
use runtap_text::units::Things;
use tokio::sync::Notify;

use super::super::document::Classes;
pub(in crate::cmd::jvm) use super::facts::AgentFacts;
use super::facts::{LineLimit, MAX_WARNINGS, named};

/// The capacity of the queue of lines.
const MAX_PENDING_LINES: usize = 1000;
/// The maximum number of agents whose facts are kept. It exceeds the number that the collector keeps, so that agents which the
/// collector has dropped are removed first.
const MAX_AGENTS: usize = 1000;

/// The importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cmd::jvm) enum Weight {
    /// Shown only with `--verbose`.
    Detail,
    Note,
    Warning,
}

/// A line to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::jvm) struct Line {
    pub(in crate::cmd::jvm) weight: Weight,
    pub(in crate::cmd::jvm) text: String,
}

#[derive(Debug, Default)]
struct WatchState {
    /// Whether lines of weight `Detail` are kept.
    details: bool,
    agents: BTreeMap<AgentId, AgentFacts>,
    /// Agents that the collector no longer keeps. An agent may be displaced before its `Connected` event arrives.
    gone: BTreeSet<AgentId>,
    /// The classes of agents whose facts were removed, and whether any of these agents was partial.
    forgotten_classes: Classes,
    forgotten_partial: bool,
    lines: VecDeque<Line>,
    left_out: u64,
    /// The number of rejected connections that belong to no agent, by the broken rule.
    rule_counts: BTreeMap<Rule, u64>,
    /// The number of connections of users who may not connect.
    rejected_users: u64,
    /// The distinct reasons for rejecting connections at a limit.
    causes: Vec<Discriminant<RejectReason>>,
    /// The number of connections rejected at a limit.
    refused: u64,
    /// The number of agents that were disconnected to make room, and a limit for the lines about them.
    displaced: u64,
    displacements: LineLimit,
    /// The first agent whose connections have all closed.
    first_finished: Option<AgentId>,
    /// The number of agents that have connected.
    connected_agents: u64,
}

/// The facts about all agents, and the pending lines.
#[derive(Debug)]
pub(in crate::cmd::jvm) struct Watch {
    state: Mutex<WatchState>,
    /// Notified when a line or a fact has changed.
    pub(in crate::cmd::jvm) news: Notify,
}

fn mode(mode: ModeByte) -> String {
    mode.mode().map_or_else(|| format!("in the unknown mode {}", mode.0), |mode| mode.to_string())
}

fn describe_user(user: Option<u32>) -> String {
    user.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"))
}

impl Watch {
    /// Creates a watch without agents. `details` keeps lines of weight `Detail`.
    pub(in crate::cmd::jvm) fn new(details: bool) -> Self {
        Self { state: Mutex::new(WatchState { details, ..WatchState::default() }), news: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event of an agent, or of a connection that belongs to no agent.
    pub(in crate::cmd::jvm) fn handle_event(&self, agent: Option<AgentId>, event: Event) {
        {
            let mut state = self.lock();
            match agent {
                Some(id) => state.handle_event(id, event),
                None => state.handle_unknown(&event),
            }
        }
        self.news.notify_one();
    }

    /// Appends a line to the queue.
    pub(in crate::cmd::jvm) fn add_line(&self, weight: Weight, text: String) {
        self.lock().add_line(weight, text);
        self.news.notify_one();
    }

    /// Removes and returns the pending lines.
    pub(in crate::cmd::jvm) fn lines(&self) -> Vec<Line> {
        let mut state = self.lock();
        let mut lines: Vec<Line> = state.lines.drain(..).collect();
        let left_out = std::mem::take(&mut state.left_out);
        if left_out > 0 {
            lines.push(Line {
                weight: Weight::Warning,
                text: format!("{} left out: more came than could be shown", Things(left_out, "line")),
            });
        }
        lines
    }

    /// Returns the facts about an agent; `None` if unknown.
    pub(in crate::cmd::jvm) fn facts(&self, agent: AgentId) -> Option<AgentFacts> {
        self.lock().agents.get(&agent).cloned()
    }

    /// Returns the sums of classes of all agents.
    pub(in crate::cmd::jvm) fn classes(&self) -> Classes {
        let state = self.lock();
        state.agents.values().fold(state.forgotten_classes, |sum, facts| sum.and(facts.classes))
    }

    /// Returns whether all connections of at least one agent have closed.
    pub(in crate::cmd::jvm) fn one_has_finished(&self) -> bool {
        self.lock().first_finished.is_some()
    }

    /// Returns whether at least one agent has connected and all agents have ended.
    #[cfg_attr(not(unix), expect(dead_code, reason = "for the live view"))]
    pub(in crate::cmd::jvm) fn all_have_finished(&self) -> bool {
        let state = self.lock();
        !state.agents.is_empty() && state.agents.values().all(|facts| facts.finished)
    }

    /// Returns whether data of any agent is known to be missing.
    pub(in crate::cmd::jvm) fn is_partial(&self) -> bool {
        let state = self.lock();
        state.forgotten_partial || state.agents.values().any(|facts| facts.partial)
    }

    /// Returns the number of connections rejected at a limit; their data is in no report.
    pub(in crate::cmd::jvm) fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// Returns the number of agents that were disconnected to make room after they had started to trace.
    pub(in crate::cmd::jvm) fn displaced(&self) -> u64 {
        self.lock().displaced
    }

    /// Returns the number of connections of users who may not connect.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "for verbs that are only on Linux"))]
    pub(in crate::cmd::jvm) fn rejected_users(&self) -> u64 {
        self.lock().rejected_users
    }

    /// Returns the number of agents that have connected.
    pub(in crate::cmd::jvm) fn connected_agents(&self) -> u64 {
        self.lock().connected_agents
    }
}

impl WatchState {
    fn add_line(&mut self, weight: Weight, text: String) {
        if weight == Weight::Detail && !self.details {
            return;
        }
        if self.lines.len() < MAX_PENDING_LINES {
            self.lines.push_back(Line { weight, text });
        } else {
            self.left_out += 1;
        }
    }

    /// Handles an event of a connection that belongs to no agent.
    fn handle_unknown(&mut self, event: &Event) {
        let (count, why) = match event {
            Event::Violation(violation) => {
                (self.rule_counts.entry(violation.rule).or_default(), violation.to_string())
            }
            Event::UserRejected { peer, user } => {
                let owner = describe_user(*user);
                (&mut self.rejected_users, format!("it is of {owner} (from {peer}), who may not connect"))
            }
            Event::Rejected { peer, cause } => return self.refuse(*peer, *cause),
            _ => return,
        };
        *count += 1;
        let weight = if *count <= MAX_WARNINGS { Weight::Warning } else { Weight::Detail };
        self.add_line(weight, format!("a connection was refused: {why}"));
    }

    /// Handles a connection rejected at a limit. Each reason is reported once; the total is reported at the end.
    fn refuse(&mut self, peer: SocketAddr, cause: RejectReason) {
        self.refused += 1;
        let is_new = !self.causes.contains(&discriminant(&cause));
        if is_new {
            self.causes.push(discriminant(&cause));
        }
        let weight = if is_new { Weight::Warning } else { Weight::Detail };
        self.add_line(weight, format!("a connection from {peer} was refused: {cause}"));
    }

    fn handle_event(&mut self, id: AgentId, event: Event) {
        let number = id.0;
        if let Event::Connected { peer, dialect, project, run } = event {
            self.connected(id, peer, dialect, run);
            let project = project.map_or_else(String::new, |project| format!(", project {project}"));
            return self.add_line(
                Weight::Note,
                format!("agent {number} connected from {peer}: version {dialect}, run {run}{project}"),
            );
        }
        if matches!(event, Event::Replaced | Event::Displaced { .. }) {
            self.gone.insert(id);
            // Bounds the set: it may have ids of agents whose facts were removed before.
            if self.gone.len() > 2 * MAX_AGENTS {
                self.gone.pop_first();
            }
        }
        let Some(facts) = self.agents.get_mut(&id) else { return };
        let line = match event {
            Event::Heartbeat { mode: now, queue } => {
                let before = facts.last_heartbeat.replace((now, queue));
                let was_silent = std::mem::take(&mut facts.silent);
                let text = match before {
                    _ if was_silent => Some(format!("lives again: {}", mode(now))),
                    Some((before, _)) if before == now => None,
                    _ => Some(format!("is {}", mode(now))),
                };
                text.map(|text| facts.modes.line(Weight::Note, text))
            }
            Event::Class { outcome, name } => {
                let (count, what, weight) = match outcome {
                    ClassOutcome::Transformed => (&mut facts.classes.transformed, "traces", Weight::Detail),
                    ClassOutcome::Ignored => (&mut facts.classes.ignored, "leaves alone", Weight::Detail),
                    ClassOutcome::Failed => (&mut facts.classes.failed, "can't trace", Weight::Note),
                };
                *count += 1;
                // A program has thousands of classes.
                let weight = if *count > MAX_WARNINGS { Weight::Detail } else { weight };
                // Format only lines that are shown, because other threads wait for this lock.
                let is_shown = self.details || weight != Weight::Detail;
                is_shown.then(|| (weight, format!("{what} {name}")))
            }
            Event::Process(process) => {
                let text = format!("is process {}{}, JVM {}", process.pid, named(&process), process.jvm);
                facts.process = Some(process);
                Some(facts.processes.line(Weight::Note, text))
            }
            Event::Error(text) => {
                facts.partial = true;
                Some(facts.errors.line(Weight::Warning, format!("reports an error: {text}")))
            }
            Event::NotConfigured(error) => {
                facts.partial = true;
                Some((Weight::Warning, format!("was sent away, without a configuration: {error}")))
            }
            Event::Replaced => None,
            Event::Displaced { user, newcomer, silent } => {
                self.displaced += u64::from(!silent);
                let process = facts.process_named();
                let comma = if process.is_empty() { "" } else { "," };
                let why = if silent { "it had said nothing but hello" } else { "its user had the most" };
                let (user, newcomer) = (describe_user(user), describe_user(newcomer));
                let text = format!(
                    "agent {number}{process}{comma} of {user} was disconnected to make room for {newcomer}: {why}"
                );
                let (weight, text) = self.displacements.line(Weight::Warning, text);
                return self.add_line(weight, text);
            }
            Event::Violation(violation) => Some(facts.violation(&violation)),
            Event::Data(open) => {
                let (before, after) = (facts.data, open);
                facts.data = open;
                let what = if after > before { "opened" } else { "closed" };
                Some((Weight::Detail, format!("{what} a data connection: {after} open")))
            }
            Event::RecordingFailed { connection, reason } => {
                facts.partial = true;
                let text = format!("is not recorded any more ({connection}), the trace goes on: {reason}");
                Some((Weight::Warning, text))
            }
            Event::ControlEnded => Some((Weight::Detail, "closed its control connection".to_owned())),
            Event::Finished => {
                facts.finished = true;
                self.first_finished.get_or_insert(id);
                Some((Weight::Note, "ended".to_owned()))
            }
            _ => None,
        };
        if let Some((weight, text)) = line {
            self.add_line(weight, format!("agent {number} {text}"));
        }
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
    use runtap_bytefrog_proto::{JavaString, Severity, Violation};

    use super::*;

    fn connected(watch: &Watch, agent: AgentId) {
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let event = Event::Connected { peer, dialect: Dialect::V1, project: Some(3), run: 9 };
        watch.handle_event(Some(agent), event);
    }

    #[test]
    fn the_queue_of_lines_is_bounded_and_left_out_lines_are_counted() {
        let watch = Watch::new(true);
        for number in 0..MAX_PENDING_LINES + 20 {
            watch.add_line(Weight::Detail, number.to_string());
        }
        let lines = watch.lines();
        assert_eq!(lines.len(), MAX_PENDING_LINES + 1);
        assert_eq!(
            lines.last().map(|line| line.text.as_str()),
            Some("20 lines left out: more came than could be shown")
        );
        assert!(watch.lines().is_empty());
        let curt = Watch::new(false);
        curt.add_line(Weight::Detail, "nobody asked".to_owned());
        assert!(curt.lines().is_empty());
    }

    #[test]
    fn warnings_about_one_rule_are_limited() {
        let (watch, agent) = (Watch::new(true), AgentId(0));
        connected(&watch, agent);
        for id in [Some(agent), None] {
            for _ in 0..100 {
                let violation = Violation::new(Rule::UnknownMode, "mode 0x39", Some(1));
                watch.handle_event(id, Event::Violation(violation));
            }
        }
        let warnings = watch.lines().into_iter().filter(|line| line.weight == Weight::Warning).count();
        assert_eq!(u64::try_from(warnings), Ok(2 * MAX_WARNINGS));
        assert!(!watch.is_partial());
        let broken = watch.facts(agent).unwrap().broken;
        assert_eq!(
            broken.rules().first().map(|finding| (finding.count, finding.first.len())),
            Some((100, 5))
        );
    }

    #[test]
    fn repeated_lines_about_an_agent_are_limited() {
        let (watch, agent) = (Watch::new(false), AgentId(0));
        connected(&watch, agent);
        watch.lines();
        let shown = |event: fn(u32) -> Event| {
            (0..200).for_each(|number| watch.handle_event(Some(agent), event(number)));
            watch.lines()
        };
        let process = |pid| {
            let [jvm, main] = [(); 2].map(|()| JavaString::from(""));
            Event::Process(AgentProcess { pid, wall: 0, resolution: 1, jvm, main })
        };
        for (lines, most) in [
            (shown(|n| Event::Heartbeat { mode: ModeByte(b"ST"[n as usize % 2]), queue: 0 }), 50),
            (shown(process), 50),
            (shown(|n| Event::Error(JavaString::from(n.to_string().as_str()))), 5),
        ] {
            let text = &lines.last().unwrap().text;
            assert!(lines.len() == most && text.ends_with(" (further ones are shown with --verbose only)"));
        }
        assert!(watch.is_partial());
    }

    #[test]
    fn rejected_connections_are_counted_and_each_reason_is_reported_once() {
        let watch = Watch::new(false);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        for cause in [RejectReason::Agents(64), RejectReason::Agents(64), RejectReason::Connections(200)] {
            watch.handle_event(None, Event::Rejected { peer, cause });
        }
        let lines: Vec<String> = watch.lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines,
            [
                "a connection from 127.0.0.1:1 was refused: 64 agents are traced, which is the limit",
                "a connection from 127.0.0.1:1 was refused: 200 connections are open, which is the limit",
            ]
        );
        assert_eq!((watch.refused(), watch.connected_agents()), (3, 0));
    }

    #[test]
    fn a_displaced_agent_is_named() {
        let (watch, agent) = (Watch::new(false), AgentId(4));
        connected(&watch, agent);
        let [jvm, main] = ["17", "shop/Main"].map(JavaString::from);
        let process = AgentProcess { pid: 77, wall: 0, resolution: 1, jvm, main };
        watch.handle_event(Some(agent), Event::Process(process));
        watch.lines();
        for (silent, why) in [(false, "its user had the most"), (true, "it had said nothing but hello")] {
            watch.handle_event(
                Some(agent),
                Event::Displaced { user: Some(65_534), newcomer: Some(0), silent },
            );
            let line = Line {
                weight: Weight::Warning,
                text: format!(
                    "agent 4, process 77 (shop/Main), of user 65534 was disconnected to make room for user 0: {why}"
                ),
            };
            assert_eq!(watch.lines(), [line]);
            assert_eq!(watch.displaced(), 1);
        }
    }

    /// A violation that makes the collector discard data of an agent makes the result partial.
    #[test]
    fn a_violation_that_loses_data_makes_the_result_partial() {
        for rule in Rule::ALL.iter().copied() {
            let (watch, agent) = (Watch::new(false), AgentId(0));
            connected(&watch, agent);
            watch.handle_event(None, Event::Violation(Violation::new(rule, "", None)));
            assert!(!watch.is_partial(), "{rule}: a connection that is no agent's");
            watch.handle_event(Some(agent), Event::Violation(Violation::new(rule, "", None)));
            let loses = rule.severity() == Severity::Error || rule == Rule::EndWithoutShutdown;
            assert_eq!(watch.is_partial(), loses, "{rule}");
        }
    }

    #[test]
    fn mode_changes_are_reported_and_old_agents_are_removed() {
        let watch = Watch::new(false);
        connected(&watch, AgentId(0));
        for mode in [b'I', b'T', b'T', b'T', b'?'] {
            watch.handle_event(Some(AgentId(0)), Event::Heartbeat { mode: ModeByte(mode), queue: 0 });
        }
        let texts: Vec<String> = watch.lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            texts,
            [
                "agent 0 connected from 127.0.0.1:1: version 1, run 9, project 3",
                "agent 0 is initializing",
                "agent 0 is tracing",
                "agent 0 is in the unknown mode 63",
            ]
        );
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
