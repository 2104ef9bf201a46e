//! Frames made by hand from the tables of the specification, of the notes on versions 2 to 4, and of
//! docs/bytefrog-f1.md, byte by byte. No recording of versions 2, 3 and F1 exists.

use runtap_bytefrog_proto::f1::{
    Batch, BatchEvent, BatchKind, Count, CountRows, Drop, DropReason, Hit, HitRows, Process, Rows,
};
use runtap_bytefrog_proto::{
    Channel, ClassOutcome, Command, Configuration, Decoder, Dialect, Exit, Extension, Framing, JavaString,
    Limits, Location, Message, Mode, RecordMode, Side, Stamp, Stream, WhenSlow, decode, to_bytes,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect()
}

/// Checks that a frame has this meaning on its stream, in these dialects and in no other.
fn check(hex: &str, message: &Message<'_>, channel: Channel, from: Side, dialects: &[Dialect]) {
    let bytes = bytes(hex);
    for dialect in Dialect::ALL {
        let stream = Stream { channel, from, dialect: Some(dialect) };
        let read = decode(&bytes, 0, stream, Limits::default());
        if dialects.contains(&dialect) {
            assert_eq!(read, Ok((*message, bytes.len())), "{hex} in {dialect}");
            assert_eq!(to_bytes(message, dialect), Ok(bytes.clone()), "{hex} in {dialect}");
        } else {
            assert!(read.as_ref().ok().is_none_or(|(read, _)| read != message), "{hex} in {dialect}");
        }
    }
}

fn control(hex: &str, message: &Message<'_>, dialects: &[Dialect]) {
    check(hex, message, Channel::Control, Side::Agent, dialects);
}

fn data(hex: &str, message: &Message<'_>, dialects: &[Dialect]) {
    check(hex, message, Channel::Data, Side::Agent, dialects);
}

const OLD: &[Dialect] = &[Dialect::V1, Dialect::V1CodePulse, Dialect::V2, Dialect::V3, Dialect::V4];
const SHORT: &[Dialect] = &[Dialect::V1CodePulse, Dialect::V2, Dialect::V3, Dialect::V4];
const LINES: &[Dialect] = &[Dialect::V3, Dialect::V4];
const F1: &[Dialect] = &[Dialect::F1];

fn at() -> Stamp {
    Stamp { time: 0x0102_0304, sequence: 0x0506_0708, thread: 0x1314 }
}

#[test]
fn control_messages() {
    control("00 01", &Message::Hello { version: 1 }, &Dialect::ALL);
    control("00 f1", &Message::Hello { version: 0xf1 }, &Dialect::ALL);
    control("10 04 00000003", &Message::ProjectHello { version: 4, project: 3 }, &[Dialect::V4]);
    let beat = Message::Heartbeat { mode: Mode::Tracing.byte(), queue: 12 };
    control("08 54 000c", &beat, &Dialect::ALL);
    control("09 80000001", &Message::DataBreak { sequence: 0x8000_0001 }, OLD);
    let name: JavaString = "a/B$é".into();
    let class = |outcome| Message::Class { outcome, name: name.as_java_str() };
    control("28 0006 612f4224c3a9", &class(ClassOutcome::Transformed), &Dialect::ALL);
    control("29 0006 612f4224c3a9", &class(ClassOutcome::Ignored), &Dialect::ALL);
    control("2a 0006 612f4224c3a9", &class(ClassOutcome::Failed), &Dialect::ALL);
    let text: JavaString = "boom".into();
    for (channel, from) in [
        (Channel::Control, Side::Agent),
        (Channel::Control, Side::Hq),
        (Channel::Data, Side::Agent),
        (Channel::Data, Side::Hq),
    ] {
        check("63 0004 626f6f6d", &Message::Error { text: text.as_java_str() }, channel, from, &Dialect::ALL);
    }
    let hq = |hex: &str, message: Message<'_>, dialects: &[Dialect]| {
        check(hex, &message, Channel::Control, Side::Hq, dialects);
    };
    for (hex, command) in ["02", "03", "04", "05", "06", "07"].into_iter().zip(Command::ALL) {
        hq(hex, Message::Command(command), &Dialect::ALL);
    }
    hq(
        "01 00000002 7b7d",
        Message::Configuration { payload: b"{}" },
        &[Dialect::V1, Dialect::V1CodePulse, Dialect::F1],
    );
    hq("01 0002 7b7d", Message::Configuration { payload: b"{}" }, &[Dialect::V2, Dialect::V3, Dialect::V4]);
    hq("76 01", Message::Snapshot { reset: true }, F1);
    check("1f", &Message::DataHelloReply, Channel::Data, Side::Hq, &Dialect::ALL);
}

