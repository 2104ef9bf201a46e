//! Faulty agents and the real collector: the other agents continue, received data is kept, and missing data is
//! reported.

use std::thread;

use runtap_bytefrog_proto::{Command, Dialect, Exit, JavaStr, Message, Mode, Stamp};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded, say};
use runtap_testkit::{eventually, require};
use rustix::process::Signal;
use serde_json::Value;

use crate::cli_jvm::{Collector, play, status};
use crate::common::{folder, runtap};

const DIALECT: Dialect = Dialect::V1;

fn at(sequence: u64) -> Stamp {
    Stamp { time: sequence, sequence, thread: 0 }
}

pub(crate) fn entry(sequence: u64, method: u32) -> Vec<u8> {
    say(DIALECT, &Message::Entry { at: at(sequence), method })
}

pub(crate) fn exit(sequence: u64, method: u32) -> Vec<u8> {
    say(DIALECT, &Message::Exit { at: at(sequence), method, exit: Exit::Line(1) })
}

pub(crate) fn name(method: u32, signature: &str) -> Vec<u8> {
    say(DIALECT, &Message::MapMethod { method, signature: JavaStr::from_bytes(signature.as_bytes()) })
}

/// Steps from the hello to a data connection.
pub(crate) fn begin() -> Vec<Step> {
    vec![
        Step::Hello,
        Step::AwaitConfiguration,
        Step::Await(Command::Start),
        Step::Heartbeat(Mode::Tracing),
        Step::ConnectData,
    ]
}

/// Steps of an orderly exit.
pub(crate) fn end() -> Vec<Step> {
    vec![Step::Heartbeat(Mode::ShuttingDown), Step::CloseData(0), Step::CloseControl]
}

/// Steps of an agent that sends `data` on its data connection, and exits in order.
pub(crate) fn sending(data: Vec<u8>) -> Vec<Step> {
    [begin(), vec![Step::Data(0, data)], end()].concat()
}

/// The collector's results for a faulty agent.
pub(crate) struct Collected {
    /// The agent in the collector's document.
    pub(crate) agent: Value,
    /// The collector's messages.
    pub(crate) told: String,
    /// The output of `jvm report losses` on its recording.
    pub(crate) losses: Value,
}

/// Collects an agent of version 1.
#[track_caller]
fn collect(steps: &[Step], code: i32) -> Collected {
    collect_from(DIALECT, steps, code)
}

/// Runs these steps with a collector that must exit with this code, and returns its results. A correct agent connects
/// before the faulty one and exits after it, and must not be affected. The recording must give equal results.
#[track_caller]
pub(crate) fn collect_from(dialect: Dialect, steps: &[Step], code: i32) -> Collected {
    collect_after(dialect, &[(0, steps)], code)
}

