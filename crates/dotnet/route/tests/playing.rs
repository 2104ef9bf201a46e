//! Recorded conversations played back as the runtime: whom they answer with what, and what they refuse.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use runtap_route::record::{RecorderSocket, Stop};
use runtap_route::replay::{Player, Playing, Report, Talk, ToolConnection, Verdict};
use runtap_transcript::to_hex;
use rustix::fs::{FileType, Mode};
use tempfile::TempDir;
use tokio::sync::watch;

const HEADER: &str = "{\"kind\":\"header\",\"t\":0,\"protocol\":\"diagnostic-ipc\"}\n";

fn message(command: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).unwrap().to_le_bytes();
    [b"DOTNET_IPC_V1\0", &size[..], &command, &[0, 0], payload].concat()
}

fn info() -> Vec<u8> {
    message([4, 0], &[])
}

fn set(value: u8) -> Vec<u8> {
    let text = |letter: u8| [&[2, 0, 0, 0][..], &[letter, 0, 0, 0]].concat();
    message([4, 3], &[text(b'A'), text(value)].concat())
}

fn done(hresult: u32) -> Vec<u8> {
    message([0xff, 0], &hresult.to_le_bytes())
}

/// A transcript in the making.
#[derive(Default)]
struct Script(String);

impl Script {
    fn frame(mut self, t: f64, conn: &str, dir: &str, bytes: &[u8]) -> Self {
        let hex = to_hex(bytes);
        writeln!(
            self.0,
            "{{\"kind\":\"frame\",\"t\":{t},\"conn\":\"{conn}\",\"dir\":\"{dir}\",\"hex\":\"{hex}\"}}"
        )
        .unwrap();
        self
    }

    fn line(mut self, line: &str) -> Self {
        writeln!(self.0, "{line}").unwrap();
        self
    }

    /// A request, its reply, and the runtime's end.
    fn exchange(self, conn: &str, request: &[u8], reply: &[u8]) -> Self {
        self.frame(0.1, conn, "c2r", request).frame(0.2, conn, "r2c", reply).ended(conn)
    }

    fn ended(self, conn: &str) -> Self {
        self.line(&format!("{{\"kind\":\"close\",\"t\":1,\"conn\":\"{conn}\",\"side\":\"r2c\"}}"))
    }

    fn talk(&self) -> Talk {
        Talk::read([HEADER, &self.0].concat().as_bytes(), &PathBuf::new()).unwrap()
    }
}

/// A player on a thread of its own.
struct Stage {
    dir: TempDir,
    player: Arc<Player>,
    stops: watch::Sender<Stop>,
    thread: JoinHandle<()>,
}

impl Stage {
    fn of(talk: Talk) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let player = Arc::new(Player::new(talk, true, Arc::new(|_| {})));
        let (stops, stopping) = watch::channel(Stop::default());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let played = Arc::clone(&player);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (_socket, listener) = RecorderSocket::listen(Some(&socket), None).unwrap();
                ready.send(()).unwrap();
                let playing =
                    Playing { player: played, heard: ToolConnection::Listen(listener), command: None };
                playing.run(stopping).await.unwrap();
            });
        });
        is_ready.recv().unwrap();
        Self { dir, player, stops, thread }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.dir.path().join("s")).unwrap();
        // Against hangs only.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        reply
    }

    /// Ends when all was played.
    fn end(self) -> Report {
        self.thread.join().unwrap();
        self.player.report()
    }

    /// Ends now.
    fn stop(self) -> Report {
        self.stops.send_replace(Stop { times: 1, signal: None });
        self.end()
    }
}

fn verdicts(report: &Report) -> Vec<Verdict> {
    report.exchanges.iter().map(|exchange| exchange.verdict).collect()
}

