//! `jvm hq --record` and `jvm report` in adverse conditions: full disks, missing folders, paths that are not files,
//! agents with counts only, and options without effect.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::f1::{
    Batch, BatchEvent, BatchKind, Count, CountRows, Drop, DropReason, Process, Rows,
};
use runtap_bytefrog_proto::{Dialect, JavaStr, Message};
use runtap_testkit::fake_agent::{FakeAgent, recorded, say};
use runtap_testkit::require;
use rustix::fs::{CWD, FileType, Mode as Rights, mknodat};

use crate::cli_jvm::Collector;
use crate::common::{folder, runtap};

/// Writes a recording of an F1 agent that sent `data`.
pub(crate) fn recording(folder: &Path, data: &[Message<'_>]) -> String {
    let process = Process {
        pid: 7,
        wall: 1_700_000_000_000_000_000,
        resolution: 1,
        jvm: JavaStr::from_bytes(b"none"),
        main: JavaStr::from_bytes(b""),
    };
    let control = [vec![0, 0xf1], say(Dialect::F1, &Message::Process(process))].concat();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("agent0.ctl.a2h.bin"), control).unwrap();
    let said = data.iter().map(|message| say(Dialect::F1, message)).collect::<Vec<_>>().concat();
    fs::write(folder.join("agent0.data0.a2h.bin"), [vec![0x1e, 0], said].concat()).unwrap();
    folder.display().to_string()
}

pub(crate) fn named(method: u32, signature: &str) -> Message<'_> {
    Message::MapMethod { method, signature: JavaStr::from_bytes(signature.as_bytes()) }
}

fn refused(words: &[&str], code: i32, why: &str) {
    let run = runtap([&["jvm", "report"], words].concat());
    let told = run.expect_code(code).stderr.clone();
    assert!(told.contains(why), "{words:?}: {told}");
}

fn shown(words: &[&str]) -> String {
    runtap([&["jvm", "report"], words].concat()).expect_code(0).text().to_owned()
}

/// Makes a recording fail.
type Sabotage = fn(&Path);

/// A recording that fails is reported, and by the exit code.
#[test]
fn a_failed_recording_is_reported_and_partial() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let dir = folder();
    let spoils: [(&str, Sabotage, &str); 3] = [
        ("full", |path| symlink("/dev/full", path.join("agent0.data0.a2h.bin")).unwrap(), "No space left"),
        ("gone", |path| fs::remove_dir(path).unwrap(), "does not exist"),
        ("taken", |path| fs::create_dir(path.join("agent0.ctl.a2h.bin")).unwrap(), "agent0.ctl.a2h.bin"),
    ];
    for (name, spoil, why) in spoils {
        let path = dir.path().join(name);
        let collector = Collector::start(&["--once", "--plain", "--record", path.to_str().unwrap()]);
        spoil(&path);
        FakeAgent::connect(collector.address, dialect).unwrap().run(&steps).unwrap();
        let (printed, told, code) = collector.wait();
        assert_eq!(code, Some(5), "{name}: {told}");
        assert!(told.contains("recording stopped") && told.contains(why), "{name}: {told}");
        assert!(printed.contains("2,542 calls"), "the trace continues: {printed}");
    }
    let nowhere = dir.path().join("none/run.dir");
    let words = ["jvm", "hq", "--listen", "127.0.0.1:0", "--once", "--record", nowhere.to_str().unwrap()];
    assert!(runtap(words).expect_code(1).stderr.contains("does not exist"));
    assert!(!dir.path().join("none").exists());
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Rights::RUSR | Rights::WUSR, 0).unwrap();
}