/// Like [`collect_from`], but each part is sent only after the collector has received the given number of entries.
#[track_caller]
fn collect_after(dialect: Dialect, parts: &[(u64, &[Step])], code: i32) -> Collected {
    let folder = folder();
    let recording = folder.path().join("recording");
    let recording = recording.to_str().unwrap();
    let control = folder.path().join("hq.sock");
    let words = ["--format", "json", "--record", recording, "--control", control.to_str().unwrap()];
    let collector = Collector::start(&words);
    let mut right = FakeAgent::connect(collector.address, DIALECT).unwrap();
    right.run(&begin()).unwrap();
    let calls = [name(1, "a/Right.first;1;()V"), entry(0, 1), exit(1, 1)];
    right.run(&[Step::Data(0, calls.concat())]).unwrap();
    collector.wait_for("agent 0 is tracing");
    let mut wrong = FakeAgent::connect(collector.address, dialect).unwrap();
    for (entries, steps) in parts {
        if *entries > 0 {
            eventually("what was said", || {
                (status(&control, 1)["entries"].as_u64()? >= *entries).then_some(())
            });
        }
        // A collector that closes a connection ends some agents.
        let _ = wrong.run(steps);
    }
    drop(wrong);
    collector.wait_for("agent 1 ended");
    let calls = [name(2, "a/Right.second;1;()V"), entry(2, 2), exit(3, 2)];
    right.run(&[Step::Data(0, calls.concat())]).unwrap();
    right.run(&end()).unwrap();
    collector.wait_for("agent 0 ended");
    let told = collector.stderr_so_far();
    collector.signal(Signal::INT);
    let mut agents = collector.agents(code);
    let losses = runtap(["jvm", "report", recording, "losses", "--format", "json"]);
    let losses = losses.json()["agents"][1]["losses"].take();
    // The recording has equal losses, except for how an agent exited: its recording is complete.
    let has_ended_early = has_rule(&losses, "FROG016") || has_rule(&losses, "FROG017");
    for verb in ["replay", "report"] {
        let replayed = runtap(["jvm", verb, recording, "--format", "json"]);
        let expected = if has_ended_early && !has_losses(&losses) { 0 } else { code };
        replayed.expect_code(expected);
    }
    let replayed = runtap(["jvm", "report", recording, "--format", "json"]).json();
    assert_eq!(replayed["agents"], Value::Array(agents.clone()), "{told}");
    assert_eq!(agents.len(), 2, "{told}");
    let agent = agents.pop().unwrap();
    let right = agents.pop().unwrap();
    let signatures: Vec<&Value> =
        right["methods"].as_array().unwrap().iter().map(|method| &method["signature"]).collect();
    assert_eq!(signatures, ["a/Right.first;1;()V", "a/Right.second;1;()V"]);
    assert_eq!((&right["entries"], &right["exits"], &right["gaps"]), (&2.into(), &2.into(), &0.into()));
    Collected { agent, told, losses }
}

/// Returns whether any sent data is missing in the trace, or in the recording.
fn has_losses(losses: &Value) -> bool {
    let has = |list: &str| losses[list] != Value::Array(Vec::new());
    let mut rules = losses["rules"].as_array().unwrap().iter();
    has("damage")
        || has("unfinished")
        || rules.any(|row| row["severity"] == "error" && row["id"] != "FROG017")
        || ["dropped", "drops_of_unknown_size", "untold", "without_room", "too_deep"]
            .iter()
            .any(|count| losses[*count] != 0)
}

/// Returns whether a rule is among the losses.
#[track_caller]
pub(crate) fn has_rule(losses: &Value, rule: &str) -> bool {
    losses["rules"].as_array().unwrap().iter().any(|row| row["id"] == rule)
}

