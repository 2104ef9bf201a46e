//! An HQ on a loopback address with misbehaving agents: other agents are not affected, and complete messages are kept.

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::{Heard, LONG, entry, filters, finished, hq, until, violations};
use runtap_bytefrog::Limits;
use runtap_bytefrog::hq::{AgentId, Event, HqError, Options, RejectReason};
use runtap_bytefrog_proto::{Command, Configuration, Dialect, JavaStr, Message, Mode, Rule};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded, say};
use runtap_testkit::require;

#[test]
fn many_agents_at_a_time_and_a_hostile_one_among_them() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let (hq, heard) = hq(Options { configuration: filters(), ..Options::default() });
    let address = hq.address();
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let steps = steps.clone();
            std::thread::spawn(move || {
                let mut agent = FakeAgent::connect(address, dialect).expect("HQ listens");
                if number % 2 == 0 {
                    return agent.run(&steps);
                }
                // Half a message, random bytes, and the end.
                let wrong = [
                    Step::Hello,
                    Step::AwaitConfiguration,
                    Step::ConnectData,
                    Step::Data(
                        0,
                        [entry(0, 1), entry(0, 1), entry(9, 1), entry(1, 2)[..7].to_vec()].concat(),
                    ),
                    Step::Heartbeat(Mode::Tracing),
                    Step::CloseData(0),
                    Step::Control(vec![0x66, 1, 2, 3]),
                    Step::AwaitEnd,
                ];
                agent.run(&wrong)
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic").expect("HQ plays along");
    }
    let mut left = 6;
    until(&heard, |_, event| {
        left -= i32::from(*event == Event::Finished);
        left == 0
    });
    let mut entries: Vec<(u64, u64, u64)> = (0..6)
        .map(|id| hq.report(AgentId(id)).expect("kept").counters)
        .map(|counters| (counters.entries, counters.missing, counters.repeated))
        .collect();
    entries.sort_unstable();
    assert_eq!(entries, [(2, 8, 1), (2, 8, 1), (2, 8, 1), (2542, 0, 0), (2542, 0, 0), (2542, 0, 0)]);
    let runs: std::collections::BTreeSet<u8> = hq.agents().iter().map(|agent| agent.run).collect();
    assert_eq!(runs.len(), 6);
}

#[test]
fn versions_that_are_not_accepted_are_told_so() {
    let (hq, heard) = hq(Options::default());
    let mut stream = TcpStream::connect(hq.address()).expect("HQ listens");
    stream.write_all(&[0, 9, 8, b'I', 0, 0]).expect("taken");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("a last word and the end");
    assert_eq!(said[3..], *b"Invalid Protocol Version");
    let all = until(&heard, |_, event| matches!(event, Event::Violation(_)));
    assert_eq!(violations(&all), [Rule::UnknownVersion]);
    // The number of an unknown run.
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::ConnectDataAs(200)]).expect("said");
    let all = until(&heard, |_, event| matches!(event, Event::Violation(_)));
    assert_eq!(violations(&all), [Rule::UnknownRun]);
}

#[test]
fn an_agent_that_falls_silent_is_told_of() {
    let configuration = Configuration { heartbeat_interval: 50, ..Configuration::default() };
    let (hq, heard) = hq(Options { configuration, ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Tracing)]).expect("served");
    until(&heard, |_, event| matches!(event, Event::Violation(v) if v.rule == Rule::HeartbeatMissing));
    agent.run(&[Step::CloseControl]).expect("closed");
    assert_eq!(finished(&heard, 0), [Rule::EndWithoutShutdown]);
}

