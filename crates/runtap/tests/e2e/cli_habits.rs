//! Conventions of other tools and of shells: formats by extension, `-` as input, options of dotnet-trace and
//! dotnet-dump; unsupported ones are reported.

use std::fs::{self, File};
use std::path::Path;

use runtap_testkit::{Finished, Running, recordings, require, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, path};
use crate::common::{beside_others, command, counts, folder, json, runtap, trace_of};

/// Records the demo service.
fn recorded(folder: &TempDir) -> String {
    let file = path(folder, "x.nettrace");
    run(trace_of(["-o", &file], &demo(folder, "0.5"))).expect_code(0);
    file
}

#[test]
fn the_extension_selects_the_format() {
    let folder = folder();
    let named = |name: &str| path(&folder, name);
    let launched = demo(&folder, "0.5");
    for (name, format) in
        [("a.speedscope.json", "speedscope"), ("a.nettrace", "nettrace"), ("a.b", "nettrace")]
    {
        let told = run(trace_of(["--format", "json", "-o", &named(name)], &launched));
        let outputs = &told.expect_code(0).json()["outputs"];
        assert_eq!((&outputs[0]["format"], &outputs[0]["path"]), (&format.into(), &named(name).into()));
        assert_eq!(outputs.as_array().unwrap().len(), 1);
    }
    // As with dotnet-trace's `--format`, the recording is kept.
    let told = run(trace_of(["--format", "Speedscope", "-o", &named("e.nettrace")], &launched));
    told.expect_code(0);
    assert!(Path::new(&named("e.nettrace")).exists() && Path::new(&named("e.speedscope.json")).exists());
    let svg = named("b.svg");
    runtap(["convert", &named("a.nettrace"), "-o", &svg]).expect_code(0);
    assert!(fs::read_to_string(svg).unwrap().contains("<svg"));
    // An explicit format takes precedence.
    let odd = named("c.svg");
    runtap(["convert", &named("a.nettrace"), "-o", &odd, "--to", "folded"]).expect_code(0);
    assert!(!fs::read_to_string(odd).unwrap().contains("<svg"));
    runtap(["convert", &named("a.nettrace"), "-o", &named("d.x")]).expect_code(2).says("no format specified");
}

#[test]
fn a_dash_is_stdin() {
    let folder = folder();
    let file = recorded(&folder);
    for words in [
        &["report", "-", "cpu"][..],
        &["report", "-", "topN", "-n", "5"],
        &["events", "-", "--count"],
        &["convert", "-", "--to", "folded", "-o", "-"],
        &["inspect", "-"],
    ] {
        let direct = runtap(words.iter().enumerate().map(|(i, word)| if i == 1 { &file } else { *word }));
        // From a file, and through a pipe.
        let mut redirected = command(words);
        redirected.stdin(File::open(&file).unwrap()).stdout(std::process::Stdio::piped());
        let redirected = Running::start_as_it_is(redirected).wait();
        let mut piped = std::process::Command::new("sh");
        piped
            .args(["-c", "f=$1; shift; cat \"$f\" | \"$@\"", "sh", &file])
            .arg(env!("CARGO_BIN_EXE_runtap"))
            .args(words);
        let piped = run(piped);
        for finished in [redirected, piped] {
            let strip = |text: &str| text.replace(&file, "").replace("/dev/stdin", "");
            assert_eq!(
                strip(finished.expect_code(0).text()),
                strip(direct.expect_code(0).text()),
                "{words:?}"
            );
        }
    }
    let mut nowhere = command(["convert", "-", "--to", "folded"]);
    nowhere.stdin(File::open(&file).unwrap()).stdout(std::process::Stdio::piped());
    Running::start_as_it_is(nowhere).wait().expect_code(2).says("use -o");
}

/// The events of the copy equal those of the first format: their numbers, names, fields and stacks.
#[test]
fn the_first_format_is_converted_to_the_current_one() {
    let _machine = beside_others();
    let folder = folder();
    let (old, new) = (path(&folder, "old.netperf"), path(&folder, "old.nettrace"));
    let mut renewed = 0;
    for recording in require!(recordings()) {
        if recording.expected["version"] != 3 {
            continue;
        }
        fs::write(&old, &recording.bytes).unwrap();
        let code = if recording.expected["end_marker"] == true { 0 } else { 5 };
        runtap(["convert", &old, "--to", "nettrace"]).expect_code(code);
        let (before, after) = (counts(Path::new(&old), code), counts(Path::new(&new), 0));
        assert_eq!((&after["format"], &after["version"]), (&"Nettrace".into(), &4.into()));
        assert_eq!((&before["events"], &before["counts"]), (&after["events"], &after["counts"]));
        let events = |file: &str, code| -> Vec<Value> {
            let told = runtap(["events", file, "--stacks"]);
            let lines = told.expect_code(code).text().lines();
            let event = |line: &str| {
                let mut event: Value = serde_json::from_str(line).unwrap();
                // The first format does not contain these.
                event.as_object_mut().unwrap().retain(|key, _| key != "capture_thread" && key != "processor");
                event
            };
            lines.map(event).collect()
        };
        let (before, after) = (events(&old, code), events(&new, 0));
        assert!(before == after, "{}: events differ", recording.path.display());
        renewed += 1;
    }
    assert!(renewed >= 2, "only {renewed} recordings");
    runtap(["convert", &new, "--to", "nettrace", "-o", &path(&folder, "newer.nettrace")])
        .expect_code(2)
        .says("already in the nettrace format");
}

