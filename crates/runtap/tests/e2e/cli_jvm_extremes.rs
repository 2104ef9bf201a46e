//! Agents that send extreme values of their versions, and configurations that agents reject, with the real collector.

use std::fs;
use std::time::Duration;

use runtap_bytefrog_proto::f1::{
    Batch, BatchEvent, BatchKind, Count, CountRows, Drop, DropReason, Process, Rows,
};
use runtap_bytefrog_proto::{
    Command, Configuration, Dialect, Exit, JavaStr, JavaString, Message, Mode, Stamp,
};
use runtap_testkit::eventually;
use runtap_testkit::fake_agent::{FakeAgent, Step, say};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli_jvm::{Collector, play};
use crate::cli_jvm_wrong::{Collected, begin, collect_from, end, entry, exit, has_rule, name, sending};
use crate::common::{folder, runtap};

/// Steps from the hello to a data connection, in F1.
pub(crate) fn begin_f1() -> Vec<Step> {
    let process = Process {
        pid: 7,
        wall: 0,
        resolution: 1,
        jvm: JavaStr::from_bytes(b"none"),
        main: JavaStr::from_bytes(b"a.Main"),
    };
    vec![
        Step::Hello,
        Step::AwaitConfiguration,
        Step::Control(say(Dialect::F1, &Message::Process(process))),
        Step::Heartbeat(Mode::Initializing),
        Step::Await(Command::Start),
        Step::Heartbeat(Mode::Tracing),
        Step::ConnectData,
    ]
}

/// Encodes a call of method 1, with sequence numbers from `sequence` on.
fn call(thread: u32, sequence: u64) -> Vec<u8> {
    let rows = [(BatchKind::Entry, 0), (BatchKind::Exit, 5)]
        .map(|(kind, delta)| BatchEvent { kind, method: 1, delta }.to_bytes());
    let batch = Batch { thread, sequence, base: 1000, rows: Rows::new(&rows) };
    say(Dialect::F1, &Message::Batch(batch))
}

fn named() -> Vec<u8> {
    let signature = JavaStr::from_bytes(b"a/B.run;1;()V");
    say(Dialect::F1, &Message::MapMethod { method: 1, signature })
}

/// Ids have 32 bits and wrap to 0; events around the wrap can arrive out of order.
#[test]
fn sequence_ids_wrap() {
    let data = [
        name(1, "a/B.run;1;()V"),
        exit(0xffff_ffff, 1),
        entry(0xffff_fffe, 1),
        exit(1, 1),
        entry(0, 1),
        entry(3, 1),
        entry(2, 1),
    ];
    let Collected { agent, losses, .. } = collect_from(Dialect::V1, &sending(data.concat()), 5);
    assert_eq!((&agent["entries"], &agent["exits"], &agent["gaps"]), (&4.into(), &2.into(), &1.into()));
    let ids = (&agent["first_sequence"], &agent["last_sequence"]);
    assert_eq!(ids, (&0xffff_fffe_u64.into(), &0x1_0000_0003_u64.into()));
    assert_eq!((&losses["missing"], &losses["repeated"]), (&0xffff_fffe_u64.into(), &0.into()));
    assert_eq!(losses["open_calls"], 2);
}

/// More threads than the older versions can number.
#[test]
fn more_threads_than_16_bits_can_number() {
    let threads = 70_000_u32;
    let calls: Vec<u8> = (0..threads)
        .flat_map(|thread| {
            // Spread over the range, including the largest id.
            let id = u32::MAX - thread * 61_000;
            let end = Message::ThreadEnd { thread: id, time: 2000 };
            [call(id, 0), say(Dialect::F1, &end)].concat()
        })
        .collect();
    let steps = [begin_f1(), vec![Step::Data(0, [named(), calls].concat())], end()].concat();
    let Collected { agent, losses, .. } = collect_from(Dialect::F1, &steps, 0);
    assert_eq!((&agent["threads"], &agent["entries"]), (&threads.into(), &threads.into()));
    assert_eq!(
        (&agent["methods"][0]["exits"], &agent["methods"][0]["total_ns"]),
        (&threads.into(), &350_000.into())
    );
    assert_eq!(
        (&losses["without_room"], &losses["untold"], &losses["missing"]),
        (&0.into(), &0.into(), &0.into())
    );
}

