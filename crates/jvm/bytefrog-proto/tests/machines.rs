//! The state machines of both sides, with valid and invalid input.

use std::time::Duration;

use runtap_bytefrog_proto::{
    AgentState, Command, Configuration, Dialect, JavaString, Message, Mode, Rule, agent, hq, to_bytes,
};

const NOW: Duration = Duration::from_secs(100);

fn ms(after: u64) -> Duration {
    NOW + Duration::from_millis(after)
}

fn rules(output: &hq::Output) -> Vec<Rule> {
    output.violations().map(|violation| violation.rule).collect()
}

fn error(text: &str) -> Vec<u8> {
    let text: JavaString = text.into();
    to_bytes(&Message::Error { text: text.as_java_str() }, Dialect::V1).expect("short")
}

fn beat(mode: Mode) -> Vec<u8> {
    vec![8, mode.byte().0, 0, 0]
}

/// Returns an HQ whose agent has said hello and has got the default configuration, with a heartbeat each second.
fn configured(version: u8) -> hq::Control {
    let mut control = hq::Control::new(hq::Settings::default(), NOW);
    assert!(matches!(control.handle_bytes(&[0, version], NOW).events[..], [hq::Event::Hello { .. }]));
    control.configure(&Configuration::default()).expect("after hello");
    control
}

fn agent(dialect: Dialect) -> agent::Control {
    let mut control = agent::Control::new(dialect);
    control.hello(None).expect("the first");
    let bytes = Configuration::default().to_message(dialect).expect("short");
    let output = control.handle_bytes(&bytes);
    assert!(matches!(output.events[..], [agent::Event::Configured(_)]));
    control
}

#[test]
fn an_unknown_version_is_refused_as_the_original_does() {
    for hello in [&[0u8, 5][..], &[0, 0], &[0x10, 1, 0, 0, 0, 0]] {
        let mut control = hq::Control::new(hq::Settings::default(), NOW);
        let output = control.handle_bytes(hello, NOW);
        assert_eq!(rules(&output), [Rule::UnknownVersion], "{hello:?}");
        assert_eq!((output.transmit, output.close), (error("Invalid Protocol Version"), true));
        assert_eq!(control.handle_bytes(&[8, b'T', 0, 0], NOW), hq::Output::default());
        assert_eq!(control.configure(&Configuration::default()), Err(hq::CommandError::Closed));
    }
}

#[test]
fn an_f1_agent_says_hello_again_to_an_hq_that_does_not_know_it() {
    let old = hq::Settings { dialects: vec![Dialect::V1, Dialect::V4], ..hq::Settings::default() };
    let mut first = agent::Control::new(Dialect::F1);
    let mut control = hq::Control::new(old.clone(), NOW);
    let refused = control.handle_bytes(&first.hello(None).expect("the first"), NOW);
    assert!(refused.close);
    let output = first.handle_bytes(&refused.transmit);
    let [agent::Event::Rejected { text, fallback: Some(fallback) }] = &output.events[..] else {
        panic!("{output:?}")
    };
    assert!(hq::is_version_rejected(text.as_java_str()) && output.close && output.transmit.is_empty());
    let mut second = agent::Control::new(*fallback);
    let mut control = hq::Control::new(old, NOW);
    let output = control.handle_bytes(&second.hello(None).expect("the first"), NOW);
    assert_eq!(output.events, [hq::Event::Hello { dialect: Dialect::V1, project: None }]);
    let bytes = control.configure(&Configuration::default()).expect("after hello");
    assert!(matches!(second.handle_bytes(&bytes).events[..], [agent::Event::Configured(_)]));
    assert_eq!(second.dialect(), Dialect::V1);
    // The agent finds each HQ's version, unless HQ rejects it for another reason.
    for known in [Dialect::V1, Dialect::V2, Dialect::V3, Dialect::V4] {
        let (mut dialect, mut tried) = (Dialect::F1, Vec::new());
        while dialect != known {
            tried.push(dialect);
            let settings = hq::Settings { dialects: vec![known], ..hq::Settings::default() };
            let mut agent = agent::Control::new(dialect);
            let hello = agent.hello(None).expect("the first");
            let refused = hq::Control::new(settings, NOW).handle_bytes(&hello, NOW);
            let output = agent.handle_bytes(&refused.transmit);
            let [agent::Event::Rejected { fallback: Some(fallback), .. }] = &output.events[..] else {
                panic!("{output:?}")
            };
            dialect = *fallback;
        }
        let order = [Dialect::F1, Dialect::V1, Dialect::V4, Dialect::V3];
        assert!(order.starts_with(&tried), "{known}: {tried:?}");
    }
    let output = agent::Control::new(Dialect::V2).handle_bytes(&error("Invalid Protocol Version"));
    assert!(matches!(output.events[..], [agent::Event::Rejected { fallback: None, .. }]));
    let output = agent::Control::new(Dialect::V1).handle_bytes(&error("no"));
    assert_eq!(output.events, [agent::Event::Rejected { text: "no".into(), fallback: None }]);
}