#[test]
fn the_nth_equal_request_gets_the_nth_reply() {
    let script = Script::default()
        .exchange("c1", &set(b'x'), &done(0))
        .exchange("c2", &set(b'x'), &done(0x8007_0057))
        .exchange("c3", &info(), &[1, 2, 3]);
    let stage = Stage::of(script.talk());
    // Whatever the order in which others are asked.
    assert_eq!(stage.ask(&info()), [1, 2, 3]);
    assert_eq!(stage.ask(&set(b'x')), done(0));
    assert_eq!(stage.ask(&set(b'x')), done(0x8007_0057));
    let report = stage.end();
    assert_eq!(verdicts(&report), [Verdict::Same; 3]);
    assert!(report.is_same());
}

#[test]
fn what_differs_is_answered_and_told_field_by_field() {
    let script = Script::default()
        .exchange("c1", &set(b'x'), &done(0))
        .exchange("c2", &set(b'y'), &done(1))
        .exchange("c3", &info(), &[9]);
    let stage = Stage::of(script.talk());
    // Equal is better than first.
    assert_eq!(stage.ask(&set(b'y')), done(1));
    assert_eq!(stage.ask(&set(b'z')), done(0));
    // All were asked: the last equal one answers again.
    assert_eq!(stage.ask(&set(b'y')), done(1));
    // And nothing like this was recorded.
    let refused = stage.ask(&message([4, 1], &[]));
    assert_eq!(refused, message([0xff, 0xff], &0x8013_1385u32.to_le_bytes()));
    let report = stage.stop();
    let expected =
        [Verdict::Same, Verdict::Differs, Verdict::Repeated, Verdict::Unexpected, Verdict::NotAsked];
    assert_eq!(verdicts(&report), expected);
    let differs = &report.exchanges[1];
    let [difference] = &differs.differences[..] else { panic!("{differs:?}") };
    // A secret stays one.
    assert_eq!((difference.field.as_str(), difference.now.as_ref().unwrap()), ("value", &"***".into()));
    assert_eq!(differs.offset, Some(32));
    assert_eq!(report.exchanges[4].conn.as_deref(), Some("c3"));
}

#[test]
fn garbage_is_played_back_too() {
    let script = Script::default().exchange("c1", &[7; 40], &done(0x8013_1386));
    let stage = Stage::of(script.talk());
    assert_eq!(stage.ask(&[7; 40]), done(0x8013_1386));
    assert!(stage.end().is_same());
}

#[test]
fn what_follows_a_stop_is_sent_after_it_and_the_answer_to_it_last() {
    let session = 0x55u64.to_le_bytes();
    let provider = [&[0; 8][..], &[4, 0, 0, 0], &[2, 0, 0, 0], b"P\0\0\0", &[0; 4]].concat();
    let collect = message(
        [2, 2],
        &[&1u32.to_le_bytes()[..], &1u32.to_le_bytes(), &1u32.to_le_bytes(), &provider].concat(),
    );
    let (started, stop) = (message([0xff, 0], &session), message([2, 1], &session));
    let script = Script::default()
        .frame(0.1, "c1", "c2r", &collect)
        .frame(0.2, "c1", "r2c", &started)
        .frame(0.3, "c1", "r2c", b"Nettrace before")
        .frame(0.4, "c2", "c2r", &stop)
        .frame(0.5, "c1", "r2c", b" and after")
        .ended("c1")
        .frame(0.6, "c2", "r2c", &started)
        .ended("c2");
    let stage = Stage::of(script.talk());
    let mut stream = stage.connect();
    stream.write_all(&collect).unwrap();
    let mut first = vec![0; started.len() + b"Nettrace before".len()];
    stream.read_exact(&mut first).unwrap();
    assert!(first.ends_with(b"Nettrace before"));
    // Nothing more until it is stopped.
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    assert_eq!(stage.ask(&stop), started);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, " and after");
    assert!(stage.end().is_same());
}