/// The cost of thread reports grows with the trace, not with threads times calls.
#[test]
fn reports_of_many_threads_come_at_once() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let calls: Vec<u8> = (0..70_000).flat_map(|thread| call(thread, 0)).collect();
    fs::write(folder.path().join("agent0.ctl.a2h.bin"), [0, 0xf1]).unwrap();
    fs::write(folder.path().join("agent0.data0.a2h.bin"), [vec![0x1e, 0], named(), calls].concat()).unwrap();
    // When each thread required a pass over all nodes, both took minutes and would be killed.
    let threads = runtap(["jvm", "report", path, "threads", "--format", "json"]).expect_code(0).json();
    assert_eq!(threads["agents"][0]["threads"].as_array().unwrap().len(), 70_000);
    let folded = runtap(["jvm", "report", path, "--to", "folded", "--view", "calls", "-o", "-"]);
    assert_eq!(folded.expect_code(0).text().lines().count(), 70_000);
}

/// The original agents wrap to 0 without reporting it.
#[test]
fn threads_of_version_1_that_may_share_a_number_are_reported() {
    let mut sequence = 0;
    let calls: Vec<u8> = (0..=u32::from(u16::MAX))
        .flat_map(|thread| {
            let at = |sequence| Stamp { time: 0, sequence, thread };
            let both = [
                Message::Entry { at: at(sequence), method: 1 },
                Message::Exit { at: at(sequence + 1), method: 1, exit: Exit::Line(1) },
            ];
            sequence += 2;
            both.map(|message| say(Dialect::V1, &message)).concat()
        })
        .collect();
    let data = [name(1, "a/B.run;1;()V"), calls].concat();
    let Collected { agent, losses, .. } = collect_from(Dialect::V1, &sending(data), 0);
    assert_eq!((&agent["threads"], &agent["entries"]), (&65_536.into(), &65_536.into()));
    assert!(has_rule(&losses, "FROG030"), "{losses}");
}

/// In F1 each thread has its own sequence: wrong numbers of one thread do not affect the others.
#[test]
fn a_thread_of_f1_that_lies_about_its_numbers() {
    let drop = |thread, sequence, count| {
        let drop = Drop { thread, sequence, time: 1000, count, reason: DropReason::FULL };
        say(Dialect::F1, &Message::Drop(drop))
    };
    let data = [
        named(),
        // Missing: 2 and 3; then all of it again.
        call(1, 0),
        call(1, 4),
        call(1, 4),
        // The largest sequence number.
        call(2, u64::MAX - 2),
        call(3, 0),
        drop(3, 2, 40),
        drop(3, 2, Drop::UNKNOWN),
        call(3, 2),
    ];
    let steps = [begin_f1(), vec![Step::Data(0, data.concat())], end()].concat();
    let Collected { agent, losses, .. } = collect_from(Dialect::F1, &steps, 5);
    assert_eq!((&agent["entries"], &agent["exits"], &agent["gaps"]), (&5.into(), &5.into(), &2.into()));
    assert_eq!((&losses["dropped"], &losses["drops_of_unknown_size"]), (&40.into(), &1.into()));
    assert_eq!(losses["repeated"], 2);
    assert_eq!(losses["missing"], u64::MAX);
    assert!(has_rule(&losses, "FROG019") && has_rule(&losses, "FROG020"), "{losses}");
}

