//! What passes through a recorder is what was sent, whatever it is, and the transcript has all of it.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use runtap_route::record::{
    DiagnosticIpc, Header, Inspector, Journal, JournalTotals, Phase, Reader, RecorderSocket, Row, Streams,
    Way, create, record,
};
use runtap_testkit::FakeRuntime;
use runtap_transcript::{Entry, Frame};
use runtap_transport::Endpoint;
use tempfile::TempDir;
use tokio::sync::watch;

const INFO: &[u8] = b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0";
const RESUME: &[u8] = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
const OK: &[u8] = b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0";

/// A recorder on a thread of its own.
struct Recorder {
    dir: TempDir,
    phase: watch::Sender<Phase>,
    thread: Option<JoinHandle<JournalTotals>>,
}

impl Recorder {
    fn start(way: Way) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (phase, phases) = watch::channel(Phase::Open);
        let (socket, transcript) = (dir.path().join("s"), dir.path().join("t.jsonl"));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (_socket, listener) = RecorderSocket::listen(Some(&socket), None).unwrap();
                let (file, path) = create(&transcript).unwrap();
                let streams = Streams::Beside(path);
                let journal = Journal::begin::<DiagnosticIpc>(Box::new(file), Header::default()).unwrap();
                ready.send(()).unwrap();
                let journal = Arc::new(journal);
                let totals =
                    record(listener, way, streams, Arc::clone(&journal), phases, Arc::new(|_| {})).await;
                journal.end(None);
                totals
            })
        });
        is_ready.recv().unwrap();
        Self { dir, phase, thread: Some(thread) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.dir.path().join("s")).unwrap();
        // Against hangs only.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    fn transcript(&self) -> PathBuf {
        self.dir.path().join("t.jsonl")
    }

    /// Ends it when its connections have ended.
    fn end(&mut self) -> JournalTotals {
        self.phase.send_replace(Phase::Closing);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A runtime that takes one connection and does this with it.
struct Scripted {
    _dir: TempDir,
    path: PathBuf,
    thread: JoinHandle<Vec<u8>>,
}

impl Scripted {
    fn new(act: impl FnOnce(UnixStream) -> Vec<u8> + Send + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || act(listener.accept().unwrap().0));
        Self { _dir: dir, path, thread }
    }

    fn way(&self) -> Way {
        Way::ToRuntime(Endpoint::unix(&self.path))
    }
}

