//! A proxy between arbitrary peers: forwarded bytes are unchanged, received messages are recorded completely, and no peer
//! waits forever.

mod transcript;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp::transcript::{Mode, Server, Tap, TestPipe};
use runtap_mtp_proto::{Frame, Handshake, HandshakeKey, Limits, Message, SessionEvent, SessionEventType};
use runtap_transcript::{Header, Journal, Row};
use transcript::{Memory, broken, lint, rows};

const SOON: Duration = Duration::from_mins(1);

/// A tap, the server behind it, and what is written.
struct Between {
    tap: Tap,
    server: UnixListener,
    memory: Memory,
    journal: Arc<Journal>,
    folder: tempfile::TempDir,
}

impl Between {
    fn new() -> Self {
        Self::with(Memory::new())
    }

    fn with(memory: Memory) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server");
        let server = UnixListener::bind(&path).unwrap();
        let journal =
            Arc::new(Journal::begin::<TestPipe>(Box::new(memory.clone()), Header::default()).unwrap());
        let tap = Tap::listen(Server::At(path), &journal).unwrap();
        Self { tap, server, memory, journal, folder }
    }

    /// Both ends of a new connection: the application's and the server's.
    fn connect(&self) -> (UnixStream, UnixStream) {
        let host = UnixStream::connect(self.tap.path()).unwrap();
        let (server, _) = self.server.accept().unwrap();
        for stream in [&host, &server] {
            stream.set_read_timeout(Some(SOON)).unwrap();
        }
        (host, server)
    }

    fn finish(self, code: i32) -> (Memory, Arc<Journal>) {
        assert_eq!(self.tap.close(Instant::now() + SOON, Some(code)), None);
        self.journal.end(Some(code.into()));
        (self.memory, self.journal)
    }
}

fn request() -> Vec<u8> {
    let handshake = Handshake::new()
        .with(HandshakeKey::PID, "1")
        .with(HandshakeKey::ARCHITECTURE, "X64")
        .with(HandshakeKey::FRAMEWORK, "native")
        .with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0;1.4.0")
        .with(HandshakeKey::HOST_TYPE, "TestHost")
        .with(HandshakeKey::MODULE_PATH, "/a")
        .with(HandshakeKey::EXECUTION_ID, "e")
        .with(HandshakeKey::INSTANCE_ID, "i");
    Message::Handshake(handshake).to_frame().unwrap()
}

fn reply(control: Option<&str>) -> Vec<u8> {
    let mut handshake = Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "1.4.0");
    if let Some(control) = control {
        handshake.set(HandshakeKey::SERVER_CONTROL_PIPE, control);
    }
    Message::Handshake(handshake).to_frame().unwrap()
}

fn session(kind: SessionEventType) -> Vec<u8> {
    let event = SessionEvent {
        session_type: Some(kind),
        session_uid: Some("s".into()),
        execution_id: Some("e".into()),
    };
    Message::SessionEvent(event).to_frame().unwrap()
}

fn void() -> Vec<u8> {
    Message::Void.to_frame().unwrap()
}

fn expect(mut stream: &UnixStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, bytes);
}

fn exchange((host, server): (&UnixStream, &UnixStream), request: &[u8], reply: &[u8]) {
    { host }.write_all(request).unwrap();
    expect(server, request);
    { server }.write_all(reply).unwrap();
    expect(host, reply);
}

/// Waits for the end of a stream, which has nothing more.
fn ends(mut stream: &UnixStream) {
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

fn whats(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.name.as_deref().unwrap_or(&row.kind)).collect()
}

#[test]
fn a_conversation_passes_and_is_clean() {
    let between = Between::new();
    let (host, server) = between.connect();
    let both = (&host, &server);
    exchange(both, &request(), &reply(None));
    exchange(both, &session(SessionEventType::START), &void());
    exchange(both, &session(SessionEventType::END), &void());
    drop(host);
    ends(&server);
    let (memory, journal) = between.finish(0);
    let lines = memory.lines();
    let (rows, _) = rows(&lines);
    assert_eq!(
        whats(&rows),
        [
            "header",
            "open",
            "HandshakeMessage",
            "HandshakeMessage",
            "TestSessionEvent",
            "VoidResponse",
            "TestSessionEvent",
            "VoidResponse",
            "close",
            "exit"
        ]
    );
    assert_eq!(rows[8].summary, "by the application");
    assert_eq!(broken(&lines), [""; 0]);
    let totals = journal.totals();
    assert_eq!((totals.connections, totals.frames, totals.is_truncated), (1, 6, false));
}