/// The largest values of messages, in every report.
#[test]
fn extreme_numbers_are_reported_correctly() {
    let most = Count { method: 1, calls: u64::MAX, thrown: u64::MAX, nanoseconds: u64::MAX };
    let counts = [most, Count { method: 2, ..most }].map(Count::to_bytes);
    let snapshot = |reset| {
        let rows = Rows::new(&counts);
        say(
            Dialect::F1,
            &Message::Counts(CountRows { snapshot: u32::MAX, time: u64::MAX, last: true, reset, rows }),
        )
    };
    let rows = [(BatchKind::Entry, 0), (BatchKind::Exit, u32::MAX)]
        .map(|(kind, delta)| BatchEvent { kind, method: 3, delta }.to_bytes());
    let batch = |thread, sequence, base| {
        say(Dialect::F1, &Message::Batch(Batch { thread, sequence, base, rows: Rows::new(&rows) }))
    };
    let marker = |sequence, time| {
        let (key, value) = (JavaStr::from_bytes(b"k"), JavaStr::from_bytes(b"v"));
        say(Dialect::F1, &Message::Marker { time, sequence, thread: Some(4), key, value })
    };
    let at = Stamp { time: u64::MAX, sequence: u64::MAX, thread: u32::MAX };
    let data = [
        named(),
        snapshot(false),
        snapshot(true),
        snapshot(false),
        batch(1, 0, 0),
        batch(1, 2, u64::MAX),
        batch(u32::MAX, u64::MAX, u64::MAX),
        marker(0, 0),
        marker(1, u64::MAX),
        say(Dialect::F1, &Message::Exception { at, method: u32::MAX, exception: u32::MAX, line: 0xfffe }),
        say(Dialect::F1, &Message::Bubble { at, method: u32::MAX, exception: u32::MAX }),
        say(Dialect::F1, &Message::ThreadEnd { thread: 1, time: u64::MAX }),
    ];
    let folder = folder();
    let recording = folder.path().join("recording");
    let path = recording.to_str().unwrap();
    for format in ["json", "text"] {
        // Removes the previous recording.
        let _ = fs::remove_dir_all(path);
        let collector = Collector::start(&["--once", "--format", format, "--record", path]);
        play(
            collector.address,
            Dialect::F1,
            &[begin_f1(), vec![Step::Data(0, data.concat())], end()].concat(),
        );
        let (printed, told, code) = collector.wait();
        assert_eq!(code, Some(5), "{told}");
        assert!(
            printed.contains("18446744073709551615") || printed.contains("18,446,744,073,709,551,615"),
            "{printed}"
        );
        if format == "json" {
            continue;
        }
        for kind in ["methods", "tree", "exceptions", "segments", "slow", "threads", "classes", "losses"] {
            for format in ["json", "text"] {
                runtap(["jvm", "report", path, kind, "--format", format]).expect_code(5);
            }
        }
        for words in
            [["--minus", path], ["--and", path], ["--or", path], ["--diff", path], ["--coverage", "lcov=-"]]
        {
            runtap([&["jvm", "report", path][..], &words].concat()).expect_code(5);
        }
        for to in ["speedscope", "folded", "flamegraph", "pprof", "chrome", "perfetto", "firefox"] {
            runtap(["jvm", "report", path, "--to", to, "-o", "-"]).expect_code(5);
        }
    }
}

/// The agent itself detects a pattern that Java rejects: it reports that and exits; other agents continue.
#[test]
fn a_configuration_that_an_agent_rejects_is_reported() {
    let text = JavaStr::from_bytes(b"Unclosed group near index 1");
    for dialect in [Dialect::V1, Dialect::V4, Dialect::F1] {
        let error = say(dialect, &Message::Error { text });
        let steps = [Step::Hello, Step::AwaitConfiguration, Step::Control(error), Step::CloseControl];
        let Collected { agent, told, losses } = collect_from(dialect, &steps, 5);
        assert_eq!(agent["entries"], 0);
        assert!(told.contains("agent 1 reports an error: Unclosed group near index 1"), "{told}");
        assert!(has_rule(&losses, "FROG017"), "{losses}");
        assert_eq!(losses["errors"], json!(["Unclosed group near index 1"]));
    }
}