#[test]
fn a_stream_is_read_from_the_file_beside_the_transcript_and_from_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.nettrace"), b"0123456789").unwrap();
    let of = |file: &str, offset: u64, bytes: u64| {
        let line = format!(
            "{{\"kind\":\"frame\",\"t\":0.2,\"conn\":\"c1\",\"dir\":\"r2c\",\"file\":\"{file}\",\"offset\":{offset},\"bytes\":{bytes}}}"
        );
        let script = Script::default().frame(0.1, "c1", "c2r", &info()).line(&line).ended("c1");
        Talk::read([HEADER, &script.0].concat().as_bytes(), dir.path())
    };
    let stage = Stage::of(of("s.nettrace", 2, 5).unwrap());
    assert_eq!(stage.ask(&info()), b"23456");
    assert!(stage.end().is_same());
    // Shorter than the transcript says: what there is, and a failure.
    let stage = Stage::of(of("s.nettrace", 8, 5).unwrap());
    assert_eq!(stage.ask(&info()), b"");
    assert_eq!(verdicts(&stage.end()), [Verdict::Failed]);
    for file in ["../s.nettrace", "/etc/hostname", "a/b", "..", ""] {
        let error = of(file, 0, 1).unwrap_err().to_string();
        assert!(error.contains("is not beside the transcript"), "{file}: {error}");
    }
}

/// One request, answered from this file beside the transcript.
fn answered_from(file: &str) -> Script {
    let line = format!(
        "{{\"kind\":\"frame\",\"t\":0.2,\"conn\":\"c1\",\"dir\":\"r2c\",\"file\":\"{file}\",\"offset\":0,\"bytes\":5}}"
    );
    Script::default().frame(0.1, "c1", "c2r", &info()).line(&line)
}

#[test]
fn neither_a_link_nor_a_pipe_is_opened() {
    let (outside, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), b"0123456789").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("link")).unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for (file, why) in [("link", "it is a symbolic link"), ("pipe", "it is not a regular file")] {
        let script = answered_from(file).ended("c1");
        let talk = Talk::read([HEADER, &script.0].concat().as_bytes(), dir.path()).unwrap();
        let stage = Stage::of(talk);
        assert_eq!(stage.ask(&info()), b"", "{file}");
        let report = stage.end();
        assert_eq!(verdicts(&report), [Verdict::Failed], "{file}");
        let reason = report.exchanges[0].reason.as_deref().unwrap();
        assert!(reason.contains(why), "{file}: {reason}");
    }
}

#[test]
fn an_answer_that_fails_ends_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("directory")).unwrap();
    // The runtime had not closed when the recording ended.
    let script = answered_from("directory");
    let talk = Talk::read([HEADER, &script.0].concat().as_bytes(), dir.path()).unwrap();
    let stage = Stage::of(talk);
    assert_eq!(stage.ask(&info()), b"");
    assert_eq!(verdicts(&stage.end()), [Verdict::Failed]);
}

#[test]
fn what_is_no_conversation_is_refused_with_its_line() {
    let read = |text: &str| Talk::read(text.as_bytes(), &PathBuf::new()).unwrap_err().to_string();
    assert_eq!(read(HEADER), "it contains no requests");
    let other = HEADER.replace("diagnostic-ipc", "test-pipe");
    assert!(
        read(&other).contains("not a transcript of Diagnostic IPC: the protocol in its header is test-pipe")
    );
    let of_pipe = "{\"kind\":\"header\",\"t\":0,\"role\":\"proxy\"}\n";
    assert!(read(of_pipe).contains("the protocol in its header is none"));
    let frame = |rest: &str| format!("{HEADER}{{\"kind\":\"frame\",\"t\":1,\"conn\":\"c\",{rest}}}\n");
    assert_eq!(read(&frame("\"dir\":\"up\"")), "line 2: field 'dir': is \"up\", not \"c2r\" or \"r2c\"");
    assert!(read(&frame("\"dir\":\"c2r\"")).starts_with("line 2: the frame has neither 'hex' nor"));
    assert!(read(&frame("\"dir\":\"c2r\",\"hex\":\"0\"")).starts_with("line 2: field 'hex'"));
}
