//! `runtap mtp` on synthetic recordings: the output for users and programs, and the exit codes. No application runs.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use runtap_mtp_proto::{
    FailedTest, Frame, Handshake, HandshakeKey, Limits, Message, SessionEvent, SessionEventType,
    SuccessfulTest, TestException, TestResults, TestState,
};
use runtap_testkit::{Running, eventually, run};

use crate::common::{command, folder, json, runtap};

fn request() -> Message {
    let handshake = Handshake::new()
        .with(HandshakeKey::PID, "4242")
        .with(HandshakeKey::ARCHITECTURE, "X64")
        .with(HandshakeKey::FRAMEWORK, ".NET 10.0.12")
        .with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0;1.4.0")
        .with(HandshakeKey::HOST_TYPE, "TestHost")
        .with(HandshakeKey::MODULE_PATH, "/srv/shop.dll")
        .with(HandshakeKey::EXECUTION_ID, "e1")
        .with(HandshakeKey::INSTANCE_ID, "i1");
    Message::Handshake(handshake)
}

fn session(kind: SessionEventType) -> Message {
    let (session_uid, execution_id) = (Some("s1".into()), Some("e1".into()));
    Message::SessionEvent(SessionEvent { session_type: Some(kind), session_uid, execution_id })
}

fn results(execution_id: &str) -> Message {
    let passed = SuccessfulTest {
        uid: Some("cart-1".into()),
        display_name: Some("Adds \x1b[31mup\x07\r\n".into()),
        state: Some(TestState::PASSED),
        duration: Some(12_345),
        session_uid: Some("s1".into()),
        ..SuccessfulTest::default()
    };
    let failed = FailedTest {
        uid: Some("cart-2".into()),
        display_name: Some("cart-2".into()),
        state: Some(TestState::FAILED),
        exceptions: Some(vec![TestException {
            message: Some("1 is not 2\nat all".into()),
            ..TestException::default()
        }]),
        session_uid: Some("s1".into()),
        ..FailedTest::default()
    };
    Message::TestResults(TestResults {
        execution_id: Some(execution_id.into()),
        instance_id: Some("i1".into()),
        successful: Some(vec![passed]),
        failed: Some(vec![failed]),
    })
}

/// A recording: its lines, with ascending times.
struct RecordingLines(String, u32);

