//! `trace -- COMMAND` with several programs at once: which are recorded, and in which files.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use runtap_testkit::{Finished, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, ticks_in, told_ticks, words};
use crate::common::{alone, beside_others, count_of, counts, folder, shell, trace_of};
use crate::speedscope;

fn two(folder: &TempDir, options: &[&str]) -> Finished {
    let demo = demo(folder, "1");
    let mut launched = shell("\"$@\" & \"$@\"; wait", words(&demo));
    launched.env("TMPDIR", folder.path());
    run(trace_of(options.iter().copied(), &launched))
}

#[test]
fn every_connected_process_is_resumed_and_with_children_recorded() {
    // When it exits, a program has five seconds to name the code of its samples, which nearly takes that long without
    // optimization.
    let _machine = alone();
    let folder = folder();
    let file = folder.path().join("x.speedscope.json");
    let options = ["--show-child-io", "--format", "json", "-o", file.to_str().unwrap()];
    let formats =
        ["--to", "speedscope,nettrace", "--providers", DEMO, "--profile", "dotnet-sampled-thread-time"];

    let one = two(&folder, &[&options[..], &formats].concat());
    assert_eq!(told_ticks(&one.expect_code(0).stderr).len(), 2, "both have run");
    assert_eq!(one.json()["processes"].as_array().unwrap().len(), 1);

    let all = two(&folder, &[&options[..], &formats, &["--children"]].concat());
    let summary = all.expect_code(0).json();
    let processes = summary["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    let second = &processes[1]["pid"];
    let names: Vec<&str> =
        summary["outputs"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    let named = |name: String| folder.path().join(name).to_str().unwrap().to_owned();
    let expected = [
        named("x.speedscope.json".into()),
        named("x.nettrace".into()),
        named(format!("x.{second}.speedscope.json")),
        named(format!("x.{second}.nettrace")),
    ];
    assert_eq!(names, expected);
    let mut recorded = [ticks_in(names[1].as_ref()), ticks_in(names[3].as_ref())];
    recorded.sort_unstable();
    assert_eq!(told_ticks(&all.stderr), recorded);
    for (name, process) in [(names[1], &processes[0]), (names[3], &processes[1])] {
        assert_eq!(counts(name.as_ref(), 0)["process_id"], process["pid"]);
    }
}

/// Each of the programs is recorded from its first event to its last, and none stays suspended.
#[test]
fn two_hundred_at_once() {
    const MANY: usize = 200;
    let _machine = beside_others();
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    let demo = demo(&folder, "1");
    let script = format!("i=0; while [ $i -lt {MANY} ]; do \"$@\" & i=$((i+1)); done; wait");
    let mut launched = shell(&script, words(&demo));
    launched.env("TMPDIR", folder.path());
    let options = ["--children", "--providers", DEMO, "--show-child-io", "--format", "json", "-o"];
    let finished = run(trace_of(options.into_iter().chain([file.to_str().unwrap()]), &launched));
    let summary = finished.expect_code(0).json();
    assert_eq!((&summary["partial"], &summary["lost"]), (&Value::Null, &Value::from(0)));
    let mut pids = BTreeSet::new();
    let mut recorded = Vec::new();
    for process in summary["processes"].as_array().unwrap() {
        let counts = counts(process["outputs"][0]["path"].as_str().unwrap().as_ref(), 0);
        assert_eq!(counts["process_id"], process["pid"]);
        recorded.push(count_of(&counts, DEMO, 1));
        pids.insert(process["pid"].as_u64().unwrap());
    }
    assert_eq!(pids.len(), MANY);
    recorded.sort_unstable();
    assert_eq!(told_ticks(&finished.stderr), recorded);
}

#[test]
fn all_processes_can_be_in_one_profile() {
    let folder = folder();
    let file = folder.path().join("x.speedscope.json");
    let formats = "speedscope,folded,chrome,perfetto,firefox,flamegraph,pprof";
    let options = ["--children", "--merge", "--format", "json", "--to", formats, "-o"];
    let finished = two(&folder, &[&options[..], &[file.to_str().unwrap()]].concat());
    let summary = finished.expect_code(0).json();
    let pids: Vec<&Value> =
        summary["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
    assert_eq!(pids.len(), 2);
    assert_eq!(summary["outputs"].as_array().unwrap().len(), 7, "{summary:#}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7, "a file a format is left");
    let names: Vec<String> = speedscope::read(&file).into_iter().map(|thread| thread.name).collect();
    let folded = fs::read_to_string(folder.path().join("x.folded")).unwrap();
    let chrome = fs::read(folder.path().join("x.chromium.json")).unwrap();
    let chrome: Value = serde_json::from_slice(&chrome).unwrap();
    let chrome = chrome["traceEvents"].as_array().unwrap();
    let perfetto = fs::read(folder.path().join("x.perfetto-trace")).unwrap();
    let unpacked =
        Command::new("gzip").arg("-dc").arg(folder.path().join("x.firefox.json.gz")).output().unwrap();
    let firefox: Value = serde_json::from_slice(&unpacked.stdout).unwrap();
    let firefox = firefox["threads"].as_array().unwrap();
    for pid in pids {
        let start = format!("demo ({pid}) Thread (");
        assert!(names.iter().any(|name| name.starts_with(&start)), "{start}: {names:?}");
        assert!(folded.lines().any(|line| line.starts_with(&start) && line.contains("hot_work")), "{folded}");
        // Chrome, Perfetto and Firefox distinguish processes.
        let of_it = |event: &&Value| event["pid"] == *pid;
        let named = |name: &str| chrome.iter().filter(of_it).find(|event| event["name"] == name);
        assert_eq!(named("process_name").unwrap()["args"]["name"], "demo", "{pid}");
        let thread = named("thread_name").unwrap()["args"]["name"].as_str().unwrap();
        assert!(thread.starts_with("Thread ("), "{thread}");
        assert!(perfetto.windows(6).any(|bytes| bytes.starts_with(&descriptor_of_a_thread(pid))), "{pid}");
        let own = pid.to_string();
        let thread = firefox.iter().find(|thread| thread["pid"].as_str() == Some(&own));
        let samples = thread.unwrap_or_else(|| panic!("{start}"))["samples"]["length"].as_u64();
        assert!(samples.is_some_and(|samples| samples > 0), "{start}");
    }
    // The format cannot represent a second process.
    let mistake = run(trace_of(["--children", "--merge"], &Command::new("true")));
    mistake.expect_code(2).says("--to speedscope");
}

/// Returns the start of a thread description of this process in Perfetto's format: `pid`, and the key of `tid`.
fn descriptor_of_a_thread(pid: &Value) -> Vec<u8> {
    let mut rest = pid.as_u64().expect("a number");
    let mut bytes = vec![0x08];
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    bytes.extend([u8::try_from(rest).expect("seven bits"), 0x10]);
    bytes
}
