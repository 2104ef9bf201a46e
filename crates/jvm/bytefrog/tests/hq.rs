//! An HQ on a loopback address, with well-behaved agents.

mod common;

use std::time::Instant;

use common::{LONG, entry, filters, finished, hq, until, violations};
use runtap_bytefrog::Limits;
use runtap_bytefrog::hq::{AgentId, Event, Options};
use runtap_bytefrog_proto::agent::Reply;
use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Process, Rows};
use runtap_bytefrog_proto::{Command, Configuration, Dialect, Exit, JavaStr, Message, Mode, Rule, Stamp};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded, say};
use runtap_testkit::{eventually, require};

#[test]
fn recorded_agents_are_served_and_counted() {
    for (scenario, entries) in [
        ("v1_basic", 2542),
        ("v1_class17", 2),
        ("v1_lambda", 12),
        ("v1_pause", 196),
        ("v1_reconfigure", 59),
        ("v1_suspend", 195),
        ("v4_basic", 2542),
        ("v4_project_hello", 42),
        ("v4_suspend", 149),
    ] {
        let (dialect, steps) = require!(recorded(scenario));
        let (hq, heard) = hq(Options { configuration: filters(), ..Options::default() });
        let mut agent = FakeAgent::connect(hq.address(), dialect).expect("HQ listens");
        agent.run(&steps).unwrap_or_else(|error| panic!("{scenario}: {error}"));
        assert_eq!(finished(&heard, 0), [], "{scenario}");
        let report = hq.report(AgentId(0)).expect("it is kept");
        assert_eq!(report.counters.entries, entries, "{scenario}");
        assert_eq!((report.counters.missing, report.counters.repeated), (0, 0), "{scenario}");
        // The configuration in one piece, and then only start.
        let expected = Configuration { run: 0, ..filters() }.to_message(dialect).expect("short");
        assert_eq!(agent.heard, [expected, vec![2]].concat(), "{scenario}");
        let state = &hq.agents()[0];
        assert_eq!((state.ended, state.data, state.state.mode), (true, 0, Mode::ShuttingDown));
    }
}

#[test]
fn commands_from_the_outside() {
    use Command::{Pause, Start, Stop, Suspend, Unpause, Unsuspend};
    let (hq, heard) = hq(Options { initial_mode: None, ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)]).expect("served");
    until(&heard, |_, event| matches!(event, Event::Heartbeat { .. }));
    let id = AgentId(0);
    assert!(hq.change_mode(AgentId(7), Mode::Tracing).is_err());
    let early = hq.command(id, Stop).expect_err("it would hang");
    assert_eq!(early.to_string(), "stop is not possible: the agent is initializing, before start");
    hq.configure(id, |configuration| *configuration = filters()).expect("before start");
    agent.run(&[Step::AwaitConfiguration]).expect("the second");
    assert_eq!(agent.configurations[1].inclusions, filters().inclusions);
    assert_eq!(agent.configurations[1].run, agent.configurations[0].run);
    for mode in
        [Mode::Suspended, Mode::Paused, Mode::Tracing, Mode::Suspended, Mode::Tracing, Mode::ShuttingDown]
    {
        hq.change_mode(id, mode).expect("there is a way");
    }
    agent.run(&[Step::Await(Stop)]).expect("the last one");
    assert_eq!(agent.commands, [Suspend, Start, Unsuspend, Pause, Unpause, Suspend, Unsuspend, Stop]);
    assert_eq!(agent.errors, Vec::<String>::new());
    assert_eq!(
        hq.configure(id, |configuration| *configuration = filters()).expect_err("too late").to_string(),
        "the configuration cannot be changed after start"
    );
    assert!(hq.snapshot(id, false).is_err());
    hq.fail(id, "enough").expect("an error can always be said");
    agent.run(&[Step::AwaitEnd]).expect("it hears it");
    assert_eq!(agent.errors, ["enough"]);
    let began = Instant::now();
    hq.close();
    assert!(began.elapsed() < LONG);
    assert!(FakeAgent::connect(hq.address(), Dialect::V1).is_err());
}