fn all(mut stream: &UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // One that breaks off has said what it has said.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

fn frames(path: &Path) -> Vec<Frame> {
    let reader = Reader::new(std::fs::File::open(path).unwrap());
    let frame = |entry| if let Entry::Frame(frame) = entry { Some(frame) } else { None };
    reader.filter_map(|located| frame(located.unwrap().entry)).collect()
}

/// What a direction of a connection has, streams from their files.
fn recorded(path: &Path, conn: &str, dir: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames(path).into_iter().filter(|frame| frame.conn == conn && frame.dir == dir) {
        if let Some(hex) = frame.hex {
            bytes.extend(hex);
        } else {
            let number = |key: &str| usize::try_from(frame.more[key].as_u64().unwrap()).unwrap();
            let file = std::fs::read(path.with_file_name(frame.more["file"].as_str().unwrap())).unwrap();
            bytes.extend(&file[number("offset")..][..number("bytes")]);
        }
    }
    bytes
}

fn rows(path: &Path, shows_values: bool) -> Vec<Row> {
    let mut inspector = Inspector::new(DiagnosticIpc { shows_values });
    let reader = Reader::new(std::fs::File::open(path).unwrap());
    reader.flat_map(|located| inspector.rows(located.unwrap())).collect()
}

#[test]
fn whatever_both_say_passes_and_is_recorded() {
    // The same numbers each time.
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..60 {
        let mut bytes = |most: u64| {
            let length = random(most);
            let body: Vec<u8> = (0..length).map(|_| u8::try_from(random(256)).unwrap()).collect();
            // Some begin as messages do.
            let start: &[u8] = match random(4) {
                0 => INFO,
                1 => &OK[..17],
                2 => b"DOTNET_IPC_V1\0\x04\0\x04\0\0\0",
                _ => b"",
            };
            [start, &body].concat()
        };
        let (said, answered) = (bytes(300), bytes(3000));
        let (said, answered) = if round % 10 == 0 { (said, bytes(900_000)) } else { (said, answered) };
        let reply = answered.clone();
        let runtime = Scripted::new(move |mut stream| {
            let heard = all(&stream);
            stream.write_all(&reply).unwrap();
            heard
        });
        let mut recorder = Recorder::start(runtime.way());
        let mut client = recorder.connect();
        for piece in said.chunks(1 + round) {
            client.write_all(piece).unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(all(&client), answered, "round {round}");
        assert_eq!(runtime.thread.join().unwrap(), said, "round {round}");
        drop(client);
        let totals = recorder.end();
        assert_eq!(totals.bytes, (said.len() + answered.len()) as u64);
        assert_eq!(recorded(&recorder.transcript(), "c1", "c2r"), said, "round {round}");
        assert_eq!(recorded(&recorder.transcript(), "c1", "r2c"), answered, "round {round}");
    }
}

#[test]
fn a_request_is_one_piece_for_the_runtime_however_it_comes() {
    let runtime = Scripted::new(|mut stream| {
        let mut buffer = [0; 1000];
        let n = stream.read(&mut buffer).unwrap();
        stream.write_all(OK).unwrap();
        buffer[..n].to_vec()
    });
    let mut recorder = Recorder::start(runtime.way());
    let mut client = recorder.connect();
    for byte in RESUME {
        client.write_all(&[*byte]).unwrap();
    }
    assert_eq!(all(&client), OK);
    assert_eq!(runtime.thread.join().unwrap(), RESUME);
    recorder.end();
}

#[test]
fn a_silent_client_does_not_delay_others() {
    // As real runtimes: one that sends nothing would block all others.
    let runtime = FakeRuntime::builder().one_at_a_time().spawn();
    let mut recorder = Recorder::start(Way::ToRuntime(runtime.endpoint().clone()));
    let (silent, mut half) = (recorder.connect(), recorder.connect());
    half.write_all(&INFO[..11]).unwrap();
    let mut client = recorder.connect();
    client.write_all(INFO).unwrap();
    let reply = all(&client);
    assert!(reply.starts_with(b"DOTNET_IPC_V1\0"), "{reply:?}");
    assert_eq!(reply[16..18], [0xff, 0]);
    // The half is a whole in the end.
    half.write_all(&INFO[11..]).unwrap();
    assert_eq!(all(&half), reply);
    drop((silent, half, client));
    assert_eq!(recorder.end().connections, 3);
    assert_eq!(recorded(&recorder.transcript(), "c1", "c2r"), b"");
}

#[test]
fn of_too_many_silent_clients_the_oldest_are_disconnected() {
    let runtime = FakeRuntime::spawn();
    let mut recorder = Recorder::start(Way::ToRuntime(runtime.endpoint().clone()));
    let oldest = recorder.connect();
    let ask = || {
        let mut client = recorder.connect();
        client.write_all(INFO).unwrap();
        all(&client)
    };
    // Before the first reply, the recorder raises the limit of descriptors of this process, which the crowd needs too.
    let reply = ask();
    assert!(!reply.is_empty());
    let mut crowd: Vec<UnixStream> = (0..1024).map(|_| recorder.connect()).collect();
    assert_eq!(all(&oldest), b"");
    assert_eq!(ask(), reply);
    let mut newest = crowd.pop().unwrap();
    newest.write_all(INFO).unwrap();
    assert_eq!(all(&newest), reply);
    drop((oldest, crowd, newest));
    recorder.end();
    let rows = rows(&recorder.transcript(), false);
    let is_first = |row: &&Row| row.kind == "close" && row.conn.as_deref() == Some("c1");
    let closed: Vec<_> = rows.iter().filter(is_first).filter_map(|row| row.error.clone()).collect();
    let error = closed.first().unwrap();
    assert!(error.contains("it had not sent a complete request"), "{closed:?}");
}

#[test]
fn a_descriptor_arrives_with_its_byte_after_the_request() {
    // CollectTracing5 into user_events: one provider, one tracepoint for all of it.
    let request: &[u8] = b"DOTNET_IPC_V1\0\x4d\0\x02\x06\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\
        \x01\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0P\0\0\0\0\0\0\0\x01\0\0\0\0\x02\0\0\0t\0\0\0\0\0\0\0";
    assert_eq!(usize::from(request[14]), request.len());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let runtime = Scripted::new(move |stream| {
        stream.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = tokio::net::UnixStream::from_std(stream).unwrap();
            let stream = runtap_transport::Stream::from(stream);
            let mut buffer = [0; 1000];
            // As runtimes do: the request is read, and what is with it would be lost.
            let (n, none) = stream.receive(&mut buffer[..77]).await.unwrap();
            assert_eq!((n, none.len()), (77, 0));
            let (one, mut descriptors) = stream.receive(&mut buffer[n..]).await.unwrap();
            assert_eq!((one, descriptors.len()), (1, 1));
            std::fs::File::from(descriptors.remove(0)).write_all(b"through the recorder").unwrap();
            stream.send_all(OK, &[]).await.unwrap();
            buffer[..n + one].to_vec()
        })
    });
    let mut recorder = Recorder::start(runtime.way());
    let client = recorder.connect();
    client.set_nonblocking(true).unwrap();
    let sending = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = sending.block_on(async {
        let client = tokio::net::UnixStream::from_std(client).unwrap();
        let client = runtap_transport::Stream::from(client);
        client.send_all(request, &[]).await.unwrap();
        client.send_all(b"x", &[std::os::fd::AsFd::as_fd(&writer)]).await.unwrap();
        let mut buffer = [0; 100];
        let (n, _) = client.receive(&mut buffer).await.unwrap();
        buffer[..n].to_vec()
    });
    assert_eq!(answer, OK);
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the recorder");
    assert_eq!(runtime.thread.join().unwrap(), [request, b"x"].concat());
    recorder.end();
    let frames = frames(&recorder.transcript());
    let what: Vec<_> = frames.iter().map(|frame| frame.more["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["request", "descriptor", "reply"]);
    assert!(frames[1].more["descriptors"][0].as_str().unwrap().starts_with("pipe:"), "{:?}", frames[1]);
    let rows = rows(&recorder.transcript(), false);
    let mut fields = rows.iter().flat_map(|row| row.fields.iter().flatten());
    assert!(fields.any(|field| field.name == "session_type" && field.value == "user_events"));
}

#[test]
fn an_answer_that_comes_before_a_runtime_hangs_up_with_bytes_unread_arrives() {
    let runtime = Scripted::new(|mut stream| {
        let mut heard = [0; 20];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(OK).unwrap();
        // The rest is unread: the connection is reset.
        heard.to_vec()
    });
    let mut recorder = Recorder::start(runtime.way());
    let mut client = recorder.connect();
    // It may have been answered, and closed, before all of it was written.
    let _ = client.write_all(&[RESUME, &vec![9; 100_000]].concat());
    assert_eq!(all(&client), OK);
    assert_eq!(runtime.thread.join().unwrap(), RESUME);
    drop(client);
    recorder.end();
    let rows = rows(&recorder.transcript(), false);
    let reply = rows.iter().find(|row| row.kind == "reply").unwrap();
    assert_eq!(reply.name.as_deref(), Some("OK"));
    assert!(rows.iter().any(|row| row.kind == "other" && row.dir.as_deref() == Some("c2r")));
}

#[test]
fn a_client_that_is_gone_is_gone_for_the_runtime() {
    let runtime = Scripted::new(|mut stream| {
        let mut heard = vec![0; INFO.len()];
        stream.read_exact(&mut heard).unwrap();
        // Until the connection is closed.
        while stream.write_all(&[0; 1000]).is_ok() {}
        heard
    });
    let mut recorder = Recorder::start(runtime.way());
    let mut client = recorder.connect();
    client.write_all(INFO).unwrap();
    let mut first = [0; 10];
    client.read_exact(&mut first).unwrap();
    drop(client);
    assert_eq!(runtime.thread.join().unwrap(), INFO);
    recorder.end();
}

#[test]
fn a_runtime_that_ends_sending_and_then_goes_away_is_gone() {
    let (go, goes) = std::sync::mpsc::channel();
    let runtime = Scripted::new(move |mut stream| {
        let mut heard = vec![0; INFO.len()];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(OK).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        goes.recv().unwrap();
        heard
    });
    let mut recorder = Recorder::start(runtime.way());
    let mut client = recorder.connect();
    client.write_all(INFO).unwrap();
    assert_eq!(all(&client), OK);
    go.send(()).unwrap();
    runtime.thread.join().unwrap();
    // The client has not closed: the connection ends all the same.
    recorder.end();
    drop(client);
}

#[test]
fn a_runtime_that_is_not_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::start(Way::ToRuntime(Endpoint::unix(dir.path().join("none"))));
    let mut client = recorder.connect();
    client.write_all(INFO).unwrap();
    assert_eq!(all(&client), b"");
    recorder.end();
    let rows = rows(&recorder.transcript(), false);
    let close = rows.iter().rfind(|row| row.kind == "close").unwrap();
    let error = close.error.as_deref().unwrap();
    assert!(error.contains("the socket does not exist"), "{error}");
}

#[test]
fn while_a_connection_is_open_others_are_taken_after_the_end_was_asked_for() {
    let runtime = FakeRuntime::spawn();
    let mut recorder = Recorder::start(Way::ToRuntime(runtime.endpoint().clone()));
    let open = recorder.connect();
    let ask = || {
        let mut client = recorder.connect();
        client.write_all(INFO).unwrap();
        all(&client)
    };
    // When it is answered, the one before it was taken.
    let reply = ask();
    recorder.phase.send_replace(Phase::Closing);
    assert_eq!(ask(), reply);
    assert!(!reply.is_empty());
    drop(open);
    assert_eq!(recorder.end().connections, 3);
}

#[test]
fn connections_are_broken_off_when_that_is_asked_for() {
    let (arrived, has_arrived) = std::sync::mpsc::channel();
    let runtime = Scripted::new(move |mut stream| {
        let mut heard = vec![0; INFO.len()];
        stream.read_exact(&mut heard).unwrap();
        arrived.send(()).unwrap();
        [heard, all(&stream)].concat()
    });
    let mut recorder = Recorder::start(runtime.way());
    let mut client = recorder.connect();
    client.write_all(INFO).unwrap();
    has_arrived.recv().unwrap();
    recorder.phase.send_replace(Phase::Broken);
    assert_eq!(all(&client), b"");
    recorder.thread.take().unwrap().join().unwrap();
    assert_eq!(runtime.thread.join().unwrap(), INFO);
}

#[test]
fn values_of_variables_are_shown_on_request_only() {
    let runtime = FakeRuntime::spawn();
    let mut recorder = Recorder::start(Way::ToRuntime(runtime.endpoint().clone()));
    let mut client = recorder.connect();
    client.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\x02\0\0").unwrap();
    let reply = all(&client);
    assert!(reply.len() > 26);
    let mut client = recorder.connect();
    let name_and_value = b"\x02\0\0\0A\0\0\0\x03\0\0\0s\x00q\0\0\0";
    client.write_all(&[b"DOTNET_IPC_V1\0\x26\0\x04\x03\0\0".as_slice(), name_and_value].concat()).unwrap();
    all(&client);
    recorder.end();
    let secrets = |shows| {
        let rows = rows(&recorder.transcript(), shows);
        let is_secret =
            |row: &&Row| row.kind == "variables" || row.name.as_deref() == Some("SetEnvironmentVariable");
        rows.iter()
            .filter(is_secret)
            .flat_map(|row| row.fields.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    let (shown, hidden) = (secrets(true), secrets(false));
    assert_eq!(shown.len(), hidden.len());
    assert!(shown.iter().any(|field| field.name == "value" && field.value == "sq"), "{shown:?}");
    let path = std::env::var("PATH").unwrap();
    assert!(shown.iter().any(|field| field.name == "PATH" && field.value == path));
    for field in &hidden {
        assert!(field.value == "***" || field.name == "name", "{field:?}");
    }
    // The lines themselves name the variable and have the value among the bytes only.
    let text = std::fs::read_to_string(recorder.transcript()).unwrap();
    assert!(!text.contains("\"sq\""));
}
