//! Lines about the agents of a collector: what happens to them, and summaries from time to time.

use std::collections::BTreeMap;
use std::time::Instant;

use runtap_bytefrog::Counters;
use runtap_bytefrog::hq::{AgentId, Event, Hq};
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{ClassOutcome, ModeByte};
use runtap_jvm::agents::{AgentFacts, AgentSummary, AgentWatch, News, Notice, Weight};

use runtap_model::Message;

use crate::units::{Count, Things};

/// Removes the pending notices of a watch, and returns them as messages.
pub fn notice_messages(watch: &AgentWatch) -> Vec<Message> {
    watch.take_notices().iter().map(notice_message).collect()
}

fn notice_message(notice: &Notice) -> Message {
    let mut text = match notice.agent {
        Some(agent) => of_agent(agent, &notice.news),
        None => of_collector(&notice.news),
    };
    if notice.is_last {
        text.push_str(" (further ones are shown with --verbose only)");
    }
    match notice.weight {
        Weight::Detail => Message::Detail(text),
        Weight::Note => Message::Note(text),
        Weight::Warning => Message::Warning(text),
    }
}

fn of_collector(news: &News) -> String {
    match news {
        News::Event(Event::Violation(violation)) => format!("a connection was refused: {violation}"),
        News::Event(Event::UserRejected { peer, user }) => {
            let owner = describe_user(*user);
            format!("a connection was refused: it is of {owner} (from {peer}), who may not connect")
        }
        News::Event(Event::Rejected { peer, cause }) => {
            format!("a connection from {peer} was refused: {cause}")
        }
        News::LeftOut(count) => {
            format!("omitted {}: too many to show", Things(*count, "line"))
        }
        other => format!("{other:?}"),
    }
}

fn of_agent(AgentId(agent): AgentId, news: &News) -> String {
    let what = match news {
        News::Event(event) => of_event(event),
        News::AliveAgain(mode) => format!("lives again: {}", describe_mode(*mode)),
        News::DataClosed(open) => format!("closed a data connection: {open} open"),
        News::Displaced { process, user, newcomer, silent } => {
            let process = describe_process(process.as_ref());
            let comma = if process.is_empty() { "" } else { "," };
            let why = if *silent { "it had said nothing but hello" } else { "its user had the most" };
            let (user, newcomer) = (describe_user(*user), describe_user(*newcomer));
            return format!(
                "agent {agent}{process}{comma} of {user} was disconnected to make room for {newcomer}: {why}"
            );
        }
        News::Sent(command) => format!("received the command: {command}"),
        News::NotSent(command, error) => return format!("agent {agent}: {command}: {error}"),
        News::LeftOut(_) => return of_collector(news),
    };
    format!("agent {agent} {what}")
}

fn of_event(event: &Event) -> String {
    match event {
        Event::Connected { peer, dialect, project, run } => {
            let project = project.map_or_else(String::new, |project| format!(", project {project}"));
            format!("connected from {peer}: version {dialect}, run {run}{project}")
        }
        Event::Heartbeat { mode, .. } => format!("is {}", describe_mode(*mode)),
        Event::Class { outcome, name } => {
            let what = match outcome {
                ClassOutcome::Transformed => "traces",
                ClassOutcome::Ignored => "leaves alone",
                ClassOutcome::Failed => "can't trace",
            };
            format!("{what} {name}")
        }
        Event::Process(process) => {
            format!("is process {}{}, JVM {}", process.pid, main_class(process), process.jvm)
        }
        Event::Error(text) => format!("reports an error: {text}"),
        Event::NotConfigured(error) => format!("was sent away, without a configuration: {error}"),
        Event::Violation(violation) => format!("breaks {violation}"),
        Event::Data(open) => format!("opened a data connection: {open} open"),
        Event::RecordingFailed { connection, reason } => {
            format!("recording stopped ({connection}), but the trace continues: {reason}")
        }
        Event::ControlEnded => "closed its control connection".to_owned(),
        Event::Finished => "ended".to_owned(),
        other => format!("{other:?}"),
    }
}