#[test]
fn silent_connections_and_too_many_of_them() {
    let mut byte = [0];
    // A silent connection is closed after its time-out.
    let (impatient, _) = hq(Options { timeout: Duration::from_millis(50), ..Options::default() });
    let mut mute = TcpStream::connect(impatient.address()).expect("HQ listens");
    assert_eq!(mute.read(&mut byte).expect("the end"), 0);
    // This time-out is longer than the test.
    let (hq, heard) = hq(Options { timeout: LONG * 100, connections: 3, agents: 1, ..Options::default() });
    let silent: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(hq.address()).expect("HQ listens")).collect();
    // The oldest silent connection is closed to make room.
    let mut fourth = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    fourth.run(&[Step::Hello, Step::AwaitConfiguration]).expect("there is room");
    assert_eq!((&silent[0]).read(&mut byte).expect("the end"), 0);
    // So is a connection that has only sent hello.
    let mut first = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    first.run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)]).expect("served");
    fourth.run(&[Step::AwaitEnd]).expect("closed");
    until(&heard, |agent, event| agent == Some(AgentId(1)) && matches!(event, Event::Heartbeat { .. }));
    let mut second = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    second.run(&[Step::Hello, Step::AwaitEnd]).expect("refused");
    assert_eq!(second.errors, ["HQ is not expecting a new connection at this time"]);
    assert_eq!(refused(&heard), RejectReason::Agents(1));
    first.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("closed");
    assert_eq!(finished(&heard, 1), []);
    // A finished one is closed to make room.
    let mut third = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    third.run(&[Step::Hello, Step::AwaitConfiguration]).expect("there is room again");
    assert!(hq.report(AgentId(1)).is_err());
}

/// Returns why the next connection was closed, from HQ's events.
fn refused(heard: &Heard) -> RejectReason {
    let mut causes = Vec::new();
    until(heard, |agent, event| {
        if let Event::Rejected { peer, cause } = event {
            assert!(agent.is_none() && peer.ip().is_loopback(), "{event:?}");
            causes.push(*cause);
        }
        !causes.is_empty()
    });
    causes[0]
}

#[test]
fn a_connection_beyond_the_limit_is_told_of() {
    let (hq, heard) = hq(Options { connections: 2, ..Options::default() });
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::ConnectData]).expect("there is room");
    let mut third = TcpStream::connect(hq.address()).expect("HQ listens");
    assert_eq!(refused(&heard), RejectReason::Connections(2));
    let mut byte = [0];
    assert!(!third.read(&mut byte).is_ok_and(|size| size > 0), "it hears nothing");
}

/// A command that was written in part ends the control connection: the next command would be read as its continuation.
#[test]
fn an_agent_that_takes_half_a_message_gets_nothing_else() {
    let (hq, heard) =
        hq(Options { initial_mode: None, timeout: Duration::from_secs(2), ..Options::default() });
    let mut agent = TcpStream::connect(hq.address()).expect("HQ listens");
    agent.write_all(&[0, Dialect::V1.hello()]).expect("taken");
    until(&heard, |_, event| matches!(event, Event::Connected { .. }));
    let configured = hq.configure(AgentId(0), |configuration| {
        // More than the buffers of a connection.
        configuration.inclusions = vec!["a".repeat(60_000).as_str().into(); 1000];
    });
    assert!(matches!(configured, Err(HqError::Write(_))), "{configured:?}");
    // From now on the agent reads, and has room for more.
    agent.set_read_timeout(Some(LONG)).expect("a time");
    let (mut buffer, mut size) = (vec![0; 1 << 16], 0);
    let mut command = Some(Command::Start);
    let end = loop {
        match agent.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(read) => size += read,
            Err(error) => break Err(error),
        }
        // The configuration that it has got is one.
        if let Some(command) = command.take_if(|_| size > 1 << 17) {
            assert!(hq.command(AgentId(0), command).is_err(), "in the midst of a message");
        }
    };
    // The end of the stream, or a reset.
    assert!(!end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it is open");
    assert_eq!(command, None);
}

/// A machine that was switched off sends nothing, as an idle one does.
#[test]
#[cfg(target_os = "linux")]
fn the_other_machine_is_asked_whether_it_is_there() {
    let (hq, _heard) = hq(Options::default());
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::ConnectData]).expect("served");
    let port = format!(":{:04X}", hq.address().port());
    let asked = || {
        let table = std::fs::read_to_string("/proc/self/net/tcp").expect("procfs");
        let accepted = table.lines().filter_map(|line| {
            let [_, local, _, state, _, timer, ..] = *line.split_whitespace().collect::<Vec<_>>() else {
                return None;
            };
            // Established connections, by the kind of their timer.
            (local.ends_with(&port) && state == "01").then(|| timer.starts_with("02:"))
        });
        accepted.filter(|asked| *asked).count()
    };
    // Until the written bytes are acknowledged, the connection has another timer.
    let began = Instant::now();
    while asked() < 2 && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(asked(), 2, "the control and the data connection");
}

