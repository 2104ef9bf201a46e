//! `convert --compat dotnet-trace` equals dotnet-trace's output for a recording, in speedscope and chrome: every
//! thread, every frame's start and end, and all times, to the last bit, including the activities of a thread.

use std::fs;
use std::path::{Path, PathBuf};

use runtap_testkit::{
    Launch, Peer, RealRuntime, Recording as Shared, Signal, Skip, recordings, require, run,
};
use serde_json::Value;

use crate::common::{Recording, Target, beside_others, folder, runtap};

on_each_runtime!(activities_of_a_web_application, activities_of_exceptions);

/// Threads and their open (`O`) and close events: frame, and time in milliseconds.
type Threads = Vec<(String, Vec<(String, String, f64)>)>;

fn document(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn threads(file: &Path) -> Threads {
    let document = document(file);
    let frames = document["shared"]["frames"].as_array().unwrap();
    let event = |event: &Value| {
        let frame = &frames[usize::try_from(event["frame"].as_u64().unwrap()).unwrap()]["name"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&event["type"]), text(frame), event["at"].as_f64().unwrap())
    };
    let profile = |profile: &Value| {
        let name = profile["name"].as_str().unwrap().to_owned();
        (name, profile["events"].as_array().unwrap().iter().map(event).collect())
    };
    document["profiles"].as_array().unwrap().iter().map(profile).collect()
}

/// Returns whether dotnet-trace can read the recording and finds samples in it.
fn has_samples(recording: &Shared) -> bool {
    let rows = recording.expected["counts"].as_array().unwrap().iter();
    let sampled = |row: &Value| match row["provider"].as_str().unwrap() {
        "Microsoft-DotNETCore-SampleProfiler" => true,
        "Microsoft-Windows-DotNETRuntime" => row["id"] == 10,
        _ => false,
    };
    recording.version() >= 4 && rows.into_iter().any(sampled)
}

/// Compares both outputs for a recording, for which runtap exits with `code`; returns false if it has no samples.
fn compare(file: &Path, code: i32, dotnet_trace: &Peer) -> bool {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let copy = place("it.nettrace");
    fs::copy(file, &copy).unwrap();
    for (format, theirs) in [("Speedscope", "it.speedscope.json"), ("Chromium", "it.chromium.json")] {
        let mut convert = dotnet_trace.command();
        convert.arg("convert").arg(&copy).args(["--format", format]);
        run(convert).expect_code(0);
        let (to, ours) = if format == "Speedscope" { ("speedscope", "ours.s") } else { ("chrome", "ours.c") };
        let (theirs, ours) = (place(theirs), place(ours));
        let arguments = ["convert", copy.to_str().unwrap(), "--compat", "dotnet-trace", "--to", to, "-o"];
        let done = runtap(arguments.into_iter().chain([ours.to_str().unwrap()]));
        if to == "speedscope" {
            let theirs = threads(&theirs);
            if theirs.is_empty() {
                // dotnet-trace writes an empty profile, which no viewer opens.
                done.expect_code(1).says("no samples");
                return false;
            }
            done.expect_code(code);
            let ours = threads(&ours);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours.0, theirs.0, "{}", file.display());
                let different = ours.1.iter().zip(&theirs.1).position(|(ours, theirs)| ours != theirs);
                let shown = different.map(|at| (at, &ours.1[at], &theirs.1[at]));
                assert!(ours.1 == theirs.1, "{}: {}: {shown:?}", file.display(), ours.0);
            }
            assert_eq!(ours.len(), theirs.len(), "{}", file.display());
        } else {
            let (mut ours, mut theirs) = (document(&ours), document(&theirs));
            // serde_json parses some spellings of a number with an error of one bit.
            for (ours, theirs) in times(&mut ours).zip(times(&mut theirs)) {
                let (a, b) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
                assert!((a - b).abs() <= b.abs() * 1e-15, "{}: {a} is {b}", file.display());
                *ours = theirs.take();
                *theirs = ours.clone();
            }
            for part in ["traceEvents", "stackFrames"] {
                assert!(ours[part] == theirs[part], "{}: {part}", file.display());
            }
        }
    }
    true
}

/// Returns the times of Chrome trace events.
fn times(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    document["traceEvents"].as_array_mut().unwrap().iter_mut().map(|event| &mut event["ts"])
}

