//! Any bytes from a test application (first byte: its mode; second: chunk size): no panic, every decoded message is
//! encoded and decoded to an equal one, a frame is rendered without an error exactly if it can be decoded, and the
//! server's events do not depend on the chunks. Only the rule about overlapping requests depends on them.
#![no_main]

use runtap_mtp_proto::{
    Frame, FrameReader, Handshake, HandshakeKey, Limits, Message, MessageId, Rule, Versions, host,
    is_old_layout,
    render::Rendering,
    server::{Application, Event, Mode, Pipe, Settings},
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([settings, chunk], stream)) = input.split_first_chunk() else { return };
    let mut reader = FrameReader::default();
    reader.feed(stream);
    while let Ok(Some(frame)) = reader.next_frame() {
        laws(&frame);
    }
    let pieces = said(*settings, stream, usize::from(*chunk).max(1));
    assert_eq!(pieces, said(*settings, stream, stream.len().max(1)));
    answer(stream);
});

fn laws(frame: &Frame<'_>) {
    let limits = Limits::default();
    let read = Message::decode(frame, limits);
    let rendering = Rendering::new(frame, limits);
    assert!(rendering.lines().len() >= rendering.fields.len());
    // A handshake must not have a duplicate key, but can be rendered nevertheless.
    assert!(read.is_ok() == rendering.error.is_none() || frame.id == MessageId::HANDSHAKE);
    assert!(rendering.error.is_some() || rendering.error_path.is_empty());
    is_old_layout(frame);
    if let Ok(message) = read {
        let bytes = message.to_frame().expect("no longer than it was");
        let (again, size) = Frame::parse(&bytes, limits).expect("a whole frame");
        assert_eq!(size, bytes.len());
        assert_eq!(Message::decode(&again, limits), Ok(message));
    }
}

fn said(settings: u8, stream: &[u8], chunk: usize) -> String {
    let mut with =
        Settings::new([Mode::Run, Mode::Discover, Mode::Help, Mode::Run][usize::from(settings & 3)]);
    with.is_ide = settings & 4 != 0;
    with.control_pipe = (settings & 8 != 0).then(|| "c".to_owned());
    if settings & 16 != 0 {
        with.versions = Versions::parse("1.0.0");
    }
    let pipe = if settings & 32 != 0 { Pipe::Control } else { Pipe::Data };
    let mut application = Application::new(with);
    let mut connection = application.connect(pipe);
    let (mut events, mut replies, mut closed) = (Vec::new(), Vec::new(), false);
    for chunk in stream.chunks(chunk) {
        let output = application.handle_bytes(&mut connection, chunk);
        events.extend(output.events);
        replies.extend(output.transmit);
        closed |= output.close;
    }
    events.extend(application.handle_close(&mut connection).events);
    events.extend(application.handle_exit(Some(0)).events);
    let overlap =
        |event: &Event| matches!(event, Event::Violation(violation) if violation.rule == Rule::Overlap);
    events.retain(|event| !overlap(event));
    format!("{events:?} {replies:?} {closed}")
}

/// Reads the bytes as answers of a server.
fn answer(stream: &[u8]) {
    let mut host = host::Connection::data();
    let needed = [
        (HandshakeKey::ARCHITECTURE, "X64"),
        (HandshakeKey::FRAMEWORK, "none"),
        (HandshakeKey::SUPPORTED_VERSIONS, "1.0.0;1.4.0"),
        (HandshakeKey::HOST_TYPE, "TestHost"),
        (HandshakeKey::MODULE_PATH, "/a"),
        (HandshakeKey::EXECUTION_ID, "e"),
        (HandshakeKey::INSTANCE_ID, "i"),
    ];
    let handshake = needed.into_iter().fold(Handshake::new(), |all, (key, value)| all.with(key, value));
    let request = host.handshake(handshake);
    assert!(request.is_ok(), "{request:?}");
    while let Ok(Some(_)) = host.handle_bytes(stream) {
        if host.request(&Message::Unknown { id: MessageId(99), body: Vec::new() }).is_err() {
            break;
        }
    }
    let _ = host.handle_eof();
}