#[test]
fn data_messages_of_versions_1_to_4() {
    data("1e c8", &Message::DataHello { run: 200 }, &Dialect::ALL);
    // A lone surrogate, and NUL.
    let name = JavaString::from_units([0xd83d, 0, 0x41]);
    let named = Message::MapThreadName { thread: 0x1314, time: 0x0102_0304, name: name.as_java_str() };
    data("0a 1314 01020304 0006 eda0bd c080 41", &named, OLD);
    let signature: JavaString = "a/B.c;9;()V".into();
    let map = Message::MapMethod { method: 0x090a_0b0c, signature: signature.as_java_str() };
    data("0b 090a0b0c 000b 612f422e633b393b282956", &map, &Dialect::ALL);
    let exception: JavaString = "a.E".into();
    let map = Message::MapException { exception: 0x0d0e_0f10, name: exception.as_java_str() };
    data("0c 0d0e0f10 0003 612e45", &map, &Dialect::ALL);
    let (at, method, exception) = (at(), 0x090a_0b0c, 0x0d0e_0f10);
    data("14 01020304 05060708 090a0b0c 1314", &Message::Entry { at, method }, OLD);
    let exit = Message::Exit { at, method, exit: Exit::Line(0x1112) };
    data("15 01020304 05060708 090a0b0c 1112 1314", &exit, &[Dialect::V1]);
    let exit = Message::Exit { at, method, exit: Exit::Thrown(1) };
    data("15 01020304 05060708 090a0b0c 01 1314", &exit, SHORT);
    let thrown = Message::Exception { at, method, exception, line: 0x1112 };
    data("16 01020304 05060708 090a0b0c 0d0e0f10 1112 1314", &thrown, OLD);
    let bubble = Message::Bubble { at, method, exception };
    data("17 01020304 05060708 090a0b0c 0d0e0f10 1314", &bubble, OLD);
    let (key, value): (JavaString, JavaString) = ("k".into(), "vv".into());
    let marker = Message::Marker {
        time: at.time,
        sequence: at.sequence,
        thread: None,
        key: key.as_java_str(),
        value: value.as_java_str(),
    };
    data("32 01020304 05060708 0001 6b 0002 7676", &marker, OLD);
    let place =
        Location { location: 1, method, start_line: 10, end_line: 11, start_char: 0xffff, end_char: 0xffff };
    let ours = [LINES, F1].concat();
    data("0d 00000001 090a0b0c 0000000a 0000000b ffff ffff", &Message::MapLocation(place), &ours);
    let visit = Message::Visit { at, method, location: 0x0d0e_0f10 };
    data("0e 01020304 05060708 090a0b0c 0d0e0f10 1314", &visit, LINES);
    data("0f 090a0b0c 00000007", &Message::LocationCount { method, count: 7 }, LINES);
}

#[test]
fn data_messages_of_f1() {
    let at = Stamp { time: 0x0102_0304_0506_0708, sequence: 0x1112_1314_1516_1718, thread: 0x2122_2324 };
    let stamp = "21222324 1112131415161718 0102030405060708";
    let entry = BatchEvent { kind: BatchKind::Entry, method: 5, delta: 7 };
    let exit = BatchEvent { kind: BatchKind::Exit, method: 0x3fff_ffff, delta: u32::MAX };
    let odd = BatchEvent { kind: BatchKind::Reserved(2), method: 0, delta: 0 };
    let rows = [entry, exit, odd].map(BatchEvent::to_bytes);
    let batch = Batch { thread: at.thread, sequence: at.sequence, base: at.time, rows: Rows::new(&rows) };
    assert_eq!(batch.events().collect::<Vec<_>>(), [entry, exit, odd]);
    let hex = format!("70 {stamp} 00000003 0000000500000007 7fffffffffffffff 8000000000000000");
    data(&hex, &Message::Batch(batch), F1);
    let (method, exception) = (1, 2);
    let thrown = Message::Exception { at, method, exception, line: 0xffff };
    data(&format!("16 {stamp} 00000001 00000002 ffff"), &thrown, F1);
    data(&format!("17 {stamp} 00000001 00000002"), &Message::Bubble { at, method, exception }, F1);
    let (key, value): (JavaString, JavaString) = ("k".into(), "vv".into());
    let marker = Message::Marker {
        time: at.time,
        sequence: at.sequence,
        thread: Some(at.thread),
        key: key.as_java_str(),
        value: value.as_java_str(),
    };
    data(&format!("32 {stamp} 0001 6b 0002 7676"), &marker, F1);
    let named = Message::MapThreadName { thread: at.thread, time: at.time, name: key.as_java_str() };
    data("0a 21222324 0102030405060708 0001 6b", &named, F1);
    let end = Message::ThreadEnd { thread: at.thread, time: at.time };
    data("71 21222324 0102030405060708", &end, F1);
    let drop = Drop {
        thread: at.thread,
        sequence: at.sequence,
        time: at.time,
        count: Drop::UNKNOWN,
        reason: DropReason::FULL,
    };
    data(&format!("72 {stamp} ffffffffffffffff 01"), &Message::Drop(drop), F1);
    let count = Count { method: 1, calls: 2, thrown: 3, nanoseconds: 4 };
    let rows = [count.to_bytes()];
    let counts = CountRows { snapshot: 9, time: at.time, last: true, reset: true, rows: Rows::new(&rows) };
    assert_eq!(counts.counts().collect::<Vec<_>>(), [count]);
    let row = "00000001 0000000000000002 0000000000000003 0000000000000004";
    data(&format!("73 00000009 0102030405060708 03 00000001 {row}"), &Message::Counts(counts), F1);
    let hits = [Hit { method: 1, location: None }, Hit { method: 1, location: Some(2) }];
    let rows = hits.map(Hit::to_bytes);
    let coverage = HitRows { time: at.time, rows: Rows::new(&rows) };
    assert_eq!(coverage.hits().collect::<Vec<_>>(), hits);
    data("74 0102030405060708 00000002 00000001ffffffff 0000000100000002", &Message::Coverage(coverage), F1);
    let process =
        Process { pid: 42, wall: at.time, resolution: 1, jvm: key.as_java_str(), main: value.as_java_str() };
    control("75 0000002a 0102030405060708 00000001 0001 6b 0002 7676", &Message::Process(process), F1);
}

