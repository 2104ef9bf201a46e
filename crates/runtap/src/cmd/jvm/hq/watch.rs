//! What is known of agents beside their traces, and what is said of them.
//!
//! Owns: [`Watch`], which hears all events of HQ on the threads of its connections and never waits: lines wait in a queue of
//! bounded length until somebody takes them. How many were left out is said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtap_bytefrog::hq::{AgentId, Event, RejectReason};
use runtap_bytefrog_proto::{ClassOutcome, Dialect, ModeByte, Rule};
use runtap_text::units::Things;
use tokio::sync::Notify;

use super::super::document::Classes;
pub(in crate::cmd::jvm) use super::facts::Facts;
use super::facts::{Repeated, WARNINGS, named};

/// Lines that wait to be shown.
const WAITING: usize = 1000;
/// Agents that are remembered: more than HQ keeps, so that those which it no longer keeps are forgotten first.
const AGENTS: usize = 1000;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cmd::jvm) enum Weight {
    /// For the curious.
    Detail,
    Note,
    Warning,
}

/// Something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::jvm) struct Line {
    pub(in crate::cmd::jvm) weight: Weight,
    pub(in crate::cmd::jvm) text: String,
}

#[derive(Debug, Default)]
struct State {
    /// Whether what only the curious want is kept.
    details: bool,
    agents: BTreeMap<AgentId, Facts>,
    /// Agents that HQ no longer keeps. An agent may lose its place before `Connected` arrives.
    gone: BTreeSet<AgentId>,
    /// The classes of agents that were forgotten, and whether any of these was partial.
    forgotten_classes: Classes,
    forgotten_partial: bool,
    lines: VecDeque<Line>,
    left_out: u64,
    /// Connections that were no agent's, by what was wrong.
    strangers: BTreeMap<Rule, u64>,
    /// Connections of users who may not connect.
    others: u64,
    /// Why there was no room for connections, each cause once.
    causes: Vec<Discriminant<RejectReason>>,
    /// Connections for which there was no room.
    refused: u64,
    /// Agents that were disconnected to make room, and lines about them.
    displaced: u64,
    displacements: Repeated,
    /// The first agent whose connections have all ended.
    first_finished: Option<AgentId>,
    /// Agents that have said hello.
    seen: u64,
}

/// What is known, and what is to be said.
#[derive(Debug)]
pub(in crate::cmd::jvm) struct Watch {
    state: Mutex<State>,
    /// Something has happened.
    pub(in crate::cmd::jvm) news: Notify,
}

fn mode(mode: ModeByte) -> String {
    mode.mode().map_or_else(|| format!("in the unknown mode {}", mode.0), |mode| mode.to_string())
}

fn whose(user: Option<u32>) -> String {
    user.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"))
}

