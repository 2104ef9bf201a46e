//! An agent that connects long after HQ has started: its silence counts from its hello.

use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, Connection, Recorder as _};
use runtap_bytefrog_proto::{Command, Configuration, Dialect, Message, ModeByte, Rule, Side, to_bytes};
use runtap_jvm::recording::{Options, RecordingWriter, find, replay};

fn message(message: &Message<'_>) -> Vec<u8> {
    to_bytes(message, Dialect::V1).expect("version 1 has it")
}

/// Returns the violations of an agent that says hello after `hello` seconds, with `silence` seconds between its heartbeats.
fn wrong(hello: u64, silence: u64) -> Vec<Rule> {
    let folder = tempfile::tempdir().expect("a directory");
    let recorder = RecordingWriter::create(folder.path()).expect("it is empty");
    let mut tape = recorder.open(AgentId(0), Connection::Control).expect("it can be written");
    let beat = |mode: u8| message(&Message::Heartbeat { mode: ModeByte(mode), queue: 0 });
    let configuration = Configuration::default().to_message(Dialect::V1).expect("it fits");
    let said = [
        (Side::Agent, hello, vec![0, 1]),
        (Side::Hq, hello, configuration),
        (Side::Agent, hello, beat(b'I')),
        (Side::Agent, hello + silence, beat(b'I')),
        (Side::Hq, hello + silence, message(&Message::Command(Command::Stop))),
        (Side::Agent, hello + silence, beat(b'X')),
    ];
    for (side, seconds, bytes) in said {
        tape.write(side, Duration::from_secs(seconds), &bytes).expect("there is room");
    }
    tape.end(Duration::from_secs(hello + silence)).expect("there is room");
    drop(tape);
    let recorded = find(folder.path()).expect("a recording");
    let played = replay(&recorded[0], &Options::default()).expect("it can be read");
    played.violations.iter().map(|(_, violation)| violation.rule).collect()
}

#[test]
fn an_agent_that_comes_late_was_not_silent() {
    assert_eq!(wrong(0, 1), []);
    assert_eq!(wrong(60, 1), []);
    assert_eq!(wrong(60, 5), [Rule::HeartbeatMissing]);
}