/// Every user of a machine can connect to its loopback interface.
#[test]
#[cfg(target_os = "linux")]
fn only_the_users_that_may_connect() {
    use std::os::unix::fs::MetadataExt as _;
    let us = std::fs::metadata("/proc/self").expect("procfs").uid();
    let (strict, heard) =
        hq(Options { users: Some(vec![us.wrapping_add(1)]), connections: 1, ..Options::default() });
    for _ in 0..3 {
        let mut stranger = TcpStream::connect(strict.address()).expect("HQ listens");
        let mut byte = [0];
        // The connection is closed: the end of the stream, or a reset.
        assert!(!stranger.read(&mut byte).is_ok_and(|size| size > 0));
    }
    let mut count = 0;
    let all = until(&heard, |_, event| {
        count += i32::from(matches!(event, Event::UserRejected { .. }));
        count == 3
    });
    assert!(all.iter().all(|(agent, event)| agent.is_none()
        && matches!(event, Event::UserRejected { user: Some(user), .. } if *user == us)));
    assert_eq!(strict.agents(), []);
    let (ours, _) = hq(Options { users: Some(vec![us]), ..Options::default() });
    let mut agent = FakeAgent::connect(ours.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration]).expect("served");
}

/// In a crowd, each agent has less room than in a small group; events without room are counted.
#[test]
fn all_agents_together_are_bounded() {
    let limits = Limits { methods: 16, ..Limits::default() };
    let (hq, heard) = hq(Options { large: 1, limits, ..Options::default() });
    let events: Vec<u8> = (0..10).flat_map(|number| entry(number, number + 1)).collect();
    for (number, kept) in [(0, 10), (1, 2), (2, 2)] {
        let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
        let steps = [
            Step::Hello,
            Step::AwaitConfiguration,
            Step::ConnectData,
            Step::Data(0, events.clone()),
            Step::CloseData(0),
            Step::CloseControl,
        ];
        agent.run(&steps).expect("served");
        finished(&heard, number);
        let report = hq.report(AgentId(number)).expect("kept");
        assert_eq!(report.methods.len(), kept, "agent {number}");
        assert_eq!(report.has_losses(), kept < 10, "agent {number}");
    }
    // A large trace that was forgotten makes room for the next.
    hq.forget(AgentId(0));
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    let steps = [
        Step::Hello,
        Step::AwaitConfiguration,
        Step::ConnectData,
        Step::Data(0, events),
        Step::CloseData(0),
        Step::CloseControl,
    ];
    agent.run(&steps).expect("served");
    finished(&heard, 3);
    assert_eq!(hq.report(AgentId(3)).expect("kept").methods.len(), 10);
}

/// The connection may break at any point: complete messages are kept, and the next agent is served.
#[test]
fn connections_that_break_at_any_byte() {
    let (hq, heard) = hq(Options { agents: 100, ..Options::default() });
    let events = [entry(0, 1), entry(1, 2), entry(2, 3)].concat();
    for (number, cut) in (0..).zip(0..events.len()) {
        let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
        let steps = [
            Step::Hello,
            Step::AwaitConfiguration,
            Step::ConnectData,
            Step::Data(0, events[..cut].to_vec()),
            Step::Control([&[8, b'X', 0, 0][..], &[9, 0, 0, 0]].concat()[..4 + cut % 5].to_vec()),
            Step::CloseData(0),
            Step::CloseControl,
        ];
        agent.run(&steps).expect("served");
        let mut wrong = finished(&heard, number);
        let cuts = usize::from(cut % 15 != 0) + usize::from(cut % 5 != 0);
        wrong.retain(|rule| *rule != Rule::EndWithoutShutdown);
        assert_eq!(wrong, vec![Rule::CutMessage; cuts], "{cut}");
        let report = hq.report(AgentId(number)).expect("kept");
        assert_eq!(report.counters.entries, cut as u64 / 15);
    }
}

