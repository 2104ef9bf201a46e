//! `jvm report` and `jvm replay` on recordings of the original agents, on a recording made by `jvm hq`, and on damaged
//! recordings.

use std::fs;
use std::path::{Path, PathBuf};

use runtap_testkit::fake_agent::{FakeAgent, recorded};
use runtap_testkit::{Skip, eventually, jvm_recordings, require, shared_data, shared_dir};
use rustix::process::Signal;
use serde_json::Value;

use crate::cli_jvm::{Collector, has_the_members_of_an_agent};
use crate::common::{folder, json, runtap};

/// Returns the folder with the recordings of the original agents.
fn recordings() -> Result<PathBuf, Skip> {
    shared_data("bytefrog/v1_basic.json")?;
    Ok(shared_dir().expect("it was read").join("data/bytefrog"))
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn every_recording_has_the_counts_of_its_json() {
    for recording in require!(jvm_recordings()) {
        let scenario = &*recording.name;
        let count = |name: &str| recording.count(name);
        let path = recording.path().display().to_string();
        let replayed = json(["jvm", "replay", &path, "--format", "json"]);
        let reported = json(["jvm", "report", &path, "--format", "json"]);
        assert_eq!(replayed, reported, "{scenario}");
        assert_eq!(replayed["schema"], "runtap.jvm/1");
        let agent = &replayed["agents"][0];
        for (member, name) in [
            ("entries", "methodEntry"),
            ("exits", "methodExit"),
            ("exceptions", "exception"),
            ("bubbles", "exceptionBubble"),
            ("markers", "marker"),
            ("data_breaks", "dataBreak"),
            ("signatures", "mapMethodSignature"),
        ] {
            assert_eq!(agent[member], count(name), "{scenario}: {member}");
        }
        for (member, name) in [
            ("transformed", "classTransformed"),
            ("ignored", "classIgnored"),
            ("failed", "classTransformFailed"),
        ] {
            assert_eq!(agent["classes"][member], count(name), "{scenario}: {member}");
        }
        assert_eq!(agent["version"], recording.version(), "{scenario}");
        assert_eq!(agent["run_id"], if scenario == "v1_reconfigure" { 9 } else { 7 }, "{scenario}");
        assert_eq!(agent["gaps"], 0, "{scenario}");
        let events: u64 = ["methodEntry", "methodExit", "exception", "exceptionBubble", "methodVisit"]
            .into_iter()
            .map(count)
            .sum();
        assert_eq!(agent["last_sequence"].as_u64(), events.checked_sub(1), "{scenario}");
        assert_eq!(agent["first_sequence"].as_u64(), (events > 0).then_some(0), "{scenario}");
        has_the_members_of_an_agent(agent);
        if let Some(oracle) = recording.oracle() {
            let lines: Vec<String> = agent["methods"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| {
                    let signature = it["signature"].as_str().unwrap();
                    format!("{signature}\t{}\t{}\t{}", it["entries"], it["exits"], it["exception_exits"])
                })
                .collect();
            assert_eq!(lines, oracle, "{scenario}");
            assert_eq!(agent["threads"], 3);
        }
    }
}

#[test]
fn kinds_of_reports() {
    let folder = require!(recordings());
    let basic = path(&folder, "v1_basic");
    let text = |words: &[&str]| {
        let all: Vec<&str> = ["jvm", "report", &basic].iter().chain(words).copied().collect();
        runtap(all).expect_code(0).text().to_owned()
    };
    let tree = text(&["tree", "-n", "3"]);
    assert!(
        tree.contains("1    demo.Counts.fib(int)") && tree.contains("2      demo.Counts.fib(int)"),
        "{tree}"
    );
    assert!(tree.contains("more rows (-n shows more)"), "{tree}");
    let exceptions = text(&["exceptions"]);
    for row in [
        "thrown     java.lang.IllegalStateException",
        "raised     java.lang.NullPointerException",
        "swallowed",
    ] {
        assert!(exceptions.contains(row), "{row} in {exceptions}");
    }
    assert!(text(&["slow", "--slow", "10ms"]).contains("demo.Counts.fib(int) < demo.Counts.main"));
    assert!(text(&["threads"]).contains("worker-0-renamed"));
    assert!(text(&["classes"]).contains("transformed      1  demo.Counts$Node"));
    assert!(text(&["losses"]).contains("nothing is missing"));
    assert!(text(&["segments"]).contains("the program has set no markers"));
    for line in text(&["methods", "--sort", "calls"]).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let document = |kind: &str| json(["jvm", "report", &basic, kind, "--format", "json", "-n", "2"]);
    for kind in ["methods", "tree", "exceptions", "threads", "classes"] {
        let document = document(kind);
        assert_eq!(document["schema"], format!("runtap.jvm.{kind}/1"));
        assert_eq!(document["agents"][0][kind].as_array().unwrap().len(), 2, "{kind}");
    }
    assert_eq!(document("losses")["agents"][0]["losses"]["missing"], 0);
    let part = json(["jvm", "report", &format!("{basic}#..40ms"), "methods", "--format", "json"]);
    let calls: u64 = part["agents"][0]["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["entries"].as_u64().unwrap())
        .sum();
    assert!(calls > 0 && calls < 2542, "{calls}");
    let unknown = runtap(["jvm", "report", &format!("{basic}#login")]).expect_code(2).stderr.clone();
    assert!(unknown.contains("no part is named 'login'; the recording has none"), "{unknown}");
}

#[test]
fn sets_and_differences() {
    let folder = require!(recordings());
    let [basic, jdk25, pause] = ["v1_basic", "v1_jdk25", "v1_pause"].map(|name| path(&folder, name));
    let names = |words: &[&str]| -> Vec<String> {
        let all = ["jvm", "report"].iter().chain(words).chain(&["--format", "json"]).copied();
        let document = json(all.collect::<Vec<_>>());
        assert_eq!(document["schema"], "runtap.jvm.sets/1");
        let methods = document["methods"].as_array().unwrap();
        methods.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[&basic, "--minus", &jdk25]), Vec::<String>::new());
    assert_eq!(names(&[&basic, "--and", &pause]), Vec::<String>::new());
    assert_eq!(names(&[&pause, "--minus", &basic]).len(), 2);
    assert_eq!(names(&[&basic, "--or", &pause]).len(), 22);
    assert_eq!(names(&[&basic, "--minus", &pause, "--or", &pause]).len(), 20);
    let ran = names(&[&format!("{basic}#..40ms"), "--minus", &format!("{basic}#40ms..")]);
    assert!(ran.contains(&"demo.Counts.main(String[])".to_owned()) && ran.len() < 5, "{ran:?}");
    let table = runtap(["jvm", "report", &basic, "--minus", &pause]).expect_code(0).text().to_owned();
    assert!(
        table.contains("= 20 methods") && table.contains("1,973          -  demo.Counts.fib(int)"),
        "{table}"
    );

    let diff = json(["jvm", "report", &pause, "--diff", &basic, "--sort", "calls", "--format", "json"]);
    assert_eq!(diff["schema"], "runtap.jvm.diff/1");
    assert_eq!((&diff["changed_count"], &diff["methods_count"]), (&22.into(), &22.into()));
    assert_eq!(diff["methods"][0]["calls"], serde_json::json!({"before": 1973, "after": 0, "change": -1973}));
    let none = runtap(["jvm", "report", &basic, "--diff", &basic]).expect_code(0).text().to_owned();
    assert!(none.contains("no method changed"), "{none}");
}

#[test]
fn files_for_viewers() {
    let recordings = require!(recordings());
    let (dir, basic) = (folder(), path(&recordings, "v1_basic"));
    let to = |format: &str, view: &str, name: &str| {
        let file = path(dir.path(), name);
        let made = runtap(["jvm", "report", &basic, "--to", format, "--view", view, "-o", &file]);
        made.expect_code(0);
        fs::read(file).unwrap()
    };
    let speedscope: Value = serde_json::from_slice(&to("speedscope", "time", "a.json")).unwrap();
    let profiles = speedscope["profiles"].as_array().unwrap();
    assert!(profiles.iter().all(|it| it["type"] == "evented"));
    assert_eq!(profiles[0]["name"], "Thread (0) main");
    let calls = String::from_utf8(to("folded", "calls", "a.folded")).unwrap();
    assert!(
        calls.contains(
            "Thread (0) main;demo.Counts.main(String[]);demo.Counts.fib(int);demo.Counts.fib(int) 2\n"
        ),
        "{calls}"
    );
    let sum: u64 = calls.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 2542);
    for format in ["chrome", "perfetto", "firefox", "pprof", "flamegraph"] {
        assert!(!to(format, "time", format).is_empty(), "{format}");
    }
    let both = path(dir.path(), "both.svg");
    runtap(["jvm", "report", &basic, "--to", "flamegraph,pprof", "--view", "calls", "-o", &both])
        .expect_code(0);
    assert!(dir.path().join("both.svg").is_file() && dir.path().join("both.pb.gz").is_file());
    let timeless =
        runtap(["jvm", "report", &basic, "--to", "chrome", "--view", "calls"]).expect_code(2).stderr.clone();
    assert!(timeless.contains("calls have no time axis"), "{timeless}");
    let nettrace = runtap(["jvm", "report", &basic, "--to", "nettrace"]).expect_code(2).stderr.clone();
    assert!(nettrace.contains("possible values: speedscope"), "{nettrace}");
}