/// Versions 2 to 4 have 16 bits for the length, so an agent would wait forever for the remaining bytes.
#[test]
fn a_configuration_too_long_for_a_version_is_rejected() {
    let long = format!("^a/{}$", "b".repeat(65_530));
    let patterns = vec![JavaString::from(long.as_str())];
    let too_long = Configuration { inclusions: patterns, ..Configuration::default() };
    assert!(too_long.to_message(Dialect::V4).is_err());
    let collector = Collector::start(&["--format", "json", "--include", &long]);
    let mut refused = FakeAgent::connect(collector.address, Dialect::V4).unwrap();
    assert!(refused.run(&[Step::Hello, Step::AwaitEnd]).is_ok());
    assert_eq!(refused.configurations, []);
    assert!(refused.errors[0].contains("configuration"), "{:?}", refused.errors);
    // F1 supports it.
    let steps = [begin_f1(), vec![Step::Data(0, [named(), call(1, 0)].concat())], end()].concat();
    let mut agent = FakeAgent::connect(collector.address, Dialect::F1).unwrap();
    agent.run(&steps).unwrap();
    assert_eq!(agent.configurations[0].inclusions, too_long.inclusions);
    collector.wait_for("agent 0 was sent away, without a configuration");
    collector.wait_for("agent 1 ended");
    collector.signal(Signal::INT);
    let agents = collector.agents(5);
    assert_eq!((&agents[0]["entries"], &agents[1]["entries"]), (&0.into(), &1.into()));
}