/// Opening a pipe would wait for its writer, and a device is endless.
#[test]
fn a_path_that_is_not_a_file_is_not_read() {
    let dir = folder();
    let began = Instant::now();
    let calls =
        Message::Counts(CountRows { snapshot: 0, time: 1, last: true, reset: false, rows: Rows::new(&[]) });
    let path = recording(&dir.path().join("marks"), &[calls]);
    let marks = dir.path().join("marks/marks.tsv");
    symlink("/dev/zero", &marks).unwrap();
    let told = runtap(["jvm", "report", &path]).expect_code(5).stderr.clone();
    assert!(told.contains("marks.tsv cannot be read: it is a symbolic link"), "{told}");
    fs::remove_file(&marks).unwrap();
    pipe(&marks);
    let told = runtap(["jvm", "report", &path]).expect_code(5).stderr.clone();
    assert!(told.contains("marks.tsv cannot be read: it is not a regular file"), "{told}");
    fs::remove_file(&marks).unwrap();
    fs::write(&marks, "1\tbegin\tlogin\nnonsense\n2\tend\tlogin\n").unwrap();
    let told = runtap(["jvm", "report", &path, "segments"]);
    told.expect_code(5);
    assert!(told.stderr.contains("marks.tsv line 2 is not a time"), "{told}");
    assert!(told.text().contains("1.0 ms  login"), "{told}");

    for (kind, name) in [("bytes", "agent0.data0.a2h.bin"), ("index", "agent0.data0.a2h.chunks.tsv")] {
        let path = recording(&dir.path().join(kind), &[]);
        let file = dir.path().join(kind).join(name);
        // The file may not exist.
        let _ = fs::remove_file(&file);
        pipe(&file);
        refused(&[&path], 2, "it is not a regular file");
    }
    fs::remove_file(&marks).unwrap();
    let classes = dir.path().join("classes");
    fs::create_dir(&classes).unwrap();
    pipe(&classes.join("A.class"));
    pipe(&dir.path().join("a.jar"));
    for jar in ["classes", "a.jar"].map(|name| dir.path().join(name).display().to_string()) {
        refused(&[&path, "--never-called", &jar], 2, "it is not a regular file");
    }
    refused(&[&path, "--never-called", "/dev/zero"], 2, "it is not a regular file");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

/// Counts have no times, and none are invented.
#[test]
fn counts_have_calls_and_nothing_else() {
    let dir = folder();
    let counted = |calls: u64| Count { method: 1, calls, thrown: 2, nanoseconds: 0 }.to_bytes();
    let write = |name: &str, rows: &[_]| {
        let rows = CountRows { snapshot: 0, time: 9, last: true, reset: false, rows: Rows::new(rows) };
        recording(&dir.path().join(name), &[named(1, "a/B.run;1;()V"), Message::Counts(rows)])
    };
    let (before, after) = (write("before.dir", &[counted(5)]), write("after.dir", &[counted(12)]));
    let text = shown(&[&after]);
    assert!(text.contains("12 calls of 1 method, 2 calls ended by an exception"), "{text}");
    assert!(text.contains("the agent has sent counts only") && text.contains("Methods, by calls"), "{text}");
    assert!(text.contains("process 7, JVM none"), "{text}");
    let methods = shown(&[&after, "methods"]);
    assert!(methods.contains("-  -      -     12          2  a.B.run()"), "{methods}");
    for kind in ["tree", "slow", "threads", "exceptions"] {
        let text = shown(&[&after, kind]);
        assert!(text.contains("the agent has sent counts only: 'methods' has the calls"), "{kind}: {text}");
    }
    let document = runtap(["jvm", "report", &after, "--format", "json"]).expect_code(0).json();
    let agent = &document["agents"][0];
    assert_eq!((&agent["entries"], &agent["exits"], &agent["bubbles"]), (&12.into(), &10.into(), &2.into()));
    assert!(agent["methods"][0]["total_ns"].is_null() && agent["methods"][0]["self_ns"].is_null());
    let diff = shown(&[&after, "--diff", &before]);
    assert!(diff.contains("no times") && diff.contains("+7"), "{diff}");
    assert!(!diff.contains("ms"), "{diff}");
    refused(&[&after, "--diff", &before, "--sort", "self"], 2, "without times: --sort calls");
    refused(&[&after, "--to", "folded", "-o", "-"], 1, "the agent has sent counts only");
}

/// A call that has not ended has at least its time until the end of the recording, instead of zero.
#[test]
fn calls_without_an_end_have_their_time_so_far() {
    let dir = folder();
    let row = |kind, method, delta| BatchEvent { kind, method, delta }.to_bytes();
    let rows = [
        row(BatchKind::Entry, 1, 0),
        row(BatchKind::Entry, 2, 1_000_000),
        row(BatchKind::Exit, 2, 4_000_000),
        row(BatchKind::Entry, 3, 2_001_000_000),
    ];
    let batch = Message::Batch(Batch { thread: 5, sequence: 0, base: 1000, rows: Rows::new(&rows) });
    let path = recording(
        &dir.path().join("run.dir"),
        &[named(1, "a/B.main;1;()V"), named(2, "a/B.work;1;()V"), named(3, "a/B.wait;1;()V"), batch],
    );
    let tree = shown(&[&path, "tree"]);
    let row = |name: &str| tree.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(row("a.B.main()").contains(">2.00 s") && row("a.B.main()").contains("(1 open)"), "{tree}");
    assert!(row("a.B.work()").trim_start().starts_with("3.0 ms"), "{tree}");
    let document = runtap(["jvm", "report", &path, "tree", "--format", "json"]).expect_code(0).json();
    let main = &document["agents"][0]["tree"][0];
    assert!(main["total_ns"].is_null() && main["self_ns"].is_null(), "{main}");
    assert_eq!((&main["open"], &main["total_so_far_ns"]), (&1.into(), &2_001_000_000_u64.into()));
    assert_eq!(main["self_so_far_ns"], 1_998_000_000_u64);
    let methods = runtap(["jvm", "report", &path, "methods", "--format", "json"]).expect_code(0).json();
    let first = &methods["agents"][0]["methods"][0];
    assert_eq!((&first["name"], &first["without_end"]), (&"a.B.main()".into(), &1.into()));
    // A thread that does not exist.
    refused(&[&path, "tree", "--thread", "77"], 2, "has no thread 77");
    assert!(shown(&[&path, "tree", "--thread", "5"]).contains("a.B.work()"));
}

#[test]
fn a_suspension_is_no_loss() {
    let dir = folder();
    let drop = Drop { thread: 1, sequence: 0, time: 1, count: 812, reason: DropReason::SUSPENDED };
    let path = recording(dir.path(), &[Message::Drop(drop)]);
    let run = runtap(["jvm", "report", &path]);
    let text = run.expect_code(0).text();
    assert!(text.contains("812 events not recorded while recording was suspended"), "{text}");
    assert!(!text.contains("dropped") && !run.stderr.contains("dropped"), "{run}");
    let losses = runtap(["jvm", "report", &path, "losses", "--format", "json"]).expect_code(0).json();
    let losses = &losses["agents"][0]["losses"];
    assert_eq!((&losses["dropped"], &losses["suspended"]), (&0.into(), &812.into()));
}

#[test]
fn options_without_an_effect_are_rejected() {
    let dir = folder();
    let path = recording(dir.path(), &[]);
    for words in [
        &["--include", "a"][..],
        &["methods", "--thread", "0"],
        &["methods", "--merge-threads"],
        &["tree", "--sort", "calls"],
        &["threads", "--slow", "1s"],
        &["--view", "calls"],
        &["--max-depth", "3"],
        &["--to", "folded", "-n", "3"],
    ] {
        refused(&[&[&*path], words].concat(), 2, "applies only to");
    }
    for part in ["5s..1s", "1s..1s"] {
        refused(&[&format!("{path}#{part}")], 2, "its end is not after its start");
    }
    refused(&[&path, "--to", "nettrace"], 2, "possible values: speedscope");
    let zero = runtap(["jvm", "hq", "--interval", "0", "--listen", "127.0.0.1:0", "--duration", "10ms"]);
    assert!(zero.expect_code(3).stderr.contains("no agent has connected"), "{zero}");
}

/// Files of a part, and of an agent, have other names than those of the whole, and are in the recording's folder.
#[test]
fn files_of_parts_have_other_names() {
    let dir = folder();
    let rows = [(BatchKind::Entry, 0), (BatchKind::Exit, 9)]
        .map(|(kind, delta)| BatchEvent { kind, method: 1, delta }.to_bytes());
    let batch = Message::Batch(Batch { thread: 1, sequence: 0, base: 10, rows: Rows::new(&rows) });
    let path = recording(&dir.path().join("run.dir"), &[named(1, "a/B.run;1;()V"), batch]);
    for given in [path.clone(), format!("{path}#0s..1s"), format!("{path}/agent0")] {
        runtap(["jvm", "report", &given, "--to", "folded"]).expect_code(0);
    }
    let mut there: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(
        there,
        ["run.dir", "run.dir-0ns-1000000000ns.folded", "run.dir-agent0.folded", "run.dir.folded"]
    );
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    // Equal traces give equal files: the time in them is the recording's. The recording has no end, so it is unknown
    // which lines did not run.
    let cobertura = runtap(["jvm", "report", &path, "--coverage", "cobertura=-"]);
    let cobertura = cobertura.expect_code(5).text();
    assert!(cobertura.contains("timestamp=\"1700000000000\""), "{cobertura}");
}

/// Parts are marked so that they can be selected later.
#[test]
fn parts_that_cannot_be_selected_are_rejected() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (socket, target) = (at("hq.sock"), at("run.dir"));
    let collector = Collector::start(&["--plain", "--control", &socket, "--record", &target]);
    let send = |command: &str| -> Command {
        let mut send = crate::common::command(["jvm", "hq", "--control", &socket, "--send", command]);
        send.stdin(std::process::Stdio::null());
        send
    };
    for (command, code, why) in [
        ("end never", 4, "has not started"),
        ("begin a=b", 4, "contain neither '=' nor '..'"),
        ("begin a..b", 4, "contain neither '=' nor '..'"),
        ("begin login", 0, ""),
        ("begin login", 4, "has already started"),
        ("end login", 0, ""),
        ("quit", 0, ""),
    ] {
        let output = send(command).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{command}: {said}");
        assert!(said.contains(why), "{command}: {said}");
    }
    let _ = collector.wait();
    let marks = fs::read_to_string(Path::new(&target).join("marks.tsv")).unwrap();
    assert_eq!(marks.lines().count(), 2, "{marks}");
}