#[test]
fn wrong_sequence_numbers_are_reported() {
    let lies = [entry(0, 1), entry(0, 1), entry(5, 1), exit(6, 1)].concat();
    let Collected { agent, losses, .. } = collect(&sending(lies), 5);
    assert_eq!((&agent["entries"], &agent["exits"], &agent["gaps"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!((&agent["first_sequence"], &agent["last_sequence"]), (&0.into(), &6.into()));
    assert_eq!((&losses["missing"], &losses["repeated"]), (&4.into(), &1.into()));
    assert!(has_rule(&losses, "FROG019") && has_rule(&losses, "FROG020"), "{losses}");
    // Out of order: nothing is missing.
    let shuffled = [exit(3, 1), entry(0, 1), entry(2, 1), exit(1, 1)].concat();
    let Collected { agent, losses, .. } = collect(&sending(shuffled.clone()), 0);
    assert_eq!((&agent["entries"], &agent["exits"], &agent["gaps"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!((&losses["missing"], &losses["repeated"]), (&0.into(), &0.into()));
    // Completely repeated: there is one event too many, but which is unknown.
    let Collected { agent, losses, .. } = collect(&sending([shuffled, exit(1, 1)].concat()), 5);
    assert_eq!((&agent["entries"], &agent["exits"], &agent["gaps"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!((&losses["missing"], &losses["repeated"]), (&0.into(), &1.into()));
    // The largest id: the one before 0, which arrives too late.
    let Collected { agent, losses, .. } =
        collect(&sending([entry(0, 1), entry(0xffff_ffff, 1), exit(1, 1)].concat()), 5);
    assert_eq!((&agent["entries"], &losses["repeated"]), (&1.into(), &1.into()));
}

/// Bytes after a second hello are not read: the report and the exit code of the collection and of its recording say so.
#[test]
fn an_agent_that_sends_hello_twice_is_disconnected_and_reported() {
    let folder = folder();
    let recording = folder.path().join("recording");
    let recording = recording.to_str().unwrap();
    let collector = Collector::start(&["--once", "--record", recording]);
    let steps = [
        begin(),
        vec![
            Step::Data(0, [name(1, "a/B.run;1;()V"), entry(0, 1), exit(1, 1)].concat()),
            Step::CloseData(0),
            Step::Heartbeat(Mode::ShuttingDown),
            Step::Hello,
            Step::AwaitEnd,
        ],
    ];
    let _ = FakeAgent::connect(collector.address, DIALECT).unwrap().run(&steps.concat());
    let (printed, told, code) = collector.wait();
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains("FROG004"), "{told}");
    let again = runtap(["jvm", "replay", recording]).expect_code(5).text().to_owned();
    for report in [printed, again] {
        assert!(report.contains("1 call of 1 method in 1 thread") && report.contains("FROG004"), "{report}");
    }
}

/// Events that never arrived make every result partial: that of the collection, and all results of its recording.
#[test]
fn events_that_never_arrived_make_every_result_partial() {
    let folder = folder();
    let recording = folder.path().join("recording");
    let recording = recording.to_str().unwrap();
    let collector = Collector::start(&["--once", "--record", recording]);
    play(collector.address, DIALECT, &sending([entry(0, 1), exit(1, 1), entry(5, 1)].concat()));
    let (_, told, code) = collector.wait();
    assert_eq!(code, Some(5), "{told}");
    runtap(["jvm", "replay", recording]).expect_code(5).says("3 events never came");
    let words: [&[&str]; 7] = [
        &[],
        &["methods"],
        &["losses"],
        &["--and", recording],
        &["--diff", recording],
        &["--coverage", "lcov=-"],
        &["--to", "folded", "--view", "calls", "-o", "-"],
    ];
    for words in words {
        runtap([&["jvm", "report", recording][..], words].concat()).expect_code(5);
    }
}

#[test]
fn names_that_never_come_come_twice_or_change() {
    let data = [
        entry(0, 1),
        exit(1, 1),
        name(2, "a/B.two;1;()V"),
        name(2, "a/B.two;1;()V"),
        entry(2, 2),
        exit(3, 2),
        name(3, "a/B.old;1;()V"),
        name(3, "a/B.new;1;()V"),
        entry(4, 3),
        exit(5, 3),
        // After its events.
        entry(6, 4),
        exit(7, 4),
        name(4, "a/B.late;1;()V"),
    ];
    let Collected { agent, losses, .. } = collect(&sending(data.concat()), 0);
    let signatures: Vec<&str> = agent["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["signature"].as_str().unwrap())
        .collect();
    assert_eq!(signatures, ["(method 1)", "a/B.late;1;()V", "a/B.new;1;()V", "a/B.two;1;()V"]);
    assert_eq!(agent["signatures"], 3);
    assert!(has_rule(&losses, "FROG021") && has_rule(&losses, "FROG023"), "{losses}");
    // The text report names the broken rule.
    let collector = Collector::start(&["--once"]);
    let _ = FakeAgent::connect(collector.address, DIALECT)
        .unwrap()
        .run(&sending([entry(0, 1), exit(1, 1)].concat()));
    let (printed, ..) = collector.wait();
    assert!(printed.contains("FROG021"), "{printed}");
}

#[test]
fn unknown_messages_end_a_connection_and_keep_what_came() {
    let Collected { agent, told, losses } =
        collect(&sending([entry(0, 1), exit(1, 1), vec![0x66, 1, 2]].concat()), 5);
    assert_eq!(agent["entries"], 1);
    assert!(told.contains("FROG001"), "{told}");
    assert_eq!(losses["damage"][0]["offset"], 2 + entry(0, 1).len() + exit(1, 1).len());
    // On the control connection too.
    let steps = [
        begin(),
        vec![Step::Data(0, entry(0, 1)), Step::Control(vec![0x66]), Step::AwaitEnd, Step::CloseData(0)],
    ];
    let Collected { agent, told, losses } = collect(&steps.concat(), 5);
    assert_eq!(agent["entries"], 1);
    assert!(told.contains("FROG001"), "{told}");
    assert!(has_rule(&losses, "FROG001") || losses["damage"][0]["stream"] == "agent1.ctl.a2h", "{losses}");
}

/// A connection lost at any byte: complete messages are kept, and a truncated message is reported.
#[test]
fn a_connection_lost_at_any_byte_keeps_complete_messages() {
    let data = [name(1, "a/B.c;1;()V"), entry(0, 1), exit(1, 1), entry(2, 1), exit(3, 1)].concat();
    let sizes: Vec<usize> = (0..=data.len()).collect();
    // Agents beyond the number that a collector keeps are reported together.
    for sizes in sizes.chunks(60) {
        let collector = Collector::start(&["--format", "json"]);
        for size in sizes {
            let sent = data[..*size].to_vec();
            let steps = [begin(), vec![Step::Data(0, sent), Step::CloseData(0), Step::CloseControl]];
            FakeAgent::connect(collector.address, DIALECT).unwrap().run(&steps.concat()).unwrap();
        }
        for agent in 0..sizes.len() {
            collector.wait_for(&format!("agent {agent} ended"));
        }
        collector.signal(Signal::INT);
        let agents = collector.agents(5);
        assert_eq!(agents.len(), sizes.len());
        for (size, agent) in sizes.iter().zip(&agents) {
            let (named, entries) = (name(1, "a/B.c;1;()V").len(), entry(0, 1).len());
            let exits = exit(0, 1).len();
            let ends = [named + entries, named + 2 * entries + exits];
            let whole = ends.iter().filter(|end| size >= end).count();
            assert_eq!(agent["entries"], whole, "{size}");
        }
    }
}

/// Half a message followed by silence delays neither other agents nor the exit.
#[test]
fn silence_within_a_message_does_not_delay_other_agents() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let collector = Collector::start(&["--format", "json"]);
    let address = collector.address;
    let mut silent = FakeAgent::connect(address, DIALECT).unwrap();
    silent.run(&begin()).unwrap();
    let half = entry(0, 1);
    silent.run(&[Step::Data(0, half[..7].to_vec()), Step::Control(vec![8])]).unwrap();
    // An agent that never sends a hello.
    let mut mute = FakeAgent::connect(address, DIALECT).unwrap();
    mute.run(&[Step::Control(vec![0])]).unwrap();
    play(address, dialect, &steps);
    collector.wait_for("agent 1 ended");
    // The missing heartbeat is reported.
    collector.wait_for("FROG014");
    collector.signal(Signal::INT);
    let agents = collector.agents(5);
    assert_eq!(agents.iter().map(|agent| agent["entries"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 2542]);
    drop((silent, mute));
}

/// Faults of the original agents: events while suspended, a late data break, an ignored mode, an echoed error, an
/// unannounced exit, garbage instead of a hello.
#[test]
fn the_faults_of_the_original_agents_are_tolerated() {
    let data_break = |sequence| say(DIALECT, &Message::DataBreak { sequence });
    let error = say(DIALECT, &Message::Error { text: JavaStr::from_bytes(b"received error from HQ: boom") });
    let first = [
        begin(),
        vec![
            Step::Data(0, [entry(0, 1), exit(1, 1), entry(2, 1), exit(3, 1)].concat()),
            Step::Heartbeat(Mode::Suspended),
        ],
    ]
    .concat();
    // After these steps.
    let then = [
        Step::Control(data_break(1)),
        Step::Data(0, [entry(4, 1), exit(5, 1)].concat()),
        Step::Control(error),
        Step::CloseControl,
        // The agent keeps sending, without a header.
        Step::Data(0, [entry(6, 1), exit(7, 1)].concat()),
        Step::CloseData(0),
    ];
    let Collected { agent, told, .. } = collect_after(DIALECT, &[(0, &first), (2, &then)], 5);
    assert_eq!((&agent["entries"], &agent["data_breaks"]), (&4.into(), &1.into()));
    for text in ["reports an error: received error from HQ: boom", "FROG016"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    let collector = Collector::start(&["--format", "json"]);
    let address = collector.address;
    let wrong: Vec<_> = [vec![0xff; 4], vec![0, 9], vec![30, 77], b"GET / HTTP/1.1\r\n\r\n".to_vec()]
        .into_iter()
        .map(|bytes| {
            thread::spawn(move || {
                // The collector closes the connection.
                let _ = FakeAgent::connect(address, DIALECT)
                    .unwrap()
                    .run(&[Step::Control(bytes), Step::AwaitEnd]);
            })
        })
        .collect();
    for agent in wrong {
        agent.join().unwrap();
    }
    collector.wait_for("a connection was refused: FROG005");
    collector.wait_for("FROG007");
    play(address, DIALECT, &sending([entry(0, 1), exit(1, 1)].concat()));
    collector.wait_for("agent 0 ended");
    collector.signal(Signal::INT);
    assert_eq!(collector.agents(0)[0]["entries"], 1);
}

/// Agents whose connections are lost at any byte of control and data, beside a complete one, leave a recording of the
/// received data.
#[test]
fn connections_lost_at_any_byte_leave_a_recording() {
    let folder = folder();
    let recording = folder.path().join("recording");
    let recording = recording.to_str().unwrap();
    let collector = Collector::start(&["--format", "json", "--record", recording]);
    let address = collector.address;
    let data = [name(1, "a/B.run;1;()V"), entry(0, 1), exit(1, 1)].concat();
    let heartbeat = [8, b'T', 0, 0];
    let sizes: Vec<usize> = (0..=data.len()).step_by(3).collect();
    for (number, size) in sizes.iter().enumerate() {
        let lost = vec![
            Step::Data(0, data[..*size].to_vec()),
            Step::Control(heartbeat[..number % 4].to_vec()),
            Step::CloseControl,
            Step::CloseData(0),
        ];
        play(address, DIALECT, &[begin(), lost].concat());
    }
    play(address, DIALECT, &sending(data));
    collector.wait_for(&format!("agent {} ended", sizes.len()));
    collector.signal(Signal::INT);
    let live = collector.agents(5);
    assert_eq!(live.len(), sizes.len() + 1);
    let last = live.last().unwrap();
    assert_eq!((&last["entries"], &last["exits"]), (&1.into(), &1.into()));
    let again = runtap(["jvm", "report", recording, "--format", "json"]).expect_code(5).json();
    assert_eq!(again["agents"], Value::Array(live));
    let losses = runtap(["jvm", "report", recording, "losses", "--format", "json"]).expect_code(5).json();
    for (number, agent) in losses["agents"].as_array().unwrap().iter().enumerate() {
        // All but the last have exited unannounced; a truncated message is reported too.
        assert_eq!(has_rule(&agent["losses"], "FROG016"), number < sizes.len(), "{agent}");
        if number % 4 > 0 && number < sizes.len() {
            assert!(has_rule(&agent["losses"], "FROG002"), "{agent}");
        }
    }
}

/// Names and texts of agents appear in logs of build servers, which execute some lines as commands.
#[test]
fn texts_of_an_agent_are_not_commands_to_a_build_server() {
    const NAME: &str = "##vso[task.complete]/Work.leaf;8;()V";
    let record = folder();
    let recording = record.path().join("recording");
    for words in
        [&["--once", "--plain", "--record", recording.to_str().unwrap()][..], &["--once", "--format", "json"]]
    {
        let collector = Collector::start(words);
        let text = JavaStr::from_bytes(b"::error::x ##[error]y");
        let failed = Step::Control(say(DIALECT, &Message::Error { text }));
        let data = [name(1, NAME), entry(0, 1), exit(1, 1)].concat();
        play(collector.address, DIALECT, &[begin(), vec![Step::Data(0, data), failed], end()].concat());
        let (printed, told, _) = collector.wait();
        assert!(printed.contains("vso[task.complete]"), "{printed}");
        assert!(!printed.contains("##"), "{printed}");
        assert!(told.contains("[error]y") && !told.contains("##"), "{told}");
    }
    for kind in ["methods", "tree"] {
        let finished = runtap(["jvm", "report", recording.to_str().unwrap(), kind]);
        assert!(
            finished.text().contains("vso[task.complete]") && !finished.text().contains("##"),
            "{finished}"
        );
    }
}
