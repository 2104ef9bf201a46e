//! A program with extreme names, messages, tags and payloads, recorded and followed live: the output has no side
//! effects, and contains the program's texts.

use std::fs;

use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually};
use serde_json::Value;

use crate::cli_hostile_texts::{judge_events, judge_lines, judge_meaning};
use crate::common::{Recording, Target, command, runtap};

on_each_runtime!(a_recording_of_odd_names_shows_them_harmless, tail_shows_odd_texts_harmless);
on_the_newest_runtime!(thread_names_have_no_side_effects);

const RUNTIME: &str = "Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:0x8019:4";
const PROVIDERS: &str = "Evil-Source,Evil-Broken,Evil-SelfDesc,\
    System.Diagnostics.Metrics:3:4:SessionId=s;Metrics=Evil.Meter;RefreshInterval=1,\
    Microsoft-Diagnostics-DiagnosticSource:3:5:FilterAndPayloadSpecs=\"Evil.Listener/Evil.Event.Before:Command.CommandText\"";

/// The text of one event, as the program writes it.
const TEXT: &str = "line1\nline2\t\"q\" \\ \u{7} 😀";

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn has_text(events: &[Value]) -> bool {
    events.iter().any(|event| event["name"] == "Str" && event["payload"]["s"] == TEXT)
}

fn evil(runtime: &RealRuntime, mode: &str) -> Result<Target, Skip> {
    Ok(Target::start(runtime.reported_program("evil", &[mode, "600"])?))
}

fn a_recording_of_odd_names_shows_them_harmless(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = evil(runtime, "all")?;
    let file = target.temp.path().join("spin.nettrace");
    let recording =
        Recording::start(&target, file.clone(), &["--providers", &format!("{RUNTIME},{PROVIDERS}")]);
    recording.wait_for_bytes(1_000_000);
    recording.runtap.signal(Signal::INT);
    recording.finish(0);
    let file = file.to_str().unwrap();
    let listed = runtap(["events", file, "--provider", "Evil-Source"]);
    assert!(has_text(&events(listed.expect_code(0).text())), "no event has the text");
    judge_events(file);
    judge_meaning(target.temp.path(), file);
    Ok(())
}

fn tail_shows_odd_texts_harmless(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = evil(runtime, "all")?;
    for format in ["json", "text", "csv"] {
        let output = target.temp.path().join(format);
        let mut tail = command(["tail", "-p", &target.p(), "--providers", PROVIDERS, "--format", format]);
        tail.stdout(fs::File::create(&output).unwrap());
        let tail = Running::start_as_it_is(tail);
        // In every format the line break is printed as two characters. The program writes all of its events once per
        // round.
        eventually("two rounds of events", || {
            let printed = fs::read_to_string(&output);
            printed.is_ok_and(|text| text.matches("line1\\nline2").count() > 1).then_some(())
        });
        tail.signal(Signal::INT);
        let finished = tail.wait();
        finished.expect_code(0);
        let printed = fs::read_to_string(&output).unwrap();
        judge_lines(&printed, format);
        judge_lines(&finished.stderr, "text");
        if format == "json" {
            assert!(has_text(&events(&printed)), "no event has the text");
        }
    }
    Ok(())
}

/// The kernel keeps the first 15 bytes of a thread's name, which recordings contain.
fn thread_names_have_no_side_effects(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = evil(runtime, "deep")?;
    let file = target.temp.path().join("spin.nettrace");
    let recording = Recording::start(&target, file.clone(), &["--to", "nettrace", "--to", "speedscope"]);
    recording.wait_for_bytes(100_000);
    recording.runtap.signal(Signal::INT);
    recording.finish(0);
    let profile = fs::read_to_string(file.with_extension("speedscope.json")).unwrap();
    judge_lines(&profile, "document");
    assert!(profile.contains("\\\"ead"), "the name of the thread is missing");
    Ok(())
}