#[test]
fn a_collector_that_is_killed_leaves_its_recording() {
    let (dialect, steps) = require!(recorded("v1_basic"));
    let dir = folder();
    let target = path(dir.path(), "run.dir");
    let collector = Collector::start(&["--record", &target, "--plain"]);
    let mut agent = FakeAgent::connect(collector.address, dialect).unwrap();
    // All events, but neither the last heartbeat nor an end.
    let until =
        steps.iter().position(|step| matches!(step, runtap_testkit::fake_agent::Step::Data(..))).unwrap();
    agent.run(&steps[..=until]).unwrap();
    let size = shared_data("bytefrog/v1_basic.data0.a2h.bin").unwrap().len() as u64;
    let data = dir.path().join("run.dir/agent0.data0.a2h.bin");
    eventually("all data", || (fs::metadata(&data).ok()?.len() == size).then_some(()));
    // The lines of the index are written after the bytes that they describe.
    let index = dir.path().join("run.dir/agent0.data0.a2h.chunks.tsv");
    eventually("the index of the data", || {
        let lines = fs::read_to_string(&index).ok()?;
        let whole = lines.rsplit_once('\n')?.0.lines();
        let told: Option<u64> = whole.map(|line| line.split_once('\t')?.1.parse::<u64>().ok()).sum();
        (told? == size).then_some(())
    });
    collector.signal(Signal::KILL);
    drop(collector);
    let replayed = runtap(["jvm", "replay", &target, "--format", "json"]);
    replayed.expect_code(5);
    assert!(replayed.stderr.contains("the recording ends before the connection"), "{replayed}");
    assert_eq!(replayed.json()["agents"][0]["entries"], 2542);
    let again = runtap(["jvm", "hq", "--listen", "127.0.0.1:0", "--record", &target, "--once"]);
    assert_ne!(again.expect_code(1).stderr.clone().find("already contains a recording"), None);
}