impl RecordingLines {
    fn new() -> Self {
        let mut lines = Self(String::new(), 0);
        lines.line(r#""kind":"header","role":"recorder","protocol":"dotnet-test-pipe","cmd":["shop.dll","--server","dotnettestcli","--dotnet-test-pipe","/tmp/x"]"#);
        lines.line(r#""kind":"open","conn":"c1","pipe":"data""#);
        lines
    }

    fn line(&mut self, members: &str) {
        self.1 += 1;
        writeln!(self.0, "{{\"t\":0.{:03},{members}}}", self.1).unwrap();
    }

    fn bytes(&mut self, dir: &str, bytes: &[u8], more: &str) {
        let mut hex = String::new();
        for byte in bytes {
            write!(hex, "{byte:02x}").unwrap();
        }
        self.line(&format!(r#""kind":"frame","conn":"c1","dir":"{dir}","hex":"{hex}"{more}"#));
    }

    fn said(&mut self, message: &Message) {
        self.bytes("h2s", &message.to_frame().unwrap(), "");
        let reply = match message {
            Message::Handshake(_) => {
                Message::Handshake(Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "1.4.0"))
            }
            _ => Message::Void,
        };
        self.bytes("s2h", &reply.to_frame().unwrap(), "");
    }

    fn end(&mut self, code: i32) {
        self.line(r#""kind":"close","conn":"c1","side":"h2s""#);
        self.line(&format!(r#""kind":"exit","code":{code}"#));
    }

    fn whole() -> Self {
        let mut lines = Self::new();
        for message in
            [request(), session(SessionEventType::START), results("e1"), session(SessionEventType::END)]
        {
            lines.said(&message);
        }
        lines.end(2);
        lines
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("talk.jsonl");
        fs::write(&path, &self.0).unwrap();
        path
    }
}

#[test]
fn a_recording_is_shown_a_line_a_message() {
    let folder = folder();
    let file = RecordingLines::whole().write(folder.path());
    let told = runtap([Path::new("mtp"), Path::new("inspect"), &file]);
    insta::assert_snapshot!(told.expect_code(0).text(), @r#"
    FRAME        TIME  CONN      DIR  MESSAGE                   WHAT
             0.001000                 header                    recorder, Run: shop.dll --server dotnettestcli --dotnet-test-pipe /tmp/x
             0.002000  c1             open                      data pipe
        1    0.003000  c1        h2s  HandshakeMessage          TestHost, process 4242, .NET 10.0.12, offers 1.0.0;1.4.0
        2    0.004000  c1        s2h  HandshakeMessage          1.4.0
        3    0.005000  c1        h2s  TestSessionEvent          TestSessionStart, session s1
        4    0.006000  c1        s2h  VoidResponse
        5    0.007000  c1        h2s  TestResultMessages        2 results: Passed Adds \u{1b}[31mup\u{7}\r\n [cart-1] (1.2ms), Failed cart-2: 1 is not 2
        6    0.008000  c1        s2h  VoidResponse
        7    0.009000  c1        h2s  TestSessionEvent          TestSessionEnd, session s1
        8    0.010000  c1        s2h  VoidResponse
             0.011000  c1             close                     by the application
             0.012000                 exit                      exit code 2
    "#);
    let told = runtap([Path::new("mtp"), Path::new("inspect"), Path::new("-v"), &file]);
    let text = told.expect_code(0).text();
    let fields: Vec<_> = text.lines().filter(|line| line.contains(" = ")).skip(9).take(12).collect();
    insta::assert_snapshot!(fields.join("\n"), @r#"
          10 1 SessionType = 0 (TestSessionStart)
          17 2 SessionUid = "s1"
          25 3 ExecutionId = "e1"
          10 1 ExecutionId = "e1"
          18 2 InstanceId = "i1"
          26 3 SuccessfulTestMessageList = 1 element
          38 3[0].1 Uid = "cart-1"
          50 3[0].2 DisplayName = "Adds \u{1b}[31mup\u{7}\r\n"
          71 3[0].3 State = 1 (Passed)
          78 3[0].4 Duration = 12345
          92 3[0].8 SessionUid = "s1"
         100 4 FailedTestMessageList = 1 element
    "#);
    assert!(!text.contains(['\x1b', '\x07', '\r']), "{text:?}");
}

#[test]
fn a_program_gets_every_field() {
    let folder = folder();
    let file = RecordingLines::whole().write(folder.path());
    let document = json(["mtp", "inspect", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(document["schema"], "runtap.mtp-inspect/1");
    assert_eq!((&document["connections"], &document["frames"]), (&1.into(), &8.into()));
    let row = document["rows"].as_array().unwrap().iter().find(|row| row["id"] == 6).unwrap();
    assert_eq!(
        (&row["name"], &row["frame"], &row["line"]),
        (&"TestResultMessages".into(), &5.into(), &7.into())
    );
    insta::assert_snapshot!(row["fields"][2], @r#"[3,"SuccessfulTestMessageList",[[[1,"Uid","cart-1"],[2,"DisplayName","Adds \u001b[31mup\u0007\r\n"],[3,"State",1],[4,"Duration",12345],[8,"SessionUid","s1"]]]]"#);
}

#[test]
fn broken_rules_are_reported_with_their_position() {
    let folder = folder();
    let clean = RecordingLines::whole().write(folder.path());
    let told = runtap([Path::new("mtp"), Path::new("lint"), &clean]);
    insta::assert_snapshot!(told.expect_code(0).text(), @"1 connection, 8 frames, version 1.4.0; 0 errors, 0 warnings");
    let mut lines = RecordingLines::new();
    lines.said(&request());
    lines.said(&results("another"));
    lines.said(&session(SessionEventType::END));
    lines.bytes("h2s", &[5, 0, 0, 0, 6, 0], r#","what":"part""#);
    lines.end(0);
    let file = lines.write(folder.path());
    let told = runtap([Path::new("mtp"), Path::new("lint"), &file]);
    insta::assert_snapshot!(told.expect_code(1).text(), @r#"
    error MTP017 c1, frame 3 (line 5): TestResultMessages has "another", but the handshake has "e1"
      rule: a message has no ExecutionId, or one that differs from the ExecutionId of the handshake
      source: draft, "Implementation guidelines"; the SDK ends with FailFast
    error MTP028 c1, frame 5 (line 7): session "s1"
      rule: a session ended that had not started
      source: the SDK ends with FailFast
    error MTP004 c1, line 10: 6 bytes of a frame at offset 329
      rule: the connection ended in the middle of a frame
      source: draft, "General protocol message format"
    warning MTP032 line 11: no session event was received
      rule: the application exited with code 0 without a session
      source: draft, "Implementation guidelines"; the SDK does not check it
    1 connection, 6 frames, version 1.4.0; 3 errors, 1 warning
    the rules: docs/mtp-rules.md
    "#);
    let told = runtap(["mtp", "lint", file.to_str().unwrap(), "--format", "json"]);
    let document = told.expect_code(1).json();
    assert_eq!((&document["schema"], &document["errors"]), (&"runtap.mtp-lint/1".into(), &3.into()));
    assert_eq!(document["findings"][0]["rule"], "MTP017");
}

#[test]
fn a_recording_of_several_starts_is_rejected() {
    let folder = folder();
    let whole = fs::read_to_string(RecordingLines::whole().write(folder.path())).unwrap();
    let lint = |text: &str| {
        let file = folder.path().join("changed.jsonl");
        fs::write(&file, text).unwrap();
        let told = runtap(["mtp", "lint", file.to_str().unwrap(), "--format", "json"]);
        let document = told.expect_code(1).json();
        let findings = document["findings"].as_array().unwrap();
        findings
            .iter()
            .map(|it| (it["rule"].as_str().unwrap().to_owned(), it["line"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let of = |rule: &str, line| -> Vec<(String, u64)> { vec![(rule.to_owned(), line)] };
    let lines: Vec<_> = whole.lines().collect();
    let without = |kind: &str| {
        let lines = lines.iter().filter(|line| !line.contains(&format!(r#""kind":"{kind}""#)));
        lines.fold(String::new(), |all, line| all + line + "\n")
    };
    assert_eq!(lint(&without("open")), of("REC001", 2));
    let (header, open) = (lines[0], lines[1]);
    assert_eq!(lint(&whole.replacen(open, &format!("{header}\n{open}"), 1)), of("REC002", 2));
    assert_eq!(lint(&whole.replacen(open, &format!("{open}\n{open}"), 1)), of("REC003", 3));
    assert_eq!(lint(&format!("{whole}{header}\n")), of("REC002", lines.len() as u64 + 1));
}

#[test]
fn damaged_recordings_are_shown_as_far_as_they_go() {
    let folder = folder();
    let mut lines = RecordingLines::whole();
    let whole = lines.0.len();
    lines.0.push_str("{\"kind\":\"frame\",\"t\":1,\"conn\":\"c1\",\"dir\":\"h2s\",\"hex\":\"0\"}\n{\"kind\":\"exit\",\"t\":2}\n");
    let file = lines.write(folder.path());
    let file = file.to_str().unwrap();
    for verb in ["inspect", "lint"] {
        let told = runtap(["mtp", verb, file]);
        told.expect_code(5).says(&format!("offset {whole}")).says("'hex'");
        let document = runtap(["mtp", verb, file, "--format", "json"]).expect_code(5).json();
        assert_eq!((&document["partial"]["offset"], &document["frames"]), (&whole.into(), &8.into()));
    }
    // Truncated in the last line.
    fs::write(file, &RecordingLines::whole().0.as_bytes()[..whole - 9]).unwrap();
    runtap(["mtp", "inspect", file]).expect_code(5).says("is partial: line 12 ends after");
    for (bytes, says) in [
        (&b""[..], "is empty"),
        (b"Nettrace", "not a transcript"),
        (b"{\"kind\":1}\n", "line 1: field 'kind'"),
        (b"\x28\xb5\x2f\xfd garbage", "not a Zstandard file"),
        (b"{\"a\":\n", "line 1: not a JSON object"),
    ] {
        fs::write(file, bytes).unwrap();
        for verb in ["inspect", "lint", "replay"] {
            let pipe: &[&str] = if verb == "replay" { &["--pipe", "/no/socket"] } else { &[] };
            runtap(["mtp", verb, file].iter().chain(pipe)).expect_code(2).says(says);
        }
    }
    runtap(["mtp", "inspect", "/no/such/file"]).expect_code(2).says("/no/such/file");
}

#[test]
fn usage_errors_are_reported() {
    let folder = folder();
    let file = RecordingLines::whole().write(folder.path());
    let file = file.to_str().unwrap();
    let wrong = |words: &[&str]| run(command(["mtp"].iter().chain(words)));
    wrong(&[]).expect_code(2);
    wrong(&["record", "-o", "x"]).expect_code(2).says("APP");
    wrong(&["record", "-o", "x", "--", "/no/such.dll"]).expect_code(2).says("there is no file");
    wrong(&["record", "-o", "x", "--", "true", "--dotnet-test-pipe"]).expect_code(2).says("has no value");
    wrong(&["record", "-o", "/no/folder/x", "--", "true"]).expect_code(2);
    wrong(&["record", "-o", "/dev/full", "--", "true"]).expect_code(1).says("cannot write /dev/full");
    let other = folder.path().join("other.jsonl");
    wrong(&["record", "-o", other.to_str().unwrap(), "--", "no-such-program"])
        .expect_code(125)
        .says("can't start");
    wrong(&["replay", file]).expect_code(2).says("no server specified").says("--write-module");
    wrong(&["replay", file, "--", "--list-tests", "--dotnet-test-pipe", "/x"])
        .expect_code(2)
        .says("list its tests");
    wrong(&["replay", file, "--write-module", "/tmp/a.dll"]).expect_code(2).says(".dll");
    wrong(&["replay", "/no/file", "--write-module", "/tmp/a"]).expect_code(2);
    wrong(&["replay", file, "--write-module", file])
        .expect_code(2)
        .says("is not a script that runtap has written")
        .says("another name");
}

#[test]
fn the_exit_code_is_the_applications_and_its_output_stays_its_own() {
    let folder = folder();
    let file = folder.path().join("talk-%p.jsonl");
    let record = |script: &str, options: &[&str]| {
        let mut command = command(["mtp", "record", "-o", file.to_str().unwrap()]);
        run({
            command.args(options).args(["--", "sh", "-c", script]);
            command
        })
    };
    let told = record("echo out; exit 7", &[]);
    assert_eq!(told.expect_code(7).text(), "out\n");
    told.says("0 connections");
    record("kill -9 $$", &[]).expect_code(137);
    let told = record("echo out; exit 3", &["--format", "json"]);
    assert_eq!(told.expect_code(3).says("out").json()["exit_code"], 3);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    for entry in fs::read_dir(folder.path()).unwrap() {
        // The contents may be secret.
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn recordings_are_played_to_any_server() {
    let folder = folder();
    let file = RecordingLines::whole().write(folder.path());
    let pipe = folder.path().join("server");
    let server = UnixListener::bind(&pipe).unwrap();
    // The server accepts one connection, rejects the second, violates the protocol on the third, and does not answer
    // the fourth.
    let serving = thread::spawn(move || {
        let mut heard = Vec::new();
        for kind in 0..4 {
            let (mut stream, _) = server.accept().unwrap();
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
                while let Ok((frame, size)) = Frame::parse(&bytes, Limits::default()) {
                    let message = Message::decode(&frame, Limits::default()).unwrap();
                    let reply = match (&message, kind) {
                        (_, 2) => vec![0xff; 20],
                        (_, 3) => return heard,
                        (Message::Handshake(_), _) => {
                            let version = if kind == 0 { "1.0.0" } else { "" };
                            let reply = Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, version);
                            Message::Handshake(reply).to_frame().unwrap()
                        }
                        _ => Message::Void.to_frame().unwrap(),
                    };
                    heard.push(message);
                    bytes.drain(..size);
                    stream.write_all(&reply).unwrap();
                }
            }
        }
        heard
    });
    let play = |variable: &str| {
        let mut command =
            command(["mtp", "replay", file.to_str().unwrap(), "--pipe", pipe.to_str().unwrap()]);
        command.env("TESTINGPLATFORM_DOTNETTEST_EXECUTIONID", variable);
        run(command)
    };
    play("").expect_code(2);
    play("given").expect_code(12);
    play("").expect_code(1).says("line 3: the reply to HandshakeMessage can't be read");
    play("").expect_code(1).says("line 3: HandshakeMessage could not be sent to the server");
    let heard = serving.join().unwrap();
    let mut given = request();
    if let Message::Handshake(handshake) = &mut given {
        handshake.set(HandshakeKey::EXECUTION_ID, "given");
    }
    let first = [request(), session(SessionEventType::START), results("e1"), session(SessionEventType::END)];
    assert_eq!(heard[..4], first);
    assert_eq!(heard[4..], [given, request()]);
    fs::remove_file(pipe).unwrap();
}

#[test]
fn no_socket_and_no_process_is_left_when_it_is_interrupted() {
    let folder = folder();
    let file = folder.path().join("talk.jsonl");
    let mut command =
        command(["mtp", "record", "-o", file.to_str().unwrap(), "--", "sh", "-c", "exec sleep 1000"]);
    command.env("TMPDIR", folder.path());
    let running = Running::start(command);
    eventually("the socket", || (fs::read_dir(folder.path()).unwrap().count() > 1).then_some(()));
    // Whether the application has started or not.
    running.signal(runtap_testkit::Signal::TERM);
    running.wait().expect_code(143);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