#[test]
fn what_comes_before_its_time() {
    let mut control = hq::Control::new(hq::Settings::default(), NOW);
    let output = control.handle_bytes(&beat(Mode::Tracing), NOW);
    assert_eq!((rules(&output), output.close), (vec![Rule::BeforeHello], true));
    assert_eq!(output.transmit, error("Unexpected Input Format"));

    let mut control = hq::Control::new(hq::Settings::default(), NOW);
    assert_eq!(control.command(Command::Start, NOW), Err(hq::CommandError::NoHello));
    let output = control.handle_bytes(&[&[0, 1][..], &beat(Mode::Initializing)].concat(), NOW);
    assert_eq!((rules(&output), output.close), (vec![Rule::BeforeConfiguration], false));
    assert_eq!(control.command(Command::Start, NOW), Err(hq::CommandError::NotConfigured));

    let mut control = configured(1);
    assert_eq!(rules(&control.handle_bytes(&[0, 1], NOW)), [Rule::SecondHello]);
    let mut control = configured(1);
    assert_eq!(rules(&control.handle_bytes(&[0x33], NOW)), [Rule::Undecodable]);
    let mut control = configured(0xf1);
    let output = control.handle_bytes(&beat(Mode::Initializing), NOW);
    assert_eq!((rules(&output), output.close), (vec![Rule::BeforeProcess], false));
}

#[test]
fn commands_that_the_agent_would_die_of_are_not_sent() {
    let mut control = configured(1);
    let illegal = |error: Result<Vec<u8>, hq::CommandError>, text: &str| {
        assert_eq!(error.expect_err(text).to_string(), text);
    };
    illegal(
        control.command(Command::Stop, NOW),
        "stop is not possible: the agent is initializing, before start",
    );
    illegal(
        control.command(Command::Pause, NOW),
        "pause is not possible: the agent is initializing, before start",
    );
    // Suspended from the start.
    assert_eq!(control.command(Command::Suspend, NOW), Ok(vec![6]));
    assert_eq!(control.configure(&Configuration::default()).map(|bytes| bytes[0]), Ok(1));
    assert_eq!(control.command(Command::Start, NOW), Ok(vec![2]));
    assert_eq!(control.state(), AgentState { mode: Mode::Suspended, started: true });
    illegal(control.command(Command::Pause, NOW), "pause is not possible: the agent is suspended");
    illegal(control.command(Command::Start, NOW), "start is not possible: the agent is suspended");
    illegal(control.configure(&Configuration::default()), "the configuration cannot be changed after start");
    assert_eq!(control.change_mode(Mode::Paused, NOW), Ok(vec![7, 4]));
    assert_eq!(control.change_mode(Mode::Suspended, NOW), Ok(vec![5, 6]));
    assert_eq!(control.change_mode(Mode::Suspended, NOW), Ok(vec![]));
    illegal(
        control.change_mode(Mode::Initializing, NOW),
        "no command changes the mode from suspended to initializing",
    );
    illegal(control.snapshot(false), "version 1 of the protocol does not support this");
    assert_eq!(control.change_mode(Mode::ShuttingDown, NOW), Ok(vec![3]));
    illegal(
        control.command(Command::Unsuspend, NOW),
        "unsuspend is not possible: the agent is shutting down",
    );
    assert_eq!(configured(0xf1).snapshot(true), Ok(vec![0x76, 1]));
}