fn describe_mode(mode: ModeByte) -> String {
    mode.mode().map_or_else(|| format!("in the unknown mode {}", mode.0), |mode| mode.to_string())
}

fn describe_user(user: Option<u32>) -> String {
    user.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"))
}

/// Returns the name of a program's main class in parentheses, or nothing if the agent was loaded too early to know it.
fn main_class(process: &AgentProcess) -> String {
    let main = process.main.to_string();
    if main.is_empty() { String::new() } else { format!(" ({main})") }
}

/// Returns `, process 12 (Main)`, as far as the agent has reported it.
fn describe_process(process: Option<&AgentProcess>) -> String {
    process.map_or_else(String::new, |process| format!(", process {}{}", process.pid, main_class(process)))
}

/// Returns the title of an agent's report.
pub fn agent_title(AgentId(agent): AgentId, facts: &AgentFacts) -> String {
    let process = describe_process(facts.process.as_ref());
    format!("Agent {agent}: version {}, run {}, {}{process}", facts.dialect, facts.run, facts.peer)
}

/// Summaries of agents from time to time: the mode and the calls since the previous summary. For agents that send
/// counts, the calls are taken from their snapshots.
#[derive(Debug)]
pub(super) struct AgentRates {
    before: BTreeMap<AgentId, u64>,
    at: Instant,
}

impl AgentRates {
    /// Starts counting at this time.
    pub(super) fn new(at: Instant) -> Self {
        Self { before: BTreeMap::new(), at }
    }

    /// Returns a line for each agent that has not ended.
    pub(super) fn lines(&mut self, hq: &Hq, watch: &AgentWatch, now: Instant) -> Vec<String> {
        let millis = now.duration_since(self.at).as_millis().max(1);
        self.at = now;
        let mut lines = Vec::new();
        for AgentSummary { status, facts, counters, waiting } in watch.summaries(hq) {
            let Some(facts) = facts.filter(|facts| !facts.finished) else {
                self.before.remove(&status.id);
                continue;
            };
            let before = self.before.insert(status.id, counters.calls()).unwrap_or(0);
            let rate = u128::from(counters.calls().saturating_sub(before)) * 1000 / millis;
            let queue = facts.last_heartbeat.map_or(0, |(_, queue)| queue);
            lines.push(format!(
                "agent {}: {}, {} ({}/s), {}{}{}{}",
                status.id.0,
                facts.last_heartbeat.and_then(|(mode, _)| mode.mode()).unwrap_or(status.state.mode),
                Things(counters.calls(), "call"),
                Count(u64::try_from(rate).unwrap_or(u64::MAX)),
                Things(counters.exceptions, "exception"),
                missing(&counters),
                if waiting > 0 {
                    format!(", {} ahead of others", Things(waiting as u64, "event"))
                } else {
                    String::new()
                },
                if queue > 0 {
                    format!(", {} wait in the program", Things(queue.into(), "buffer"))
                } else {
                    String::new()
                },
            ));
        }
        lines
    }
}

