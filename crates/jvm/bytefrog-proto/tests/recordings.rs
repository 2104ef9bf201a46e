//! The recordings of the original agents are decoded and encoded again, and replayed through both sides' machines.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_bytefrog_proto::{
    Channel, Command, Configuration, Decoder, Dialect, Exit, Framing, Message, Mode, Rule, Side, Stream,
    agent, hq, render, to_bytes,
};
use runtap_testkit::{JvmRecording, jvm_configurations, jvm_recordings, require, shared_data};

fn file(name: &str) -> Vec<u8> {
    shared_data(format!("bytefrog/{name}")).expect("the folder is there")
}

fn dialect(recording: &JvmRecording) -> Dialect {
    Dialect::of_hello(recording.version()).expect("a known version")
}

fn stream(name: &str, dialect: Dialect) -> Stream {
    let channel = if name.starts_with("ctl") { Channel::Control } else { Channel::Data };
    let from = if name.ends_with("a2h") { Side::Agent } else { Side::Hq };
    Stream { channel, from, dialect: Some(dialect) }
}

fn there() -> Result<(), runtap_testkit::Skip> {
    shared_data("bytefrog/v1_basic.json").map(drop)
}

/// Calls a function with every message of a stream, which ends with a complete message.
fn each(bytes: &[u8], stream: Stream, mut take: impl FnMut(u64, Message<'_>)) {
    let mut decoder = Decoder::new(stream);
    let read = decoder.feed(bytes, |offset, message| {
        take(offset, message);
        None
    });
    assert_eq!(read, Ok(()));
    assert_eq!((decoder.leftover(), decoder.offset()), (0, bytes.len() as u64));
}

#[test]
fn counts_equal_the_answers_and_every_message_is_written_as_it_was_read() {
    for recording in require!(jvm_recordings()) {
        let (scenario, dialect) = (&recording.name, dialect(&recording));
        for (name, expected) in recording.expected["streams"].as_object().expect("streams") {
            let bytes = recording.bytes(name);
            assert_eq!(expected["bytes"], bytes.len(), "{scenario} {name}");
            let mut counts = BTreeMap::new();
            let mut again = Vec::new();
            each(&bytes, stream(name, dialect), |offset, message| {
                assert_eq!(offset, again.len() as u64);
                again.extend(to_bytes(&message, dialect).expect("it was read in this dialect"));
                *counts.entry(message.id().name().expect("a known message").to_owned()).or_insert(0u64) += 1;
                assert!(message.texts().all(|(_, text)| text.is_valid()));
                assert_eq!(render::fields(&message).is_empty(), again.len() as u64 - offset == 1);
            });
            assert_eq!(again, bytes, "{scenario} {name}");
            if let Some(answers) = expected["counts"].as_object() {
                let answers: BTreeMap<String, u64> = answers
                    .iter()
                    .map(|(name, count)| (name.clone(), count.as_u64().expect("a count")))
                    .collect();
                assert_eq!(counts, answers, "{scenario} {name}");
                assert_eq!(expected["leftover"], 0);
            }
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_into_its_recorded_chunks_says_the_same() {
    require!(there());
    for (scenario, name, dialect) in [
        ("v1_basic", "data0.a2h", Dialect::V1),
        ("v1_basic", "ctl.a2h", Dialect::V1),
        ("v4_basic", "data0.a2h", Dialect::V4),
    ] {
        let bytes = file(&format!("{scenario}.{name}.bin"));
        let mut whole = Vec::new();
        each(&bytes, stream(name, dialect), |offset, message| whole.push((offset, format!("{message:?}"))));
        for size in [1, 2, 7, 16, 4096] {
            let mut decoder = Decoder::new(Stream { dialect: None, ..stream(name, dialect) });
            let mut all = Vec::new();
            for chunk in bytes.chunks(size) {
                let read = decoder.feed(chunk, |offset, message| {
                    all.push((offset, format!("{message:?}")));
                    matches!(message, Message::DataHello { .. }).then_some(dialect)
                });
                assert_eq!(read, Ok(()));
            }
            assert!(all == whole, "{scenario} {name} in chunks of {size}");
        }
    }
}

#[test]
fn sequences_are_contiguous() {
    for recording in require!(jvm_recordings()) {
        let dialect = dialect(&recording);
        let mut seen = Vec::new();
        let mut late = 0;
        for name in recording.data().map(|name| format!("{name}.a2h")) {
            let mut last = 0;
            each(&recording.bytes(&name), stream(&name, dialect), |_, message| {
                let sequence = match message {
                    Message::Entry { at, .. }
                    | Message::Exit { at, .. }
                    | Message::Exception { at, .. }
                    | Message::Bubble { at, .. }
                    | Message::Visit { at, .. } => at.sequence,
                    Message::Marker { sequence, .. } => sequence,
                    _ => return,
                };
                late += u64::from(sequence < last);
                last = sequence;
                seen.push(sequence);
            });
        }
        seen.sort_unstable();
        let scenario = &*recording.name;
        assert!(seen.iter().copied().eq(0..seen.len() as u64), "{scenario}");
        match scenario {
            "v1_basic" => assert_eq!(seen.len(), 5134),
            // The agent was stopped before it sent any.
            "v1_config_split" | "v1_never_start" => assert!(seen.is_empty()),
            _ => assert!(!seen.is_empty()),
        }
        // Version 4 keeps the order within a connection, version 1 does not.
        assert!(late == 0 || dialect == Dialect::V1, "{scenario}: {late}");
    }
}

#[test]
fn each_method_has_the_calls_that_another_tool_has_counted() {
    let mut compared = 0;
    for recording in require!(jvm_recordings()) {
        let Some(oracle) = recording.oracle() else { continue };
        let oracle: BTreeMap<String, [u64; 3]> = oracle
            .iter()
            .map(|line| {
                let cells: Vec<&str> = line.split('\t').collect();
                let number = |i: usize| cells[i].parse().expect("a number");
                (cells[0].to_owned(), [number(1), number(2), number(3)])
            })
            .collect();
        assert_eq!(oracle.len(), 20);
        let dialect = dialect(&recording);
        let mut names = BTreeMap::new();
        let mut counts: BTreeMap<u32, [u64; 3]> = BTreeMap::new();
        each(&recording.bytes("data0.a2h"), stream("data0.a2h", dialect), |_, message| {
            let (method, what) = match message {
                Message::MapMethod { method, signature } => {
                    assert_eq!(names.insert(method, signature.to_string()), None);
                    return;
                }
                Message::Entry { method, .. } => (method, 0),
                Message::Exit { method, exit: Exit::Line(_) | Exit::Thrown(0), .. } => (method, 1),
                Message::Exit { method, .. } | Message::Bubble { method, .. } => (method, 2),
                _ => return,
            };
            counts.entry(method).or_default()[what] += 1;
        });
        let named: BTreeMap<String, [u64; 3]> =
            counts.into_iter().map(|(method, counts)| (names[&method].clone(), counts)).collect();
        assert_eq!(named, oracle, "{}", recording.name);
        compared += 1;
    }
    assert_eq!(compared, 3);
}

fn configuration(recording: &JvmRecording) -> Configuration {
    let config = &recording.expected["config"];
    let number = |key: &str| i32::try_from(config[key].as_i64().expect("a number")).expect("it fits");
    let list = |key: &str| {
        config[key]
            .as_array()
            .expect("a list")
            .iter()
            .map(|text| text.as_str().expect("a text").into())
            .collect()
    };
    Configuration {
        run: u8::try_from(number("runId")).expect("a byte"),
        heartbeat_interval: number("heartbeat"),
        exclusions: list("excl"),
        inclusions: list("incl"),
        buffer_memory_budget: number("budget"),
        queue_retry_count: number("retry"),
        data_senders: number("senders"),
        ..Configuration::default()
    }
}

#[test]
fn both_configurations_of_the_original_class() {
    let all = require!(jvm_configurations());
    let first = Configuration {
        run: 7,
        heartbeat_interval: 500,
        exclusions: vec![".*".into()],
        inclusions: vec!["^demo/".into(), "^org/\u{e9}/[^/]+$".into()],
        ..Configuration::default()
    };
    let second = Configuration {
        run: 200,
        heartbeat_interval: 1000,
        buffer_memory_budget: 1_048_576,
        data_senders: 3,
        ..Configuration::default()
    };
    assert_eq!(all.len(), 2);
    for ((name, bytes), expected) in all.into_iter().zip([first, second]) {
        assert_eq!(expected.payload(Dialect::V1).expect("short patterns"), bytes, "{name}");
        let (read, class) = Configuration::decode(&bytes, Framing::Java).expect("a configuration");
        assert_eq!(read, expected);
        let class = class.expect("a class");
        assert_eq!(class.dialect(), Dialect::V1);
        assert_eq!(class.uid.cast_signed(), -4_660_117_618_158_655_806);
    }
}

/// What HQ's machine sends equals the recording, and the agent's machine responds to it as the recorded agent did.
#[test]
fn sent_commands_equal_the_recordings() {
    for recording in require!(jvm_recordings()) {
        let (scenario, dialect) = (&*recording.name, dialect(&recording));
        let (heard, sent) = (recording.bytes("ctl.a2h"), recording.bytes("ctl.h2a"));
        let now = Duration::from_secs(1);
        let mut control = hq::Control::new(hq::Settings::default(), now);
        let hello = if scenario == "v4_project_hello" { 6 } else { 2 };
        let output = control.handle_bytes(&heard[..hello], now);
        let project = (hello == 6).then_some(3);
        assert_eq!(output.events, [hq::Event::Hello { dialect, project }]);
        assert_eq!((output.transmit.len(), output.close), (0, false));
        let config = configuration(&recording);
        let mut bytes = control.configure(&config).expect("it has said hello");
        for line in recording.expected["log"].as_array().expect("a log") {
            let Some((_, hex)) = line.as_str().expect("a line").split_once(" ms sent ") else { continue };
            bytes.extend(match hex {
                "02" => control.change_mode(Mode::Tracing, now).expect("legal"),
                "03" => control.change_mode(Mode::ShuttingDown, now).expect("legal"),
                "04" => control.change_mode(Mode::Paused, now).expect("legal"),
                "05" | "07" => control.change_mode(Mode::Tracing, now).expect("legal"),
                "06" => control.change_mode(Mode::Suspended, now).expect("legal"),
                "630004626f6f6d" => control.fail("boom"),
                _ => {
                    // The log has only the start of the text.
                    assert!(hex.starts_with("0100000144ac"), "{hex}");
                    let second = Configuration {
                        run: 9,
                        heartbeat_interval: 150,
                        inclusions: vec!["^demo/Ticker".into()],
                        buffer_memory_budget: 163_840,
                        data_senders: 2,
                        ..config.clone()
                    };
                    control.configure(&second).expect("before start")
                }
            });
        }
        assert!(bytes == sent, "{scenario}");

        let rest = control.handle_bytes(&heard[hello..], now);
        let wrong: Vec<Rule> = rest.violations().map(|violation| violation.rule).collect();
        let closed: Vec<Rule> = control.handle_close().iter().map(|violation| violation.rule).collect();
        let expected: (&[Rule], &[Rule]) = match scenario {
            "v1_error_midrun" => (&[Rule::AgentError], &[]),
            "v1_never_start" | "v1_config_split" => (&[], &[Rule::EndWithoutShutdown]),
            _ => (&[], &[]),
        };
        assert_eq!((wrong.as_slice(), closed.as_slice()), expected, "{scenario}");

        let mut agent = agent::Control::new(dialect);
        assert_eq!(agent.hello(project).expect("the first"), heard[..hello]);
        let mut commands = Vec::new();
        for event in agent.handle_bytes(&sent).events {
            match event {
                agent::Event::Configured(read) => {
                    assert!(*read == config || read.run == 9, "{scenario}");
                }
                agent::Event::Command(command, _) => commands.push(command),
                agent::Event::Error { text } => assert_eq!(text.to_string(), "boom"),
                other => panic!("{scenario}: {other:?}"),
            }
        }
        let expected: &[Command] = match scenario {
            "v1_never_start" => &[],
            "v1_pause" => &[Command::Start, Command::Pause, Command::Unpause],
            "v1_suspend" | "v4_suspend" => &[Command::Start, Command::Suspend, Command::Unsuspend],
            "v1_stop_midrun" => &[Command::Start, Command::Stop],
            _ => &[Command::Start],
        };
        assert_eq!(commands, expected, "{scenario}");
    }
}

#[test]
fn data_connections_are_answered() {
    for recording in require!(jvm_recordings()) {
        let dialect = dialect(&recording);
        for name in recording.data() {
            let bytes = recording.bytes(&format!("{name}.a2h"));
            let mut data = hq::Data::new();
            let mut count = 0u64;
            let mut transmit = Vec::new();
            for chunk in [&bytes[..2], &bytes[2..]] {
                let output = data.handle_bytes(
                    chunk,
                    |run| (run == 7 || run == 9).then_some(dialect),
                    |_, _| count += 1,
                );
                assert_eq!((output.close, output.violations.len()), (false, 0));
                transmit.extend(output.transmit);
            }
            assert_eq!(data.handle_close(), None);
            assert_eq!(transmit, recording.bytes(&format!("{name}.h2a")));
            let counts =
                recording.expected["streams"][format!("{name}.a2h")]["counts"].as_object().expect("counts");
            assert_eq!(count + 1, counts.values().map(|count| count.as_u64().unwrap_or(0)).sum::<u64>());
            let mut agent = agent::Data::new(dialect);
            assert_eq!(agent::Data::hello(data.run().expect("it was said"))[..], bytes[..2]);
            assert_eq!(agent.handle_bytes(&transmit), Some(agent::Reply::Ready));
        }
    }
}

#[test]
fn signatures_are_as_described() {
    require!(there());
    let mut lambda = Vec::new();
    each(&file("v1_lambda.data0.a2h.bin"), stream("data0.a2h", Dialect::V1), |_, message| {
        if let Message::MapMethod { signature, .. } = message {
            lambda.push(signature.to_string());
        }
    });
    assert!(lambda.contains(&"demo/Lam.lambda$main$0;4106;(I)I".to_owned()), "{lambda:?}");
}