#[test]
fn damage_is_reported_and_the_rest_is_read() {
    let recordings = require!(recordings());
    let dir = folder();
    for name in
        ["ctl.a2h.bin", "ctl.a2h.chunks.tsv", "data0.a2h.bin", "data0.a2h.chunks.tsv", "data1.a2h.bin"]
    {
        let bytes = fs::read(recordings.join(format!("v1_reconfigure.{name}"))).unwrap();
        fs::write(dir.path().join(format!("v1_reconfigure.{name}")), bytes).unwrap();
    }
    let data = dir.path().join("v1_reconfigure.data1.a2h.bin");
    let mut bytes = fs::read(&data).unwrap();
    let at = bytes.len() - 17;
    bytes[at] = 0xee;
    fs::write(&data, bytes).unwrap();
    let told = runtap(["jvm", "report", &path(dir.path(), ""), "losses"]);
    told.expect_code(5);
    let words = format!("v1_reconfigure.data1.a2h can't be read beyond offset {at}");
    assert!(told.text().contains(&words) && told.stderr.contains(&words), "{told}");
    assert!(told.text().contains("FROG001"), "{told}");

    let nothing = runtap(["jvm", "replay", &path(dir.path(), "none")]).expect_code(2).stderr.clone();
    assert!(nothing.contains("cannot read"), "{nothing}");
    fs::write(dir.path().join("v1_reconfigure.ctl.a2h.bin"), "GET / HTTP/1.1").unwrap();
    let hello = runtap(["jvm", "replay", &path(dir.path(), "")]).expect_code(2).stderr.clone();
    assert!(hello.contains("does not start with the hello of an agent"), "{hello}");
    fs::create_dir(dir.path().join("empty")).unwrap();
    let empty = runtap(["jvm", "replay", &path(dir.path(), "empty")]).expect_code(2).stderr.clone();
    assert!(
        empty.contains("is not a recording of Bytefrog connections") && empty.contains("--record DIR"),
        "{empty}"
    );
}