impl Watch {
    /// One that has heard nothing; with what only the curious want, or without.
    pub(in crate::cmd::jvm) fn new(details: bool) -> Self {
        Self { state: Mutex::new(State { details, ..State::default() }), news: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has happened at an agent, or at a connection that is no agent's.
    pub(in crate::cmd::jvm) fn hear(&self, agent: Option<AgentId>, event: Event) {
        {
            let mut state = self.lock();
            match agent {
                Some(id) => state.hear(id, event),
                None => state.stranger(&event),
            }
        }
        self.news.notify_one();
    }

    /// Says something in its turn.
    pub(in crate::cmd::jvm) fn say(&self, weight: Weight, text: String) {
        self.lock().say(weight, text);
        self.news.notify_one();
    }

    /// The lines that wait.
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

    /// What is known of an agent.
    pub(in crate::cmd::jvm) fn facts(&self, agent: AgentId) -> Option<Facts> {
        self.lock().agents.get(&agent).cloned()
    }

    /// Classes of all agents.
    pub(in crate::cmd::jvm) fn classes(&self) -> Classes {
        let state = self.lock();
        state.agents.values().fold(state.forgotten_classes, |sum, facts| sum.and(facts.classes))
    }

    /// Whether any agent's connections have all ended.
    pub(in crate::cmd::jvm) fn one_has_finished(&self) -> bool {
        self.lock().first_finished.is_some()
    }

    /// Whether there was an agent, and all that there were have ended.
    #[cfg_attr(not(unix), expect(dead_code, reason = "for the live view"))]
    pub(in crate::cmd::jvm) fn all_have_finished(&self) -> bool {
        let state = self.lock();
        !state.agents.is_empty() && state.agents.values().all(|facts| facts.finished)
    }

    /// Whether an agent has ended without saying that it would, or was never heard to its end.
    pub(in crate::cmd::jvm) fn is_partial(&self) -> bool {
        let state = self.lock();
        state.forgotten_partial || state.agents.values().any(|facts| facts.partial)
    }

    /// Connections for which there was no room: what they would have brought is in no report.
    pub(in crate::cmd::jvm) fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// Agents that were disconnected to make room, although they had begun to trace.
    pub(in crate::cmd::jvm) fn displaced(&self) -> u64 {
        self.lock().displaced
    }

    /// Connections of users who may not connect.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "for verbs that are only on Linux"))]
    pub(in crate::cmd::jvm) fn others(&self) -> u64 {
        self.lock().others
    }

    /// Agents that have said hello.
    pub(in crate::cmd::jvm) fn seen(&self) -> u64 {
        self.lock().seen
    }
}

impl State {
    fn say(&mut self, weight: Weight, text: String) {
        if weight == Weight::Detail && !self.details {
            return;
        }
        if self.lines.len() < WAITING {
            self.lines.push_back(Line { weight, text });
        } else {
            self.left_out += 1;
        }
    }

    /// A connection that is no agent's.
    fn stranger(&mut self, event: &Event) {
        let (count, why) = match event {
            Event::Violation(violation) => {
                (self.strangers.entry(violation.rule).or_default(), violation.to_string())
            }
            Event::UserRejected { peer, user } => {
                let whose = whose(*user);
                (&mut self.others, format!("it is of {whose} (from {peer}), who may not connect"))
            }
            Event::Rejected { peer, cause } => return self.refuse(*peer, *cause),
            _ => return,
        };
        *count += 1;
        let weight = if *count <= WARNINGS { Weight::Warning } else { Weight::Detail };
        self.say(weight, format!("a connection was refused: {why}"));
    }

    /// A connection for which there was no room. Each cause is said once; how many there were, at the end.
    fn refuse(&mut self, peer: SocketAddr, cause: RejectReason) {
        self.refused += 1;
        let is_new = !self.causes.contains(&discriminant(&cause));
        if is_new {
            self.causes.push(discriminant(&cause));
        }
        let weight = if is_new { Weight::Warning } else { Weight::Detail };
        self.say(weight, format!("a connection from {peer} was refused: {cause}"));
    }

    fn hear(&mut self, id: AgentId, event: Event) {
        let number = id.0;
        if let Event::Connected { peer, dialect, project, run } = event {
            self.connected(id, peer, dialect, run);
            let project = project.map_or_else(String::new, |project| format!(", project {project}"));
            return self.say(
                Weight::Note,
                format!("agent {number} connected from {peer}: version {dialect}, run {run}{project}"),
            );
        }
        if matches!(event, Event::Replaced | Event::Displaced { .. }) {
            self.gone.insert(id);
            // Limits the ids of agents whose facts were dropped before.
            if self.gone.len() > 2 * AGENTS {
                self.gone.pop_first();
            }
        }
        let Some(facts) = self.agents.get_mut(&id) else { return };
        let line = match event {
            Event::Heartbeat { mode: now, queue } => {
                let before = facts.said.replace((now, queue));
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
                // A program has thousands.
                let weight = if *count > WARNINGS { Weight::Detail } else { weight };
                // Other threads wait for this lock: only lines that are shown are formatted.
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
                let (user, newcomer) = (whose(user), whose(newcomer));
                let text = format!(
                    "agent {number}{process}{comma} of {user} was disconnected to make room for {newcomer}: {why}"
                );
                let (weight, text) = self.displacements.line(Weight::Warning, text);
                return self.say(weight, text);
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
            self.say(weight, format!("agent {number} {text}"));
        }
    }

    fn connected(&mut self, id: AgentId, peer: SocketAddr, dialect: Dialect, run: u8) {
        self.seen += 1;
        while self.agents.len() >= AGENTS {
            let gone = self.gone.iter().find(|gone| self.agents.contains_key(gone)).copied();
            let Some(first) = gone.or_else(|| self.agents.keys().next().copied()) else { break };
            self.gone.remove(&first);
            let Some(facts) = self.agents.remove(&first) else { break };
            self.forgotten_classes = self.forgotten_classes.and(facts.classes);
            self.forgotten_partial |= facts.partial;
        }
        self.agents.insert(id, Facts::new(peer, dialect, run));
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
        watch.hear(Some(agent), event);
    }

    #[test]
    fn lines_have_a_limit_and_what_is_left_out_is_counted() {
        let watch = Watch::new(true);
        for number in 0..WAITING + 20 {
            watch.say(Weight::Detail, number.to_string());
        }
        let lines = watch.lines();
        assert_eq!(lines.len(), WAITING + 1);
        assert_eq!(
            lines.last().map(|line| line.text.as_str()),
            Some("20 lines left out: more came than could be shown")
        );
        assert!(watch.lines().is_empty());
        let curt = Watch::new(false);
        curt.say(Weight::Detail, "nobody asked".to_owned());
        assert!(curt.lines().is_empty());
    }

    #[test]
    fn a_rule_that_is_broken_again_and_again_is_warned_of_a_few_times() {
        let (watch, agent) = (Watch::new(true), AgentId(0));
        connected(&watch, agent);
        for id in [Some(agent), None] {
            for _ in 0..100 {
                let violation = Violation::new(Rule::UnknownMode, "mode 0x39", Some(1));
                watch.hear(id, Event::Violation(violation));
            }
        }
        let warnings = watch.lines().into_iter().filter(|line| line.weight == Weight::Warning).count();
        assert_eq!(u64::try_from(warnings), Ok(2 * WARNINGS));
        assert!(!watch.is_partial());
        let broken = watch.facts(agent).unwrap().broken;
        assert_eq!(
            broken.rules().first().map(|finding| (finding.count, finding.first.len())),
            Some((100, 5))
        );
    }

    #[test]
    fn of_what_an_agent_repeats_the_first_lines_are_shown() {
        let (watch, agent) = (Watch::new(false), AgentId(0));
        connected(&watch, agent);
        watch.lines();
        let shown = |event: fn(u32) -> Event| {
            (0..200).for_each(|number| watch.hear(Some(agent), event(number)));
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
    fn refused_connections_are_counted_and_each_cause_is_said_once() {
        let watch = Watch::new(false);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        for cause in [RejectReason::Agents(64), RejectReason::Agents(64), RejectReason::Connections(200)] {
            watch.hear(None, Event::Rejected { peer, cause });
        }
        let lines: Vec<String> = watch.lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines,
            [
                "a connection from 127.0.0.1:1 was refused: 64 agents are traced, which is the limit",
                "a connection from 127.0.0.1:1 was refused: 200 connections are open, which is the limit",
            ]
        );
        assert_eq!((watch.refused(), watch.seen()), (3, 0));
    }

    #[test]
    fn an_agent_that_makes_room_is_named() {
        let (watch, agent) = (Watch::new(false), AgentId(4));
        connected(&watch, agent);
        let [jvm, main] = ["17", "shop/Main"].map(JavaString::from);
        let process = AgentProcess { pid: 77, wall: 0, resolution: 1, jvm, main };
        watch.hear(Some(agent), Event::Process(process));
        watch.lines();
        for (silent, why) in [(false, "its user had the most"), (true, "it had said nothing but hello")] {
            watch.hear(Some(agent), Event::Displaced { user: Some(65_534), newcomer: Some(0), silent });
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

    /// Whatever makes HQ throw away what an agent says makes the result partial.
    #[test]
    fn a_rule_whose_breach_loses_something_makes_the_result_partial() {
        for rule in Rule::ALL.iter().copied() {
            let (watch, agent) = (Watch::new(false), AgentId(0));
            connected(&watch, agent);
            watch.hear(None, Event::Violation(Violation::new(rule, "", None)));
            assert!(!watch.is_partial(), "{rule}: a connection that is no agent's");
            watch.hear(Some(agent), Event::Violation(Violation::new(rule, "", None)));
            let loses = rule.severity() == Severity::Error || rule == Rule::EndWithoutShutdown;
            assert_eq!(watch.is_partial(), loses, "{rule}");
        }
    }

    #[test]
    fn modes_are_told_when_they_change_and_agents_are_forgotten() {
        let watch = Watch::new(false);
        connected(&watch, AgentId(0));
        for mode in [b'I', b'T', b'T', b'T', b'?'] {
            watch.hear(Some(AgentId(0)), Event::Heartbeat { mode: ModeByte(mode), queue: 0 });
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
        watch.hear(Some(AgentId(0)), Event::Finished);
        assert!(watch.one_has_finished());
        for number in 1..=u32::try_from(AGENTS).unwrap() {
            connected(&watch, AgentId(number));
        }
        assert!(watch.facts(AgentId(0)).is_none() && watch.facts(AgentId(1)).is_some());
        // Those that HQ no longer keeps go first, and what was wrong with them is remembered.
        watch.hear(Some(AgentId(7)), Event::Error("broken".into()));
        watch.hear(Some(AgentId(7)), Event::Replaced);
        assert!(watch.facts(AgentId(7)).is_some());
        connected(&watch, AgentId(2000));
        assert!(watch.facts(AgentId(7)).is_none() && watch.facts(AgentId(1)).is_some() && watch.is_partial());
        // Also those that lost their place before they were told.
        watch.hear(Some(AgentId(3000)), Event::Displaced { user: None, newcomer: None, silent: true });
        connected(&watch, AgentId(3000));
        connected(&watch, AgentId(3001));
        assert!(watch.facts(AgentId(3000)).is_none() && watch.facts(AgentId(1)).is_none());
        // Of one that is not known nothing is kept.
        watch.hear(Some(AgentId(5000)), Event::Finished);
        assert!(watch.facts(AgentId(5000)).is_none());
    }
}