/// Before start, a configuration replaces the previous one; later it would terminate an original agent, so it is not
/// sent.
#[test]
fn agents_are_configured_again_until_they_start() {
    let folder = folder();
    let path = folder.path().join("hq.sock");
    let path = path.to_str().unwrap();
    let recording = folder.path().join("recording");
    let words = ["--no-start", "--format", "json", "--include", "^none/", "--control", path, "--record"];
    let collector = Collector::start(&[&words[..], &[recording.to_str().unwrap()]].concat());
    let send = |command: &str| runtap(["jvm", "hq", "--control", path, "--send", command]);
    let waits = [Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)];
    let mut agents = [Dialect::V1, Dialect::V4, Dialect::F1].map(|dialect| {
        let mut agent = FakeAgent::connect(collector.address, dialect).unwrap();
        agent.run(&waits).unwrap();
        agent
    });
    collector.wait_for("agent 2 is initializing");
    send(r#"configure {"include": ["^a b/", "^c/"]}"#).expect_code(0);
    send(r#"configure 1 {"exclude": ["^d/"]}"#).expect_code(0);
    for (agent, dialect) in agents.iter_mut().zip(["V1", "V4", "F1"]) {
        // The configurations arrive together, or one after another.
        while agent.configurations.len() < if dialect == "V4" { 3 } else { 2 } {
            agent.run(&[Step::AwaitConfiguration]).unwrap();
        }
        let [first, .., last] = &agent.configurations[..] else { panic!("{dialect}: not again") };
        assert_eq!((first.run, first.heartbeat_interval), (last.run, last.heartbeat_interval));
        assert_eq!(first.inclusions, [JavaString::from("^none/")]);
        let (inclusions, exclusions) = match dialect {
            "V4" => (vec![], vec!["^d/"]),
            _ => (vec!["^a b/", "^c/"], vec![".*"]),
        };
        let java = |patterns: Vec<&str>| patterns.into_iter().map(JavaString::from).collect::<Vec<_>>();
        assert_eq!((&last.inclusions, &last.exclusions), (&java(inclusions), &java(exclusions)));
    }
    for wrong in ["configure", r#"configure {"only": []}"#, "configure x {}"] {
        send(wrong).expect_code(2);
    }
    send("start 0").expect_code(0);
    let late = send(r#"configure 0 {"include": ["^late/"]}"#);
    assert!(late.expect_code(4).text().contains("cannot be changed after start"), "{late}");
    let [first, ..] = &mut agents;
    first
        .run(&[
            Step::Await(Command::Start),
            Step::ConnectData,
            Step::Data(0, [entry(0, 1), exit(1, 1)].concat()),
        ])
        .unwrap();
    first.run(&end()).unwrap();
    assert_eq!(first.errors, Vec::<String>::new());
    collector.wait_for("agent 0 ended");
    drop(agents);
    collector.wait_for("agent 2 ended");
    send("quit").expect_code(0);
    let live = collector.agents(5);
    assert_eq!(live[0]["entries"], 1);
    let again = runtap(["jvm", "report", recording.to_str().unwrap(), "--format", "json"]);
    assert_eq!(again.expect_code(0).json()["agents"], Value::Array(live));
}

/// An agent sends a configuration itself, which is a protocol violation.
#[test]
fn a_configuration_sent_by_an_agent_is_a_violation() {
    let said = Configuration::default().to_message(Dialect::V1).unwrap();
    let steps = [begin(), vec![Step::Data(0, entry(0, 1)), Step::Control(said), Step::AwaitEnd]].concat();
    let Collected { agent, told, .. } = collect_from(Dialect::V1, &steps, 5);
    assert_eq!(agent["entries"], 1);
    assert!(told.contains("FROG001"), "{told}");
}

/// Agents in counts mode send no calls: lines and report show their counts.
#[test]
fn counts_are_calls_too() {
    let collector = Collector::start(&["--mode", "counts", "--interval", "200ms", "--once"]);
    let mut agent = FakeAgent::connect(collector.address, Dialect::F1).unwrap();
    agent.run(&begin_f1()).unwrap();
    agent.run(&[Step::Data(0, named())]).unwrap();
    let mut snapshot = 0;
    eventually("calls in a second", || {
        snapshot += 1;
        let count = Count { method: 1, calls: u64::from(snapshot) * 1000, thrown: 0, nanoseconds: 5 };
        let rows = [count.to_bytes()];
        let rows = CountRows { snapshot, time: 0, last: true, reset: false, rows: Rows::new(&rows) };
        agent.run(&[Step::Data(0, say(Dialect::F1, &Message::Counts(rows)))]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let told = collector.stderr_so_far();
        let mut lines = told.lines().filter(|line| line.contains("/s)"));
        lines.next_back().filter(|line| line.contains("000 calls (") && !line.contains("(0/s)")).map(drop)
    });
    agent.run(&end()).unwrap();
    let (printed, told, code) = collector.wait();
    assert_eq!(code, Some(0), "{told}");
    assert!(printed.contains("000 calls of 1 method"), "{printed}");
}

/// A program beyond the limit is not traced: the result reports it, and is partial.
#[test]
fn agents_beyond_the_limit_are_reported() {
    let collector = Collector::start(&["--format", "json"]);
    let living = [Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Tracing)];
    let mut agents: Vec<FakeAgent> = (0..64)
        .map(|_| {
            let mut agent = FakeAgent::connect(collector.address, Dialect::V1).unwrap();
            agent.run(&living).unwrap();
            agent
        })
        .collect();
    collector.wait_for("agent 63 is tracing");
    for _ in 0..2 {
        let mut refused = FakeAgent::connect(collector.address, Dialect::V1).unwrap();
        refused.run(&[Step::Hello, Step::AwaitEnd]).unwrap();
        assert_eq!(refused.errors, ["HQ is not expecting a new connection at this time"]);
    }
    for agent in &mut agents {
        agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).unwrap();
    }
    eventually("their ends", || (collector.stderr_so_far().matches(" ended").count() == 64).then_some(()));
    collector.signal(Signal::INT);
    let (_, told, code) = collector.wait();
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(told.matches("was refused: 64 agents are traced, which is the limit").count(), 1, "{told}");
    assert!(told.contains("2 connections refused, for lack of room"), "{told}");
}
