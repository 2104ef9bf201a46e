//! The timing of the original sides: each message is written in one call, replies precede data, and commands were sent at the
//! times of the log. This crate's HQ, run at those times, finds no agent late.

use std::time::Duration;

use runtap_bytefrog_proto::{Channel, Command, Decoder, Dialect, MessageId, Mode, Side, Stream, agent, hq};
use runtap_testkit::{JvmRecording, jvm_recordings, require};

/// Returns the reads or writes of a stream, with their times.
fn chunks(recording: &JvmRecording, stream: &str) -> Vec<(f64, Vec<u8>)> {
    let mut rest = &recording.bytes(stream)[..];
    let mut chunks = Vec::new();
    for (at, size) in recording.chunks(stream) {
        let (chunk, behind) = rest.split_at(size);
        chunks.push((at, chunk.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty(), "{} {stream}: {} bytes without a time", recording.name, rest.len());
    chunks
}

fn dialect(recording: &JvmRecording) -> Dialect {
    Dialect::of_hello(recording.version()).expect("a known version")
}

fn time(milliseconds: f64) -> Duration {
    Duration::from_secs_f64(milliseconds / 1000.0)
}

#[test]
fn every_byte_has_a_time_and_times_do_not_go_back() {
    for recording in require!(jvm_recordings()) {
        for stream in recording.streams() {
            let chunks = chunks(&recording, stream);
            assert!(!chunks.is_empty(), "{} {stream}", recording.name);
            assert!(chunks.is_sorted_by_key(|(at, _)| *at), "{} {stream}", recording.name);
        }
    }
}

/// HQ writes each message in one call, the configuration too. In one recording it does not, which crashes the agent.
#[test]
fn what_is_sent_are_whole_messages() {
    for recording in require!(jvm_recordings()) {
        for stream in recording.streams().filter(|stream| stream.rsplit('.').next() == Some("h2a")) {
            let channel = if stream.starts_with("ctl") { Channel::Control } else { Channel::Data };
            let from = Side::Hq;
            let mut decoder = Decoder::new(Stream { channel, from, dialect: Some(dialect(&recording)) });
            let mut split = 0;
            for (_, chunk) in chunks(&recording, stream) {
                let mut messages = 0;
                let read = decoder.feed(&chunk, |_, _| {
                    messages += 1;
                    None
                });
                assert_eq!(read, Ok(()));
                assert!(messages <= 1, "{} {stream}: {messages} in a write", recording.name);
                split += usize::from(decoder.leftover() > 0);
            }
            let expected = recording.name == "v1_config_split" && channel == Channel::Control;
            assert_eq!(split, usize::from(expected), "{} {stream}", recording.name);
        }
    }
}

/// An agent sends data hello, and nothing else until it has a reply.
#[test]
fn events_come_behind_the_reply_and_behind_start() {
    for recording in require!(jvm_recordings()) {
        let start =
            chunks(&recording, "ctl.h2a").into_iter().find(|(_, bytes)| *bytes == [Command::Start.id()]);
        for name in recording.data() {
            let heard = chunks(&recording, &format!("{name}.a2h"));
            let said = chunks(&recording, &format!("{name}.h2a"));
            let [(reply, bytes)] = &said[..] else { panic!("{}: one reply", recording.name) };
            assert_eq!(
                (bytes.as_slice(), heard[0].1[0]),
                (&[MessageId::DATA_HELLO_REPLY.0][..], MessageId::DATA_HELLO.0)
            );
            let (start, _) = start.as_ref().expect("there is data");
            assert!(start <= &heard[0].0 && heard[0].0 <= *reply, "{} {name}", recording.name);
            assert_eq!(heard[0].1.len(), 2, "{} {name}", recording.name);
            assert!(heard[1..].iter().all(|(at, _)| at >= reply), "{} {name}", recording.name);
        }
    }
}

/// Given commands at the recorded times, this crate's HQ sends the recorded chunks, and finds no agent late:
/// heartbeats come in time, and modes follow commands.
#[test]
fn the_machine_at_the_recorded_times() {
    for recording in require!(jvm_recordings()) {
        let name = &recording.name;
        let mut all: Vec<(f64, bool, Vec<u8>)> = Vec::new();
        for (stream, sent) in [("ctl.a2h", false), ("ctl.h2a", true)] {
            all.extend(chunks(&recording, stream).into_iter().map(|(at, bytes)| (at, sent, bytes)));
        }
        all.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let logged: Vec<f64> = recording.expected["log"]
            .as_array()
            .expect("a log")
            .iter()
            .filter_map(|line| line.as_str()?.split_once(" ms sent ")?.0.parse().ok())
            .collect();
        let (_, _, hello) = all.first().expect("hello");
        assert!(hello.len() == 2 || hello.len() == 6, "{name}: hello comes alone: {hello:?}");
        let mut control = hq::Control::new(hq::Settings::default(), time(all[0].0));
        let told = agent::Control::new(dialect(&recording)).handle_bytes(&recording.bytes("ctl.h2a"));
        let mut configurations = told.events.into_iter().filter_map(|event| match event {
            agent::Event::Configured(configuration) => Some(configuration),
            _ => None,
        });
        // The rest of a message that was written in pieces.
        let mut unsaid: Vec<u8> = Vec::new();
        let mut commands = Vec::new();
        for (at, sent, bytes) in all {
            let now = time(at);
            assert_eq!(control.handle_timeout(now), [], "{name} at {at} ms");
            if !sent {
                let output = control.handle_bytes(&bytes, now);
                assert!(!output.close, "{name} at {at} ms: {:?}", output.events);
                continue;
            }
            if !unsaid.is_empty() {
                assert_eq!(unsaid, bytes, "{name} at {at} ms");
                unsaid.clear();
                continue;
            }
            let mut ours = match bytes[0] {
                1 => {
                    if control.configuration().is_some() {
                        commands.push(at);
                    }
                    let configuration = configurations.next().expect("as many as were sent");
                    control.configure(&configuration).expect("before start")
                }
                0x63 => {
                    commands.push(at);
                    control.fail("boom")
                }
                id => {
                    commands.push(at);
                    let command = Command::ALL.into_iter().find(|command| command.id() == id);
                    control.command(command.expect("a command"), now).expect("legal")
                }
            };
            unsaid = ours.split_off(bytes.len().min(ours.len()));
            assert_eq!(ours, bytes, "{name} at {at} ms");
        }
        assert!(unsaid.is_empty(), "{name}");
        // The log has whole milliseconds.
        assert_eq!(commands.len(), logged.len(), "{name}");
        for (at, logged) in commands.iter().zip(logged) {
            assert!((at - logged).abs() < 1.5, "{name}: {at} and {logged}");
        }
        if name == "v1_pause" {
            assert_eq!(control.state().mode, Mode::ShuttingDown);
        }
    }
}