#[test]
fn an_agent_of_f1() {
    let (hq, heard) = hq(Options::default());
    let mut agent = FakeAgent::connect(hq.address(), Dialect::F1).expect("HQ listens");
    let text = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
    let process = Process { pid: 42, wall: 0, resolution: 1, jvm: text("17"), main: text("demo.Main") };
    let rows = [(BatchKind::Entry, 0), (BatchKind::Exit, 1500)]
        .map(|(kind, delta)| BatchEvent { kind, method: 3, delta }.to_bytes());
    let batch = Batch { thread: 1 << 20, sequence: 0, base: 7, rows: Rows::new(&rows) };
    let steps = [
        Step::Hello,
        Step::AwaitConfiguration,
        Step::Control(say(Dialect::F1, &Message::Process(process))),
        Step::Heartbeat(Mode::Initializing),
        Step::Await(Command::Start),
        Step::ConnectData,
        Step::Data(0, say(Dialect::F1, &Message::Batch(batch))),
        Step::Data(0, say(Dialect::F1, &Message::MapMethod { method: 3, signature: text("a/B.c;1;()V") })),
        Step::Heartbeat(Mode::Tracing),
    ];
    agent.run(&steps).expect("served");
    assert_eq!(agent.replies, [Reply::Ready]);
    let all = until(
        &heard,
        |_, event| matches!(event, Event::Heartbeat { mode, .. } if *mode == Mode::Tracing.byte()),
    );
    assert!(all.iter().any(|(_, event)| matches!(event, Event::Process(process) if process.pid == 42)));
    hq.snapshot(AgentId(0), true).expect("F1 has it");
    agent
        .run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseData(0), Step::CloseControl])
        .expect("closed");
    assert_eq!(finished(&heard, 0), []);
    let report = hq.report(AgentId(0)).expect("kept");
    assert_eq!((report.methods[0].own, report.threads[0].id), (1500, 1 << 20));
    assert_eq!(hq.call_tree(AgentId(0), Some(0)).expect("kept").rows.len(), 1);
    assert_eq!(agent.heard.last(), Some(&2));
}

/// Returns a call and its method's name in the encoding of a version.
#[test]
fn agents_of_all_versions() {
    let (hq, heard) = hq(Options::default());
    for (number, dialect) in (0..).zip([Dialect::V1, Dialect::V2, Dialect::V3, Dialect::V4, Dialect::F1]) {
        let signature = JavaStr::from_bytes(b"a/B.c;1;()V");
        let mut events = say(dialect, &Message::MapMethod { method: 1, signature });
        let stamp = |sequence| Stamp { time: 5, sequence, thread: 0 };
        if dialect == Dialect::F1 {
            let rows = [BatchKind::Entry, BatchKind::Exit]
                .map(|kind| BatchEvent { kind, method: 1, delta: 0 }.to_bytes());
            let batch = Batch { thread: 0, sequence: 0, base: 5, rows: Rows::new(&rows) };
            events.extend(say(dialect, &Message::Batch(batch)));
        } else {
            let exit = if dialect == Dialect::V1 { Exit::Line(3) } else { Exit::Thrown(0) };
            events.extend(say(dialect, &Message::Entry { at: stamp(0), method: 1 }));
            events.extend(say(dialect, &Message::Exit { at: stamp(1), method: 1, exit }));
        }
        let mut agent = FakeAgent::connect(hq.address(), dialect).expect("HQ listens");
        agent.run(&[Step::Hello, Step::AwaitConfiguration]).expect("served");
        if dialect == Dialect::F1 {
            let text = JavaStr::from_bytes(b"x");
            let process = Process { pid: 1, wall: 0, resolution: 1, jvm: text, main: text };
            agent.run(&[Step::Control(say(dialect, &Message::Process(process)))]).expect("said");
        }
        agent.run(&traced(events)).expect("served");
        assert_eq!(finished(&heard, number), [], "{dialect}");
        let report = hq.report(AgentId(number)).expect("kept");
        assert_eq!((report.dialect, report.findings.len()), (dialect, 0));
        assert_eq!((report.methods[0].entries, report.methods[0].exits), (1, 1));
        assert_eq!(report.methods[0].signature, "a/B.c;1;()V");
    }
}

/// Returns the steps of an agent after its configuration: it sends these events, and ends.
fn traced(events: Vec<u8>) -> [Step; 7] {
    [
        Step::Heartbeat(Mode::Initializing),
        Step::Await(Command::Start),
        Step::ConnectData,
        Step::Data(0, events),
        Step::CloseData(0),
        Step::Heartbeat(Mode::ShuttingDown),
        Step::CloseControl,
    ]
}

