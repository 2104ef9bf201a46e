//! Any bytes as one direction of a Bytefrog connection (first byte: direction and version; second: chunk size): no
//! panic, chunk sizes do not matter to the decoder and both sides' state machines, and decoded messages are encoded to
//! the bytes read. The bytes are also read as a configuration, which has to keep its meaning when it is written again.
#![no_main]

use std::time::Duration;

use runtap_bytefrog_proto::{
    Channel, Configuration, Decoder, Dialect, Limits, Side, Stream, agent, hq, render, to_bytes,
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([settings, chunk], bytes)) = input.split_first_chunk() else { return };
    let Some(dialect) = Dialect::ALL.get(usize::from(settings & 7)).copied() else { return };
    let channel = if settings & 8 == 0 { Channel::Data } else { Channel::Control };
    let from = if settings & 16 == 0 { Side::Agent } else { Side::Hq };
    let stream = Stream { channel, from, dialect: (settings & 32 == 0).then_some(dialect) };
    let size = usize::from(*chunk).max(1);
    let whole = bytes.len().max(1);
    assert_eq!(read(stream, bytes, size), read(stream, bytes, whole));
    assert_eq!(heard_by_hq(dialect, bytes, size), heard_by_hq(dialect, bytes, whole));
    assert_eq!(heard_by_agent(dialect, bytes, size), heard_by_agent(dialect, bytes, whole));
    if let Ok((configuration, _)) = Configuration::decode(bytes, dialect.framing()) {
        let again = configuration.payload(dialect).expect("no longer than it was");
        let read = Configuration::decode(&again, dialect.framing()).expect("it was written");
        assert_eq!(read.0, configuration);
    }
});

fn read(stream: Stream, bytes: &[u8], size: usize) -> (Vec<String>, String) {
    let mut decoder = Decoder::with_limits(stream, Limits { configuration: 1 << 16 });
    let (mut said, mut end) = (Vec::new(), String::new());
    for chunk in bytes.chunks(size) {
        let result = decoder.feed(chunk, |offset, message| {
            let start = usize::try_from(offset).expect("inside");
            // The layout is that of the dialect before a hello changes it.
            if let Some(dialect) = stream.dialect {
                let again = to_bytes(&message, dialect).expect("it was read in this dialect");
                assert_eq!(bytes.get(start..start + again.len()), Some(&again[..]));
            }
            said.push(format!("{offset} {message:?} {:?}", render::fields(&message)));
            None
        });
        if let Err(error) = result {
            end = error.to_string();
            break;
        }
    }
    if end.is_empty() {
        end = decoder.leftover().to_string();
    }
    (said, end)
}

fn heard_by_hq(dialect: Dialect, bytes: &[u8], size: usize) -> String {
    let mut control = hq::Control::new(hq::Settings::default(), Duration::ZERO);
    control.handle_bytes(&[0, dialect.hello()], Duration::ZERO);
    control.configure(&Configuration::default()).expect("after hello");
    let (mut events, mut transmit) = (Vec::new(), Vec::new());
    for chunk in bytes.chunks(size) {
        let output = control.handle_bytes(chunk, Duration::ZERO);
        events.extend(output.events);
        transmit.extend(output.transmit);
    }
    format!("{events:?} {transmit:?} {:?} {:?}", control.handle_close(), control.state())
}

fn heard_by_agent(dialect: Dialect, bytes: &[u8], size: usize) -> String {
    let mut control = agent::Control::new(dialect);
    let (mut events, mut transmit) = (Vec::new(), Vec::new());
    for chunk in bytes.chunks(size) {
        let output = control.handle_bytes(chunk);
        events.extend(output.events);
        transmit.extend(output.transmit);
    }
    format!("{events:?} {transmit:?} {:?}", control.state())
}