#[test]
fn impossible_requests_are_reported() {
    let gone = "4294967295";
    let trace = |more: &[&str]| runtap(["trace", "-p", gone].iter().chain(more));
    trace(&["--providers", "A:1:9"]).expect_code(3).says("A: the highest level is 5 (Verbose)");
    trace(&["--clrevents", "gc", "--clreventlevel", "6"]).expect_code(3).says("the highest level is 5");
    trace(&["--profile", ""]).expect_code(3).says("--profile is empty").says("list-profiles");
    let stopping = ["--providers", DEMO, "--stopping-event-provider-name", "Other"];
    trace(&stopping).expect_code(3).says("Other is not recorded").says("never occurs");
    an_impossible_stopping_event_is_reported(trace);
    runtap(["dump", "-p", gone, "-o", "-"]).expect_code(2).says("stdout");
    runtap(["set-env", gone]).expect_code(2).says("NAME=VALUE is missing");
    runtap(["set-env", "A=1"]).expect_code(2).says("no target specified");
    runtap(["startup-hook", gone]).expect_code(2).says("path of the assembly");
}

fn an_impossible_stopping_event_is_reported(trace: impl Fn(&[&str]) -> Finished) {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let stopping = |providers: &[&str], provider: &str, name: &str, more: &[&str]| {
        let event = ["--stopping-event-provider-name", provider, "--stopping-event-event-name", name];
        trace(&[providers, &event, more].concat())
    };
    stopping(&["--providers", "Demo-Orders"], "Demo-Order", "Any", &[])
        .expect_code(3)
        .says("Demo-Order is not recorded")
        .says("did you mean 'Demo-Orders'?");
    stopping(&["--clrevents", "gc"], RUNTIME, "GC/Strat", &[])
        .expect_code(3)
        .says("is named 'GC/Strat'")
        .says("did you mean 'GC/Start'?");
    stopping(&["--clrevents", "exception"], RUNTIME, "GC/Start", &[])
        .expect_code(3)
        .says("GC/Start is not recorded")
        .says("with the keyword 0x1 (gc)");
    stopping(&["--clrevents", "gc", "--clreventlevel", "4"], RUNTIME, "GC/AllocationTick", &[])
        .expect_code(3)
        .says("from level 5 on, and the level is 4 (Informational)");
    let filter = format!("{RUNTIME}=2,3");
    stopping(&["--clrevents", "gc", "--event-filter", &filter], RUNTIME, "GC/Start", &[])
        .expect_code(3)
        .says("--event-filter excludes GC/Start (id 1)");
    stopping(&["--clrevents", "gc"], RUNTIME, "GC/Start", &["--stopping-event-payload-filter", "Dept:2"])
        .expect_code(3)
        .says("GC/Start has no field 'Dept'")
        .says("did you mean 'Depth'?");
    let reachable = ["--stopping-event-payload-filter", "Depth:2"];
    let told = stopping(&["--clrevents", "gc"], RUNTIME, "GC/Start", &reachable);
    assert!(!told.expect_code(3).stderr.contains("stopping event"), "{told}");
}

#[test]
fn options_of_other_tools_are_supported() {
    let gone = "4294967295";
    runtap(["dump", "collect", "-p", gone]).expect_code(3).says(gone);
    runtap(["dump", "collect"]).expect_code(3).says("named 'collect'");
    runtap(["collect", "-p", gone, "--format", "Speedscope"]).expect_code(3).says(gone);
    let document = json(["list-profiles", "--format", "json"]);
    assert_eq!(document["schema"], "runtap.profiles/1");
    let profiles = document["profiles"].as_array().unwrap();
    let common = profiles.iter().find(|profile| profile["name"] == "dotnet-common").unwrap();
    assert_eq!(common["providers"][0]["keywords"], "0x100003801d");
    let text = runtap(["list-profiles"]);
    let text = text.expect_code(0).text();
    assert!(text.contains("\n    Microsoft-Windows-DotNETRuntime:0x100003801d:4\n"), "{text}");
}

/// Returns the shell's completions of these words.
fn completed(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut shell = command(["--", "runtap"].iter().chain(words));
    shell.env("COMPLETE", "fish").env("_CLAP_COMPLETE_INDEX", words.len().to_string()).current_dir(folder);
    let lines = run(shell).expect_code(0).text().lines().map(str::to_owned).collect::<Vec<_>>();
    lines.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn a_shell_completes_verbs_keywords_profiles_and_recordings() {
    let folder = folder();
    for name in ["a.nettrace", "b.netperf", "c.txt", "x\u{1b}[2J.nettrace"] {
        fs::write(path(&folder, name), "").unwrap();
    }
    let completed = |words: &[&str]| completed(folder.path(), words);
    let verbs = completed(&[""]);
    for verb in ["trace", "collect", "ps", "report"] {
        assert!(verbs.iter().any(|it| it == verb), "{verb} is not among {verbs:?}");
    }
    for verb in ["trace", "collect", "tail"] {
        assert_eq!(completed(&[verb, "--clrevents", "gc+excep"]), ["gc+exception"]);
        assert_eq!(completed(&[verb, "--profile", "gc-verbose,data"]), ["gc-verbose,database"]);
    }
    for verb in ["report", "events", "convert", "repair", "inspect", "diff"] {
        let files = completed(&[verb, ""]);
        let files: Vec<&String> = files.iter().filter(|file| !file.starts_with('-')).collect();
        assert_eq!(files, ["a.nettrace", "b.netperf"], "{verb}");
    }
}