/// Defects of the original agents: each agent is served to its end, and none of its messages is misinterpreted.
#[test]
fn faults_of_the_original_agents() {
    let suspended = Options { initial_mode: Some(Mode::Suspended), ..Options::default() };
    let (hq, heard) = hq(suspended);
    let connect = || FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    let served = [Step::Hello, Step::AwaitConfiguration, Step::Await(Command::Start)];
    // Suspended before start: the agent confirms, but sends every event.
    let mut agent = connect();
    agent.run(&served).expect("served");
    assert_eq!(agent.commands, [Command::Suspend, Command::Start]);
    let all = [entry(0, 1), entry(1, 2)].concat();
    agent.run(&[Step::Heartbeat(Mode::Suspended), Step::ConnectData, Step::Data(0, all)]).expect("served");
    // The control connection is lost, and the agent continues to send without it.
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("closed");
    until(&heard, |_, event| *event == Event::ControlEnded);
    assert_eq!(hq.agents()[0].data, 1);
    // A text that was too long: a sequence id is lost, with the contents of its buffer.
    agent.run(&[Step::Data(0, [entry(7, 3), entry(8, 4)].concat()), Step::CloseData(0)]).expect("taken");
    assert_eq!(finished(&heard, 0), []);
    let report = hq.report(AgentId(0)).expect("kept");
    assert_eq!((report.counters.entries, report.counters.missing), (4, 5));
    assert!(report.findings.iter().any(|finding| finding.rule == Rule::SequenceGap && finding.count == 5));
    let depths: Vec<usize> =
        hq.call_tree(AgentId(0), None).expect("kept").rows.iter().map(|row| row.depth).collect();
    assert_eq!(depths, [0, 1, 0, 1], "nothing after the gap has a caller from before it");

    // The configuration makes the JVM abort: its sockets close at once.
    let mut agent = connect();
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::CloseControl]).expect("closed");
    assert_eq!(finished(&heard, 1), [Rule::EndWithoutShutdown]);

    // The agent sends an error before it shuts down, and the program continues.
    let mut agent = connect();
    agent.run(&served).expect("served");
    hq.fail(AgentId(2), "boom").expect("written");
    agent.run(&[Step::AwaitEnd]).expect("heard");
    let echo = JavaStr::from_bytes(b"received error from HQ: boom");
    agent
        .run(&[
            Step::Control(say(Dialect::V1, &Message::Error { text: echo })),
            Step::Heartbeat(Mode::ShuttingDown),
            Step::CloseControl,
        ])
        .expect("said");
    assert_eq!(finished(&heard, 2), [Rule::AgentError]);

    // A data break that comes when its events were used long ago kills the original HQ's control thread.
    let mut agent = connect();
    agent.run(&served).expect("served");
    agent.run(&[Step::ConnectData, Step::Data(0, [entry(0, 1), entry(1, 2)].concat())]).expect("served");
    let began = Instant::now();
    while hq.report(AgentId(3)).expect("kept").counters.entries < 2 && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
    let late = say(Dialect::V1, &Message::DataBreak { sequence: 1 });
    agent.run(&[Step::Control(late), Step::Heartbeat(Mode::ShuttingDown)]).expect("said");
    let gone = Mode::ShuttingDown.byte();
    until(&heard, |_, event| matches!(event, Event::Heartbeat { mode, .. } if *mode == gone));
    let report = hq.report(AgentId(3)).expect("kept");
    assert!(report.findings.iter().any(|finding| finding.rule == Rule::LateBreak));
    assert_eq!(report.counters.data_breaks, 1);
}

/// An agent that does not read blocks commands to it, but not queries about it.
#[test]
fn an_agent_that_does_not_read_is_still_seen() {
    let (hq, heard) = hq(Options { initial_mode: None, timeout: LONG * 100, ..Options::default() });
    let hq = Arc::new(hq);
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)]).expect("served");
    until(&heard, |_, event| matches!(event, Event::Heartbeat { .. }));
    let (writer, (began, begins)) = (Arc::clone(&hq), channel());
    let writes = std::thread::spawn(move || {
        // More than the buffers of a connection.
        writer.configure(AgentId(0), |configuration| {
            configuration.inclusions = vec!["a".repeat(60_000).as_str().into(); 1000];
            began.send(()).expect("it is waited for");
        })
    });
    begins.recv_timeout(LONG).expect("it begins");
    let (looker, (seen, sees)) = (Arc::clone(&hq), channel());
    std::thread::spawn(move || seen.send(looker.agents()));
    let agents = sees.recv_timeout(LONG).expect("it is seen while the configuration is written");
    assert_eq!(agents.len(), 1);
    assert!(!writes.is_finished(), "the agent has not read the configuration");
    drop(agent);
    assert!(writes.join().expect("no panic").is_err());
}