#[test]
fn a_frame_in_parts_arrives_whole() {
    let between = Between::new();
    let (host, server) = between.connect();
    { &host }.write_all(&request()).unwrap();
    expect(&server, &request());
    let reply = reply(None);
    for byte in &reply {
        { &server }.write_all(&[*byte]).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
    let mut buffer = vec![0; 1000];
    assert_eq!({ &host }.read(&mut buffer).unwrap(), reply.len());
    // And several at once are as many frames.
    let two = [session(SessionEventType::START), session(SessionEventType::END)].concat();
    { &host }.write_all(&two).unwrap();
    expect(&server, &two);
    drop(server);
    ends(&host);
    let (memory, _) = between.finish(0);
    assert_eq!(memory.lines().len(), 8);
    // The second was sent before the reply to the first.
    assert_eq!(broken(&memory.lines()), ["MTP003"]);
}

#[test]
fn the_control_pipe_is_tapped_too() {
    let between = Between::new();
    let path = between.folder.path().join("control");
    let control = UnixListener::bind(&path).unwrap();
    let (host, server) = between.connect();
    { &host }.write_all(&request()).unwrap();
    expect(&server, &request());
    { &server }.write_all(&reply(path.to_str())).unwrap();
    let mut buffer = vec![0; 1000];
    let count = { &host }.read(&mut buffer).unwrap();
    let (frame, _) = Frame::parse(&buffer[..count], Limits::default()).unwrap();
    let Ok(Message::Handshake(told)) = Message::decode(&frame, Limits::default()) else { panic!() };
    let ours = told.server_control_pipe().unwrap();
    assert_ne!(Some(ours), path.to_str());
    let waiting = UnixStream::connect(ours).unwrap();
    waiting.set_read_timeout(Some(SOON)).unwrap();
    let (parked, _) = control.accept().unwrap();
    let wait = Message::WaitForServerControl.to_frame().unwrap();
    { &waiting }.write_all(&wait).unwrap();
    expect(&parked, &wait);
    // To close it is to cancel: that arrives.
    drop(parked);
    ends(&waiting);
    drop(host);
    let (memory, _) = between.finish(3);
    let (rows, _) = rows(&memory.lines());
    let control = rows.iter().find(|row| row.summary == "control pipe").unwrap().conn.clone();
    let request = rows.iter().find(|row| row.name.as_deref() == Some("WaitForServerControlRequest")).unwrap();
    assert_eq!(request.conn, control);
    // What is written is what the server has said.
    assert!(rows.iter().any(|row| row.summary == format!("1.4.0, control pipe {}", path.display())));
    assert_eq!(broken(&memory.lines()), [""; 0]);
}

#[test]
fn garbage_of_either_side_passes_and_is_told() {
    let garbage = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n\xff\x00\x1b[2J".to_vec();
    let between = Between::new();
    let (host, server) = between.connect();
    { &host }.write_all(&garbage).unwrap();
    expect(&server, &garbage);
    { &server }.write_all(&vec![0xff; 100_000]).unwrap();
    expect(&host, &vec![0xff; 100_000]);
    { &host }.write_all(b"more").unwrap();
    expect(&server, b"more");
    drop(host);
    ends(&server);
    let (memory, journal) = between.finish(1);
    assert_eq!(journal.totals().frames, 0);
    assert_eq!(journal.totals().bytes, garbage.len() as u64 + 100_000 + 4);
    assert!(broken(&memory.lines()).contains(&"MTP001"));
    let (_, inspector) = rows(&memory.lines());
    assert!(inspector.undecoded() >= 3);
}

#[test]
fn a_side_that_dies_in_the_middle_of_a_frame_takes_the_other_with_it() {
    let between = Between::new();
    let (host, server) = between.connect();
    exchange((&host, &server), &request(), &reply(None));
    let cut = &session(SessionEventType::START)[..11];
    { &host }.write_all(cut).unwrap();
    drop(host);
    expect(&server, cut);
    ends(&server);
    let (host, server) = between.connect();
    { &server }.write_all(&reply(None)[..5]).unwrap();
    drop(server);
    expect(&host, &reply(None)[..5]);
    ends(&host);
    let (memory, _) = between.finish(134);
    let lines = memory.lines();
    let (_, findings) = lint(&lines);
    let cuts: Vec<_> = findings.iter().filter(|finding| finding.rule.id() == "MTP004").collect();
    assert_eq!((cuts.len(), cuts[0].conn.as_deref()), (1, Some("c1")));
    let (rows, _) = rows(&lines);
    let mut closes: Vec<_> = rows.iter().filter(|row| row.kind == "close").map(|row| &*row.summary).collect();
    // Whose relay is the first to write its line is open.
    closes.sort_unstable();
    let of = |who: &str, bytes| format!("by the {who}, {bytes} bytes of a truncated frame");
    assert_eq!(closes, [of("application", 11), of("server", 5)]);
}

#[test]
fn what_the_dead_have_said_is_not_lost() {
    let between = Between::new();
    let (host, server) = between.connect();
    // Neither side reads, and both close at once.
    let results: Vec<_> = (0..200).flat_map(|_| session(SessionEventType::START)).collect();
    { &host }.write_all(&results).unwrap();
    host.shutdown(Shutdown::Write).unwrap();
    drop(server);
    drop(host);
    let (memory, journal) = between.finish(0);
    assert_eq!(journal.totals().frames, 200);
    assert_eq!(memory.lines().iter().filter(|line| format!("{line:?}").contains("Session")).count(), 200);
}

#[test]
fn silence_ends_with_the_application() {
    let between = Between::new();
    let (host, server) = between.connect();
    let begun = Instant::now();
    // It has exited, and something of it still holds its connection.
    assert_eq!(between.tap.close(begun + Duration::from_millis(50), Some(0)), None);
    assert!(begun.elapsed() < SOON);
    ends(&host);
    ends(&server);
}

#[test]
fn a_server_that_is_late_is_waited_for_and_one_that_never_comes_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late");
    let memory = Memory::new();
    let journal = Arc::new(Journal::begin::<TestPipe>(Box::new(memory.clone()), Header::default()).unwrap());
    let tap = Tap::listen(Server::At(path.clone()), &journal).unwrap();
    let host = UnixStream::connect(tap.path()).unwrap();
    { &host }.write_all(&request()).unwrap();
    thread::sleep(Duration::from_millis(50));
    let server = UnixListener::bind(&path).unwrap();
    let (accepted, _) = server.accept().unwrap();
    expect(&accepted, &request());
    drop((host, server, accepted));
    std::fs::remove_file(path).unwrap();
    let never = UnixStream::connect(tap.path()).unwrap();
    never.set_read_timeout(Some(SOON)).unwrap();
    while journal.totals().connections < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    tap.close(begun + SOON, None);
    assert!(begun.elapsed() < SOON);
    ends(&never);
    let (rows, _) = rows(&memory.lines());
    assert!(rows.iter().any(|row| row.error.as_deref().is_some_and(|error| error.contains("late"))));
}

#[test]
fn a_flood_of_connections_is_bounded() {
    let between = Between::new();
    let held: Vec<_> = (0..400).map(|_| UnixStream::connect(between.tap.path()).unwrap()).collect();
    let accepted: Vec<_> = (0..200).map(|_| between.server.accept().unwrap().0).collect();
    // The last connections are rejected, without connections to the server.
    let last = held.last().unwrap();
    last.set_read_timeout(Some(SOON)).unwrap();
    ends(last);
    let begun = Instant::now();
    while between.journal.totals().connections < 256 {
        assert!(begun.elapsed() < SOON);
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(between.journal.totals().connections, 256);
    drop((held, accepted));
    // The next one is not.
    let begun = Instant::now();
    loop {
        let host = UnixStream::connect(between.tap.path()).unwrap();
        { &host }.write_all(&request()).unwrap();
        between.server.set_nonblocking(true).unwrap();
        thread::sleep(Duration::from_millis(20));
        let heard = std::iter::from_fn(|| between.server.accept().ok()).any(|(stream, _)| {
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let mut got = vec![0; request().len()];
            { &stream }.read_exact(&mut got).is_ok_and(|()| got == request())
        });
        if heard {
            break;
        }
        assert!(begun.elapsed() < SOON);
    }
    between.finish(0);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let between = Between::with(Memory::with_room(1500));
    let (host, server) = between.connect();
    let both = (&host, &server);
    exchange(both, &request(), &reply(None));
    for _ in 0..20 {
        exchange(both, &session(SessionEventType::START), &void());
    }
    drop(host);
    ends(&server);
    let (memory, journal) = between.finish(0);
    let totals = journal.totals();
    assert!(totals.is_truncated);
    assert_eq!(totals.frames, 42, "those that were heard");
    assert!(journal.take_failure().is_some());
    assert!(journal.take_failure().is_none(), "it is told once");
    assert!(memory.lines().len() < 20);
}

#[test]
fn as_the_server_we_answer_garbage_as_little_as_anybody() {
    let memory = Memory::new();
    let journal = Arc::new(Journal::begin::<TestPipe>(Box::new(memory.clone()), Header::default()).unwrap());
    let tap = Tap::listen(Server::Ourselves(Mode::Run), &journal).unwrap();
    let connect = || {
        let stream = UnixStream::connect(tap.path()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    };
    let broken = connect();
    { &broken }.write_all(&[0xff; 40]).unwrap();
    ends(&broken);
    let silent = connect();
    let cut = connect();
    { &cut }.write_all(&request()[..20]).unwrap();
    drop(cut);
    let good = connect();
    { &good }.write_all(&request()).unwrap();
    let mut buffer = [0; 1000];
    assert!({ &good }.read(&mut buffer).unwrap() > 8);
    drop(good);
    let tally = tap.close(Instant::now() + Duration::from_millis(100), Some(0)).unwrap();
    ends(&silent);
    let rules: Vec<_> = tally.violations.keys().map(|rule| rule.id()).collect();
    assert!(rules.contains(&"MTP001") && rules.contains(&"MTP004"), "{rules:?}");
    let found = transcript::broken(&memory.lines());
    assert!(found.contains(&"MTP001") && found.contains(&"MTP004"), "{found:?}");
}