#[test]
fn every_frame_starts_and_ends_as_in_dotnet_trace() {
    let _machine = beside_others();
    let dotnet_trace = require!(Peer::available("dotnet-trace"));
    let recordings = require!(recordings());
    let folder = folder();
    let mut compared = 0;
    for recording in recordings.iter().filter(|recording| has_samples(recording)) {
        let name = recording.path.file_name().unwrap().to_str().unwrap().replace(".zst", "");
        let file = folder.path().join(name);
        fs::write(&file, &recording.bytes).unwrap();
        let code = if recording.expected["end_marker"] == true { 0 } else { 5 };
        compared += u32::from(compare(&file, code, &dotnet_trace));
    }
    assert!(compared >= 12, "only {compared} recordings were compared");
}

/// Requests that the program sends and answers itself, with exceptions, with tasks and without.
fn activities_of_a_web_application(runtime: &RealRuntime) -> Result<(), Skip> {
    let dotnet_trace = Peer::available("dotnet-trace")?;
    let web = "Microsoft.AspNetCore.Hosting,Microsoft-AspNetCore-Server-Kestrel,System.Net.Http";
    for keywords in ["0xeb", "0x80"] {
        let providers = format!("System.Threading.Tasks.TplEventSource:{keywords}:4,{web}");
        let (_target, file) =
            sampled(runtime.program("web", &["0", "30", "5", "--stdin", "--linger", "600"])?, &providers);
        assert!(compare(&file, 0, &dotnet_trace));
        if keywords == "0xeb" {
            has_activity(&file, "Request");
        }
        requests(&file, keywords == "0xeb");
    }
    Ok(())
}

/// An exception is handled between two samples. An exception whose `catch` rethrows never ends.
fn activities_of_exceptions(runtime: &RealRuntime) -> Result<(), Skip> {
    let dotnet_trace = Peer::available("dotnet-trace")?;
    let providers = "System.Threading.Tasks.TplEventSource:0x80:4";
    let (_target, file) = sampled(runtime.program("allocs", &["--stdin", "--linger", "600"])?, providers);
    assert!(compare(&file, 0, &dotnet_trace));
    has_activity(&file, "ExceptionHandling");
    Ok(())
}

/// Records a program from its start to its answer, with the sampler and these providers.
fn sampled(program: Launch, providers: &str) -> (Target, PathBuf) {
    let sampler = "Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:0x14C14FCCBD:4";
    let mut target = Target::start(program);
    let more = ["--providers", &format!("{sampler},{providers}")];
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &more);
    recording.wait_for_bytes(1);
    target.program.begin();
    target.program.truth();
    recording.runtap.signal(Signal::INT);
    let (_, file) = recording.finish(0);
    (target, file)
}

/// Fails if no sample was taken in an activity of this task.
fn has_activity(file: &Path, task: &str) {
    let folder = folder();
    let ours = folder.path().join("ours.json");
    let arguments = ["convert", file.to_str().unwrap(), "--compat", "dotnet-trace", "--to", "speedscope"];
    runtap(arguments.into_iter().chain(["-o", ours.to_str().unwrap()])).expect_code(0);
    let frames = document(&ours)["shared"]["frames"].to_string();
    assert!(frames.contains(&format!("Activity {task}(")), "no {task} in {frames}");
}

/// The view `request`: five requests of 20 ms each, which the program spends in an await if tasks were recorded.
fn requests(file: &Path, has_tasks: bool) {
    let report = ["report", file.to_str().unwrap(), "cpu", "--view", "request", "--format", "json"];
    let report = runtap(report).expect_code(0).json();
    let frames = report["frames"].as_array().unwrap();
    let total = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        let found = frames
            .iter()
            .filter(|frame| frame["module"].is_null() && wanted(frame["name"].as_str().unwrap()));
        found.map(|frame| frame["total"].as_u64().unwrap()).sum()
    };
    let slow = total(&|name| name.starts_with("http://") && name.ends_with("/slow"));
    assert!(slow >= 5 * 18_000_000, "{slow}: {report:#}");
    assert!(total(&|name| name == "GET /slow") > 0, "{report:#}");
    let awaited = total(&|name| name == "[awaiting]");
    assert_eq!(awaited > 0, has_tasks, "{awaited}: {report:#}");
    let idle = |frame: &&Value| frame["name"].as_str().unwrap().contains("LowLevelLifoSemaphore.Wait");
    assert!(!frames.iter().any(|frame| idle(&frame)), "a thread that has nothing to do works for no request");
    assert!(
        !frames.iter().any(|frame| frame["name"].as_str().unwrap().starts_with("Activity")),
        "{report:#}"
    );
}

#[test]
fn formats_without_overlapping_threads_are_rejected() {
    let error = runtap(["convert", "x.nettrace", "--compat", "dotnet-trace", "--to", "perfetto"]);
    error.expect_code(2).says("--compat").says("speedscope");
}