/// Returns the number of missing events as text; empty if none are missing.
fn missing(counters: &Counters) -> String {
    let lost = counters.missing.saturating_add(counters.dropped);
    if lost > 0 { format!(", {} missing", Things(lost, "event")) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use runtap_bytefrog::hq::RejectReason;
    use runtap_bytefrog_proto::{Command, Dialect, JavaString};

    use super::*;

    const AGENT: AgentId = AgentId(4);

    fn lines(watch: &AgentWatch) -> Vec<String> {
        notice_messages(watch).iter().map(|message| message.text().to_owned()).collect()
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    fn connected(details: bool) -> AgentWatch {
        let watch = AgentWatch::new(details);
        let event = Event::Connected { peer: peer(), dialect: Dialect::V1, project: Some(3), run: 9 };
        watch.handle_event(Some(AGENT), event);
        assert_eq!(lines(&watch), ["agent 4 connected from 127.0.0.1:1: version 1, run 9, project 3"]);
        watch
    }

    #[test]
    fn events_are_described() {
        let watch = connected(true);
        let heartbeat = |mode| Event::Heartbeat { mode: ModeByte(mode), queue: 0 };
        let class = |outcome| Event::Class { outcome, name: JavaString::from("a/B") };
        for event in [heartbeat(b'I'), heartbeat(b'?'), Event::Data(1), Event::Data(0)] {
            watch.handle_event(Some(AGENT), event);
        }
        for outcome in [ClassOutcome::Transformed, ClassOutcome::Ignored, ClassOutcome::Failed] {
            watch.handle_event(Some(AGENT), class(outcome));
        }
        watch.add(Notice::new(Weight::Note, AGENT, News::Sent(Command::Pause)));
        watch.add(Notice::new(Weight::Note, AGENT, News::NotSent(Command::Stop, "why".to_owned())));
        watch.add(Notice::new(Weight::Warning, None, News::LeftOut(20)));
        watch.handle_event(Some(AGENT), Event::Finished);
        assert_eq!(
            lines(&watch),
            [
                "agent 4 is initializing",
                "agent 4 is in the unknown mode 63",
                "agent 4 opened a data connection: 1 open",
                "agent 4 closed a data connection: 0 open",
                "agent 4 traces a/B",
                "agent 4 leaves alone a/B",
                "agent 4 can't trace a/B",
                "agent 4 received the command: pause",
                "agent 4: stop: why",
                "omitted 20 lines: too many to show",
                "agent 4 ended",
            ]
        );
    }

    #[test]
    fn the_last_of_repeated_lines_names_the_option_for_more() {
        let watch = connected(false);
        for number in 0..200 {
            watch.handle_event(Some(AGENT), Event::Error(JavaString::from(number.to_string().as_str())));
        }
        let last = "agent 4 reports an error: 4 (further ones are shown with --verbose only)";
        assert_eq!(lines(&watch).last().map(String::as_str), Some(last));
    }

    #[test]
    fn rejected_connections_are_reported_with_the_reason() {
        let watch = AgentWatch::new(false);
        for cause in [RejectReason::Agents(64), RejectReason::Connections(200)] {
            watch.handle_event(None, Event::Rejected { peer: peer(), cause });
        }
        watch.handle_event(None, Event::UserRejected { peer: peer(), user: None });
        assert_eq!(
            lines(&watch),
            [
                "a connection from 127.0.0.1:1 was refused: 64 agents are traced, which is the limit",
                "a connection from 127.0.0.1:1 was refused: 200 connections are open, which is the limit",
                "a connection was refused: it is of an unknown user (from 127.0.0.1:1), who may not connect",
            ]
        );
    }

    #[test]
    fn a_displaced_agent_is_named() {
        let watch = connected(false);
        let [jvm, main] = ["17", "shop/Main"].map(JavaString::from);
        let process = AgentProcess { pid: 77, wall: 0, resolution: 1, jvm, main };
        watch.handle_event(Some(AGENT), Event::Process(process));
        assert_eq!(lines(&watch), ["agent 4 is process 77 (shop/Main), JVM 17"]);
        let facts = watch.facts(AGENT).unwrap();
        let title = "Agent 4: version 1, run 9, 127.0.0.1:1, process 77 (shop/Main)";
        assert_eq!(agent_title(AGENT, &facts), title);
        for (silent, why) in [(false, "its user had the most"), (true, "it had said nothing but hello")] {
            let event = Event::Displaced { user: Some(65_534), newcomer: Some(0), silent };
            watch.handle_event(Some(AGENT), event);
            let line = format!(
                "agent 4, process 77 (shop/Main), of user 65534 was disconnected to make room for user 0: {why}"
            );
            assert_eq!(lines(&watch), [line]);
        }
    }
}