#[test]
fn the_watch_over_heartbeats() {
    let mut control = configured(1);
    assert_eq!(control.next_timeout(), Some(ms(3001)));
    assert_eq!(control.handle_timeout(ms(3000)), []);
    let late = control.handle_timeout(ms(3001));
    assert_eq!(
        late[0].to_string(),
        "FROG014: no heartbeat arrived for three intervals: none for 3001 ms, expected every 1000 ms"
    );
    // Reported once, until the next heartbeat.
    assert_eq!((control.handle_timeout(ms(9000)), control.next_timeout()), (vec![], None));
    control.handle_bytes(&beat(Mode::Initializing), ms(10_000));
    assert_eq!(control.handle_timeout(ms(13_001))[0].rule, Rule::HeartbeatMissing);

    let mut control = configured(1);
    control.command(Command::Start, NOW).expect("legal");
    control.handle_bytes(&beat(Mode::Initializing), ms(1000));
    control.handle_bytes(&beat(Mode::Initializing), ms(2000));
    assert_eq!(control.handle_timeout(ms(2000)), []);
    let wrong = control.handle_timeout(ms(2001));
    assert_eq!(wrong[0].rule, Rule::ModeNotFollowed);
    assert_eq!(control.handle_timeout(ms(2500)), []);

    let mut control = configured(1);
    control.command(Command::Start, NOW).expect("legal");
    control.handle_bytes(&beat(Mode::Tracing), ms(1000));
    control.handle_bytes(&beat(Mode::Tracing), ms(2000));
    assert_eq!(control.handle_timeout(ms(4000)), []);
    let mut hasty = configured(1);
    let all = hasty.configure(&Configuration { heartbeat_interval: 10, ..Configuration::default() });
    // The agent is in the middle of its previous interval.
    assert!(all.is_ok() && hasty.handle_timeout(ms(3000)).is_empty());
    hasty.handle_bytes(&beat(Mode::Initializing), ms(3000));
    assert_eq!(hasty.next_timeout(), Some(ms(3031)));
    assert_eq!(hasty.handle_timeout(ms(3031))[0].rule, Rule::HeartbeatMissing);
}

#[test]
fn heartbeats_that_say_something_odd() {
    let mut control = configured(1);
    assert_eq!(rules(&control.handle_bytes(&[8, b'?', 0, 0], NOW)), [Rule::UnknownMode]);
    // The program exits: its agent reports that, and accepts no more commands.
    control.command(Command::Start, NOW).expect("legal");
    assert_eq!(rules(&control.handle_bytes(&beat(Mode::ShuttingDown), NOW)), []);
    assert!(control.command(Command::Pause, NOW).is_err());
    assert_eq!(rules(&control.handle_bytes(&beat(Mode::Tracing), NOW)), [Rule::ModeAfterShutdown]);
    let ends: Vec<Rule> = control.handle_close().iter().map(|violation| violation.rule).collect();
    assert_eq!(ends, [Rule::EndWithoutShutdown]);
    let mut control = configured(1);
    control.handle_bytes(&[8, b'X'], NOW);
    let ends: Vec<Rule> = control.handle_close().iter().map(|violation| violation.rule).collect();
    assert_eq!(ends, [Rule::CutMessage, Rule::EndWithoutShutdown]);
    let mut control = configured(1);
    assert_eq!(rules(&control.handle_bytes(&[0x28, 0, 2, 0xff, b'a'], NOW)), [Rule::Text]);
}