/// More consecutive agents than HQ keeps: the reports of the first ones are combined.
#[test]
fn agents_that_make_room_are_added_up() {
    let (hq, heard) = hq(Options { agents: 2, ..Options::default() });
    // Some systems do not report the user of a connection.
    let former = || [true, false].into_iter().find_map(|own| hq.former(own));
    assert_eq!(former().map(|(count, _)| count), None);
    for number in 0..5 {
        let signature = JavaStr::from_bytes(b"a/B.c;1;()V");
        let mut events = say(Dialect::V1, &Message::MapMethod { method: number, signature });
        let at = |time, sequence| Stamp { time, sequence, thread: 0 };
        events.extend(say(Dialect::V1, &Message::Entry { at: at(5, 0), method: number }));
        events.extend(say(Dialect::V1, &Message::Exit { at: at(7, 1), method: number, exit: Exit::Line(3) }));
        let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
        agent.run(&[Step::Hello, Step::AwaitConfiguration]).expect("greeted");
        agent.run(&traced(events)).expect("served");
        if let Some(former) = number.checked_sub(2) {
            until(&heard, |agent, event| (agent, event) == (Some(AgentId(former)), &Event::Replaced));
        }
        assert_eq!(finished(&heard, number), []);
    }
    let (count, report) = former().expect("three have made room");
    assert_eq!((count, hq.agents().len()), (3, 2));
    let [method] = &report.methods[..] else { panic!("{:?}", report.methods) };
    assert_eq!((method.entries, method.exits, method.own), (3, 3, 6_000_000));
    assert_eq!((report.counters.entries, report.threads.len(), report.has_losses()), (3, 3, false));
}

/// An HQ that does not support F1, as the originals: the agent says hello again with an older version.
#[test]
fn an_agent_of_f1_falls_back() {
    let mut options = Options::default();
    options.protocol.dialects = vec![Dialect::V1];
    let (hq, heard) = hq(options);
    let mut first = FakeAgent::connect(hq.address(), Dialect::F1).expect("HQ listens");
    first.run(&[Step::Hello, Step::AwaitEnd]).expect("refused");
    // A rejected connection is not an agent.
    let refused = until(&heard, |agent, event| agent.is_none() && matches!(event, Event::Violation(_)));
    assert_eq!(violations(&refused), [Rule::UnknownVersion]);
    assert_eq!(first.errors, ["Invalid Protocol Version"]);
    let fallback = first.fallback.expect("version 1");
    let mut second = FakeAgent::connect(hq.address(), fallback).expect("HQ listens");
    let steps =
        [Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl];
    second.run(&steps).expect("served");
    assert_eq!(finished(&heard, 0), []);
    assert_eq!(hq.agents()[0].dialect, Dialect::V1);
}

/// The original agents call `read` once and treat its result as the whole configuration. The text is larger than a page, and
/// smaller than a segment of loopback, so that it arrives in as many pieces as it was written in.
#[test]
fn a_configuration_is_there_with_one_read() {
    use std::io::{Read as _, Write as _};
    let inclusions: Vec<_> =
        (0..500).map(|n| format!("^com/example/shop/package{n}/").as_str().into()).collect();
    let configuration = Configuration { inclusions, ..filters() };
    for dialect in [Dialect::V1, Dialect::V2, Dialect::V3, Dialect::V4, Dialect::F1] {
        let options =
            Options { configuration: configuration.clone(), initial_mode: None, ..Options::default() };
        let (hq, _) = hq(options);
        let mut agent = std::net::TcpStream::connect(hq.address()).expect("HQ listens");
        agent.write_all(&[0, dialect.hello()]).expect("said");
        let mut buffer = vec![0; 1 << 20];
        let size = agent.read(&mut buffer).expect("a configuration");
        let expected =
            Configuration { run: 0, ..configuration.clone() }.to_message(dialect).expect("it fits");
        assert!((4096..32_000).contains(&expected.len()), "{}", expected.len());
        assert_eq!(size, expected.len(), "{dialect}: not all of it");
        assert_eq!(buffer.get(..size), Some(&expected[..]), "{dialect}");
    }
}

/// Connections that wait for each other's events do not prevent HQ from closing.
#[test]
fn what_waits_for_an_event_ends_with_hq() {
    let limits = Limits { window: 64, ..Limits::default() };
    let (hq, heard) = hq(Options { gap_timeout: LONG * 10, limits, ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent
        .run(&[Step::Hello, Step::AwaitConfiguration, Step::ConnectData, Step::ConnectData])
        .expect("greeted");
    agent.run(&[Step::Data(0, [entry(0, 1), entry(1000, 3)].concat())]).expect("served");
    agent.run(&[Step::Data(1, entry(2000, 3))]).expect("served");
    eventually("the first event", || {
        hq.counters(AgentId(0)).is_ok_and(|(counted, _)| counted.entries == 1).then_some(())
    });
    let began = Instant::now();
    hq.close();
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    until(&heard, |_, event| *event == Event::Finished);
}
