//! An HQ on a loopback address, and its events.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use runtap_bytefrog::hq::{AgentId, Event, Hq, Options};
use runtap_bytefrog_proto::{Configuration, Dialect, Message, Rule, Stamp};
use runtap_testkit::fake_agent::say;

/// A time-out that no test reaches.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) type Heard = Receiver<(Option<AgentId>, Event)>;

pub(crate) fn hq(options: Options) -> (Hq, Heard) {
    let (sender, receiver) = channel();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let hq = Hq::listen(loopback, options, move |agent, event| {
        let _ = sender.send((agent, event));
    });
    (hq.expect("a free port"), receiver)
}

pub(crate) fn filters() -> Configuration {
    Configuration {
        heartbeat_interval: 500,
        exclusions: vec![".*".into()],
        inclusions: vec!["^demo/".into()],
        ..Configuration::default()
    }
}

/// Returns all events up to and including the one that satisfies a predicate.
pub(crate) fn until(
    heard: &Heard,
    mut wanted: impl FnMut(Option<AgentId>, &Event) -> bool,
) -> Vec<(Option<AgentId>, Event)> {
    let began = Instant::now();
    let mut all = Vec::new();
    while began.elapsed() < LONG {
        let Ok((agent, event)) = heard.recv_timeout(LONG) else { break };
        let last = wanted(agent, &event);
        all.push((agent, event));
        if last {
            return all;
        }
    }
    panic!("it did not come: {all:#?}")
}

pub(crate) fn finished(heard: &Heard, id: u32) -> Vec<Rule> {
    let mut all = until(heard, |agent, event| agent == Some(AgentId(id)) && *event == Event::Finished);
    // Others end when they do.
    all.retain(|(agent, _)| *agent == Some(AgentId(id)));
    // Agents of these tests are late only if the machine is slow.
    let mut rules = violations(&all);
    rules.retain(|rule| !matches!(rule, Rule::HeartbeatMissing | Rule::ModeNotFollowed));
    rules
}

pub(crate) fn violations(all: &[(Option<AgentId>, Event)]) -> Vec<Rule> {
    let rule = |(_, event): &(_, Event)| match event {
        Event::Violation(violation) => Some(violation.rule),
        _ => None,
    };
    all.iter().filter_map(rule).collect()
}

pub(crate) fn entry(sequence: u32, method: u32) -> Vec<u8> {
    let at = Stamp { time: 0, sequence: sequence.into(), thread: 0 };
    say(Dialect::V1, &Message::Entry { at, method })
}