#[test]
fn data_connections() {
    let known = |run| (run == 7).then_some(Dialect::V1);
    let mut data = hq::Data::new();
    let output = data.handle_bytes(&[0x1e, 8], known, |_, _| panic!("no message"));
    assert_eq!(output.violations[0].rule, Rule::UnknownRun);
    assert!(output.close && output.transmit.starts_with(&[99]));
    let mut data = hq::Data::new();
    let output = data.handle_bytes(&[0x14], known, |_, _| panic!("no message"));
    assert_eq!((output.violations[0].rule, output.close), (Rule::BeforeHello, true));
    let entry = [0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut data = hq::Data::new();
    let mut count = 0;
    let output = data.handle_bytes(&[&[0x1e, 7][..], &entry, &entry[..3]].concat(), known, |_, _| count += 1);
    assert_eq!((output.transmit, output.close, count), (vec![0x1f], false, 1));
    assert_eq!(output.violations[0].rule, Rule::BeforeReply);
    assert_eq!(
        data.handle_close().map(|violation| violation.to_string()),
        Some("FROG002: the connection ended in the middle of a message: 3 bytes of a message".to_owned())
    );
    let mut data = hq::Data::new();
    data.handle_bytes(&[0x1e, 7], known, |_, _| {});
    assert_eq!(data.handle_bytes(&[0x1e, 7], known, |_, _| {}).violations[0].rule, Rule::SecondHello);
    let mut side = agent::Data::new(Dialect::V1);
    assert_eq!(side.handle_bytes(&[0x1f]), Some(agent::Reply::Ready));
    assert!(matches!(side.handle_bytes(&[0x1f]), Some(agent::Reply::Violation(_))));
    assert_eq!(
        agent::Data::new(Dialect::V1).handle_bytes(&error("no")),
        Some(agent::Reply::Rejected { text: "no".into() })
    );
}

#[test]
fn an_agent_ends_on_what_is_illegal_and_says_why() {
    for (commands, last) in [
        (&[Command::Stop][..], AgentState::NEW),
        (&[Command::Start, Command::Unpause], AgentState { mode: Mode::Tracing, started: true }),
        (
            &[Command::Start, Command::Suspend, Command::Pause],
            AgentState { mode: Mode::Suspended, started: true },
        ),
        (&[Command::Start, Command::Start], AgentState { mode: Mode::Tracing, started: true }),
    ] {
        let mut control = agent(Dialect::V1);
        let (illegal, legal) = commands.split_last().expect("one at least");
        for command in legal {
            assert!(!control.handle_bytes(&[command.id()]).close);
        }
        assert_eq!(control.state(), last);
        let output = control.handle_bytes(&[illegal.id(), 2, 2]);
        let [agent::Event::Violation(violation)] = &output.events[..] else { panic!("{output:?}") };
        assert_eq!(violation.rule, Rule::IllegalCommand);
        assert_eq!((output.close, output.transmit), (true, error(&violation.to_string())));
        assert_eq!(control.state().mode, Mode::ShuttingDown);
    }
    let mut control = agent(Dialect::V4);
    control.handle_bytes(&[2]);
    let late = Configuration::default().to_message(Dialect::V4).expect("short");
    let output = control.handle_bytes(&late);
    assert!(matches!(&output.events[..], [agent::Event::Violation(v)] if v.rule == Rule::LateConfiguration));
    let output = agent::Control::new(Dialect::V4).handle_bytes(&[1, 0, 1, b'{']);
    assert!(matches!(&output.events[..], [agent::Event::Violation(v)] if v.rule == Rule::Configuration));
    let output = agent::Control::new(Dialect::V1).handle_bytes(&[2]);
    assert!(matches!(&output.events[..], [agent::Event::Violation(v)] if v.rule == Rule::IllegalCommand));
}

#[test]
fn an_agent_says_an_error_back_and_ignores_what_comes_while_it_shuts_down() {
    let mut control = agent(Dialect::V1);
    control.handle_bytes(&[2]);
    let output = control.handle_bytes(&error("boom"));
    assert_eq!(output.events, [agent::Event::Error { text: "boom".into() }]);
    assert_eq!((output.transmit, output.close), (error("received error from HQ: boom"), true));
    let mut control = agent(Dialect::V1);
    control.handle_bytes(&[2]);
    control.shut_down();
    assert_eq!(control.handle_bytes(&[5, 7, 3]), agent::Output::default());
    assert_eq!(control.heartbeat(3), Ok(vec![8, b'X', 0, 3]));
    let early = agent::Control::new(Dialect::V1);
    assert_eq!(
        early.heartbeat(0).expect_err("too early").to_string(),
        "a heartbeat must not be sent before the configuration"
    );
    assert!(control.data_break(7).is_ok() && agent(Dialect::F1).data_break(7).is_err());
    assert_eq!(agent(Dialect::F1).handle_bytes(&[0x76, 0]).events, [agent::Event::Snapshot { reset: false }]);
}