/// A complete run of a version, split into single bytes: the stream detects its version by itself.
#[test]
fn whole_streams_of_versions_2_and_3() {
    for (version, dialect) in [(2, Dialect::V2), (3, Dialect::V3)] {
        let control = bytes(&format!("00 0{version} 08490000 28 0001 61 08540001 0900000002 08580000"));
        let mut decoder = Decoder::new(Stream::control_from_agent());
        let mut ids = Vec::new();
        for byte in control {
            decoder
                .feed(&[byte], |_, message| {
                    ids.push(message.id().0);
                    None
                })
                .expect("a good stream");
        }
        assert_eq!(ids, [0, 8, 0x28, 8, 9, 8]);
        assert_eq!(decoder.stream().dialect, Some(dialect));

        let mut data = bytes(
            "1e 07 0b 00000000 0001 61
             14 00000001 00000000 00000000 0000
             14 00000002 00000001 00000000 0000
             15 00000003 00000002 00000000 01 0000",
        );
        if version == 3 {
            data.extend(bytes(
                "0d 00000000 00000000 00000005 00000005 ffff ffff
                 0e 00000003 00000003 00000000 00000000 0000
                 0f 00000000 00000001",
            ));
        }
        data.extend(bytes("15 00000004 00000004 00000000 00 0000"));
        let mut decoder = Decoder::new(Stream::data_from_agent(None));
        let mut ids = Vec::new();
        for byte in &data {
            let read = decoder.feed(&[*byte], |_, message| {
                ids.push(message.id().0);
                matches!(message, Message::DataHello { .. }).then_some(dialect)
            });
            read.expect("a good stream");
        }
        let lines: &[u8] = if version == 3 { &[0x0d, 0x0e, 0x0f] } else { &[] };
        assert_eq!(ids, [&[0x1e, 0x0b, 0x14, 0x14, 0x15], lines, &[0x15]].concat());
        // Version 2 has no lines.
        let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
        let visit = bytes("0e 00000003 00000003 00000000 00000000 0000");
        assert_eq!(decoder.feed(&visit, |_, _| None).is_ok(), version == 3);
    }
}

