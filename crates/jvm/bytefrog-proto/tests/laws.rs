//! Properties of all messages and all bytes.

mod common;

use std::time::Duration;

use common::{seed, text};
use proptest::{collection::vec, prelude::*};
use runtap_bytefrog_proto::{
    Channel, Configuration, DecodeError, Decoder, Dialect, EncodeError, Extension, JavaStr, JavaString,
    Limits, Message, RecordMode, Side, Stream, WhenSlow, agent, decode, hq, render, to_bytes,
};

fn dialect() -> impl Strategy<Value = Dialect> {
    (0..Dialect::ALL.len()).prop_map(|i| Dialect::ALL[i])
}

/// Returns the streams on which a message may be sent.
fn streams(message: &Message<'_>, dialect: Dialect) -> Vec<Stream> {
    all_streams(Some(dialect))
        .into_iter()
        .filter(|stream| message.id().belongs(stream.channel, stream.from))
        .collect()
}

fn all_streams(dialect: Option<Dialect>) -> Vec<Stream> {
    [Channel::Control, Channel::Data]
        .into_iter()
        .flat_map(|channel| [Side::Agent, Side::Hq].map(|from| Stream { channel, from, dialect }))
        .collect()
}

/// Returns a decoder's results for chunks: messages as text with their offsets, the error, the remaining bytes.
fn said<'a>(
    stream: Stream,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (Vec<String>, Option<DecodeError>, usize) {
    let limits = Limits { configuration: 200 };
    let mut decoder = Decoder::with_limits(stream, limits);
    let mut all = Vec::new();
    for chunk in chunks {
        let read = decoder.feed(chunk, |offset, message| {
            all.push(format!("{offset} {message:?}"));
            None
        });
        if let Err(error) = read {
            assert_eq!(decoder.feed(b"x", |_, _| panic!("after an error")), Err(error.clone()));
            return (all, Some(error), 0);
        }
    }
    (all, None, decoder.leftover())
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let numbers = (any::<u8>(), any::<[i32; 4]>(), any::<(bool, u32)>(), 0..3u8, 0..3u8);
    (numbers, vec(text(), 0..4), vec(text(), 0..4)).prop_map(
        |(
            (run, [heartbeat, budget, retry, senders], (coarse, interval), record, slow),
            exclusions,
            inclusions,
        )| {
            Configuration {
                run,
                heartbeat_interval: heartbeat,
                exclusions,
                inclusions,
                buffer_memory_budget: budget,
                queue_retry_count: retry,
                data_senders: senders,
                extension: Extension {
                    record: [RecordMode::Full, RecordMode::Counts, RecordMode::Coverage][usize::from(record)],
                    coarse_clock: coarse,
                    when_slow: [WhenSlow::Block, WhenSlow::Drop, WhenSlow::Counts][usize::from(slow)],
                    snapshot_interval: interval,
                },
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(seed in seed(), dialect in dialect()) {
        let message = seed.message(dialect);
        let bytes = match to_bytes(&message, dialect) {
            Ok(bytes) => bytes,
            Err(error) => {
                let refused = matches!(error, EncodeError::NotInDialect { .. });
                prop_assert!(refused, "{}", error);
                // Exits have one form in each dialect; all other messages are rejected by their id.
                let exit = matches!(message, Message::Exit { .. });
                prop_assert!(exit || !message.id().is_in(dialect));
                return Ok(());
            }
        };
        let streams = streams(&message, dialect);
        prop_assert!(!streams.is_empty());
        for stream in streams {
            let (read, size) = decode(&bytes, 0, stream, Limits::default()).unwrap();
            prop_assert_eq!((&read, size), (&message, bytes.len()));
            prop_assert_eq!(render::fields(&read).is_empty(), bytes.len() == 1);
            for n in 0..bytes.len() {
                let error = decode(&bytes[..n], 9, stream, Limits::default()).unwrap_err();
                prop_assert!(error.is_incomplete() && error.offset >= 9, "{}", error);
            }
        }
        // On all other streams the message is rejected.
        for stream in all_streams(Some(dialect)) {
            let reads = decode(&bytes, 0, stream, Limits::default()).is_ok();
            prop_assert_eq!(reads, message.id().belongs(stream.channel, stream.from));
        }
    }

    #[test]
    fn bytes_that_are_read_are_written_alike(bytes: Vec<u8>, first in 0..0x77u8, dialect in dialect()) {
        let bytes = [&[first][..], &bytes].concat();
        for stream in all_streams(Some(dialect)) {
            if let Ok((message, size)) = decode(&bytes, 0, stream, Limits::default()) {
                prop_assert_eq!(to_bytes(&message, dialect).unwrap(), &bytes[..size]);
            }
        }
    }

    #[test]
    fn chunks_do_not_matter(
        seeds in vec(seed(), 0..6), junk: Vec<u8>, size in 1..50usize, dialect in dialect(), known: bool
    ) {
        for stream in all_streams(known.then_some(dialect)) {
            let mut bytes = Vec::new();
            for seed in &seeds {
                let message = seed.message(dialect);
                if message.id().belongs(stream.channel, stream.from) {
                    bytes.extend(to_bytes(&message, dialect).unwrap_or_default());
                }
            }
            bytes.extend(&junk);
            let whole = said(stream, std::iter::once(&bytes[..]));
            prop_assert_eq!(said(stream, bytes.chunks(size)), whole);
        }
    }

    #[test]
    fn configurations_come_back(configuration in configuration(), dialect in dialect()) {
        let payload = configuration.payload(dialect).unwrap();
        let (read, class) = Configuration::decode(&payload, dialect.framing()).unwrap();
        prop_assert_eq!(class.is_some(), dialect.hello() == 1);
        let extension = if dialect == Dialect::F1 { configuration.extension } else { Extension::default() };
        prop_assert_eq!(&read, &Configuration { extension, ..configuration });
        prop_assert_eq!(read.payload(dialect).unwrap(), &payload[..]);
        for n in 0..payload.len() {
            prop_assert!(Configuration::decode(&payload[..n], dialect.framing()).is_err());
        }
    }

    #[test]
    fn any_bytes_as_a_configuration(mut payload: Vec<u8>, start in 0..300usize, dialect in dialect()) {
        // Random bytes inside a valid stream get further than random bytes alone.
        let good = Configuration { inclusions: vec![JavaString::from("^a/")], ..Configuration::default() };
        let mut all = good.payload(dialect).unwrap();
        all.truncate(start);
        all.append(&mut payload);
        if let Ok((read, _)) = Configuration::decode(&all, dialect.framing()) {
            let again = read.payload(dialect).unwrap();
            prop_assert_eq!(Configuration::decode(&again, dialect.framing()).unwrap().0, read);
        }
    }

    #[test]
    fn the_machines_take_anything_in_any_chunks(
        seeds in vec(seed(), 0..6), junk: Vec<u8>, size in 1..40usize, dialect in dialect()
    ) {
        let now = Duration::ZERO;
        let run_hq = |bytes: &[u8], size: usize| {
            let mut control = hq::Control::new(hq::Settings::default(), now);
            let mut all = hq::Output::default();
            // The configuration is sent as soon as hello is complete, however its bytes arrived.
            for chunk in [&[0, dialect.hello()][..]].into_iter().chain(bytes.chunks(size)) {
                let output = control.handle_bytes(chunk, now);
                if output.events.iter().any(|event| matches!(event, hq::Event::Hello { .. })) {
                    control.configure(&Configuration::default()).unwrap();
                }
                all.events.extend(output.events);
                all.transmit.extend(output.transmit);
                all.close |= output.close;
            }
            (all, control.handle_close(), control.state())
        };
        let run_agent = |bytes: &[u8], size: usize| {
            let mut control = agent::Control::new(dialect);
            let mut all = agent::Output::default();
            for chunk in bytes.chunks(size) {
                let output = control.handle_bytes(chunk);
                all.events.extend(output.events);
                all.transmit.extend(output.transmit);
                all.close |= output.close;
            }
            (all, control.state())
        };
        let (mut to_hq, mut to_agent) = (Vec::new(), Configuration::default().to_message(dialect).unwrap());
        for seed in &seeds {
            let message = seed.message(dialect);
            let bytes = to_bytes(&message, dialect).unwrap_or_default();
            if message.id().belongs(Channel::Control, Side::Agent) {
                to_hq.extend(&bytes);
            }
            if message.id().belongs(Channel::Control, Side::Hq) {
                to_agent.extend(&bytes);
            }
        }
        to_hq.extend(&junk);
        to_agent.extend(&junk);
        prop_assert_eq!(run_hq(&to_hq, size), run_hq(&to_hq, to_hq.len().max(1)));
        prop_assert_eq!(run_agent(&to_agent, size), run_agent(&to_agent, to_agent.len().max(1)));
    }
}

#[test]
fn a_table_of_too_many_rows_is_refused_before_it_is_awaited() {
    let stream = Stream::data_from_agent(Some(Dialect::F1));
    let mut bytes = vec![0x70];
    bytes.extend([0; 20]);
    bytes.extend(65_537u32.to_be_bytes());
    let error = decode(&bytes, 0, stream, Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "events at offset 21: is 65537, more than the allowed 65536");
    let mut short = bytes.clone();
    short.truncate(21);
    short.extend(65_536u32.to_be_bytes());
    assert!(decode(&short, 0, stream, Limits::default()).unwrap_err().is_incomplete());
}

#[test]
fn what_does_not_fit_is_refused_with_its_field() {
    let long = JavaString::from("x".repeat(65_536).as_str());
    let map = Message::MapMethod { method: 1, signature: long.as_java_str() };
    let error = to_bytes(&map, Dialect::V1).unwrap_err();
    assert_eq!(error.to_string(), "signature is 65536 long, but the format allows at most 65535");
    let name = Message::MapThreadName { thread: 65_536, time: 0, name: JavaStr::default() };
    let error = to_bytes(&name, Dialect::V4).unwrap_err();
    assert_eq!(error.to_string(), "thread id 65536 is out of range: version 4 allows at most 65535");
    assert_eq!(to_bytes(&name, Dialect::F1).unwrap().len(), 15);
    let big =
        Configuration { inclusions: vec!["x".repeat(70_000).as_str().into()], ..Configuration::default() };
    assert!(big.to_message(Dialect::V4).is_err());
    assert!(big.to_message(Dialect::F1).is_ok());
    assert_eq!(
        big.to_message(Dialect::V1).unwrap_err().to_string(),
        "pattern is 70000 long, but the format allows at most 65535"
    );
}