#[test]
fn json_configurations() {
    let hex_of_all = Configuration {
        run: 200,
        heartbeat_interval: 250,
        exclusions: vec![".*".into(), "a\"\\\n\u{1}\0é".into()],
        ..Configuration::default()
    };
    let text = "{\"bufferMemoryBudget\":25600,\"exclusions\":[\".*\",\"a\\\"\\\\\\n\\u0001\\u0000é\"],\
                \"heartbeatInterval\":250,\"inclusions\":[],\"numDataSenders\":1,\"queueRetryCount\":5,\"runId\":-56}";
    let mut message = bytes("01 00a3");
    message.extend(text.as_bytes());
    assert_eq!(text.len(), 0xa3);
    assert_eq!(hex_of_all.to_message(Dialect::V2).expect("short"), message);
    let f1 = Configuration {
        extension: Extension {
            record: RecordMode::Counts,
            coarse_clock: true,
            when_slow: WhenSlow::Drop,
            snapshot_interval: 1000,
        },
        ..Configuration::default()
    };
    let text = f1.payload(Dialect::F1).expect("short");
    let tail = b"\"record\":\"counts\",\"clock\":\"ms\",\"whenSlow\":\"drop\",\"snapshotInterval\":1000}";
    assert!(text.ends_with(tail), "{}", String::from_utf8_lossy(&text));
    let ok = |json: &str| Configuration::decode(json.as_bytes(), Framing::Json16).map(|(read, _)| read);
    let read =
        ok(" { \"later\" : [ { \"a\" : null } , -1.5e3, \"\\ud800\" ] , \"runId\" : 200 } ").expect("JSON");
    assert_eq!(read, Configuration { run: 200, ..Configuration::default() });
    for (json, error) in [
        ("", "configuration at offset 0: is not where JSON requires it"),
        ("{}", "runId at offset 2: is missing"),
        ("{\"runId\":256}", "runId at offset 9: is not a byte"),
        ("{\"runId\":1.5}", "runId at offset 10: is not an integer"),
        ("{\"runId\":1}}", "end of the configuration at offset 11: is followed by more data"),
        (
            "{\"runId\":1,\"numDataSenders\":3000000000}",
            "numDataSenders at offset 28: is not a 32-bit number",
        ),
        ("{\"record\":\"all\"}", "record at offset 10: has an unknown value"),
        ("{\"exclusions\":[\"\\x\"]}", "string at offset 16: has an invalid escape sequence"),
        ("{\"exclusions\":[\"a", "string at offset 17: is not terminated"),
        (&"{\"a\":[[".replace("[[", &"[".repeat(100)), "value at offset 37: is nested too deeply"),
    ] {
        assert_eq!(ok(json).expect_err(json).to_string(), format!("configuration: {error}"));
    }
}

/// Objects as other writers encode them: another capacity, a back-reference to a string, `Arrays.asList`.
#[test]
fn java_configurations_of_other_writers() {
    let original = Configuration { run: 7, inclusions: vec!["^a/".into()], ..Configuration::default() };
    let written = original.payload(Dialect::V1).expect("short");
    let one = bytes("00000001 7704 00000001 74 0003 5e612f 78");
    let at = written.windows(one.len()).position(|window| window == one).expect("the list of one");
    let read = |list: &str| {
        let mut changed = written[..at].to_vec();
        changed.extend(bytes(list));
        Configuration::decode(&changed, Framing::Java).map(|(read, class)| (read.inclusions, class))
    };
    let capacity = read("00000001 7704 0000000a 74 0003 5e612f 78").expect("a list");
    assert_eq!(capacity.0, original.inclusions);
    // Handle 6 is the string: 0 class, 1 type, 2 object, 3 ArrayList, 4 and 5 the lists.
    let twice = read("00000002 7704 00000002 74 0003 5e612f 71 007e0006 78").expect("a list");
    assert_eq!(twice.0, [original.inclusions.clone(), original.inclusions.clone()].concat());
    // Replaces that list by `73 72 Arrays$ArrayList …{ [Ljava/lang/String; }`.
    let mut other = written[..at - 6].to_vec();
    other.extend(bytes("73 72 001a"));
    other.extend(b"java.util.Arrays$ArrayList");
    other.extend(bytes("d9a43cbecd8806d2 02 0001 5b 0001 61 74 0013"));
    other.extend(b"[Ljava/lang/Object;");
    other.extend(bytes("78 70 75 72 0013"));
    other.extend(b"[Ljava.lang.String;");
    other.extend(bytes("add256e7e91d7b47 02 0000 78 70 00000002 74 0001 78 74 0001 79"));
    let (read_back, _) = Configuration::decode(&other, Framing::Java).expect("another kind of list");
    assert_eq!(read_back.inclusions, ["x".into(), "y".into()]);
    // Code Pulse's class: exits of 16 bytes.
    let name = b"com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1";
    let theirs = b"com.codedx.codepulse.agent.common.config.RuntimeAgentConfigurationV1";
    let mut pulse = written[..6].to_vec();
    pulse.extend(u16::try_from(theirs.len()).expect("short").to_be_bytes());
    pulse.extend(theirs);
    pulse.extend(&written[8 + name.len()..]);
    let (read_back, class) = Configuration::decode(&pulse, Framing::Java).expect("the same fields");
    assert_eq!(read_back, original);
    assert_eq!(class.expect("a class").dialect(), Dialect::V1CodePulse);
    assert!(
        read("00000001 7704 00000001 71 007e0063 78")
            .expect_err("no such handle")
            .to_string()
            .contains("handle")
    );
}
