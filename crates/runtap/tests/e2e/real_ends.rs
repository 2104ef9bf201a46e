//! All the ways in which a recording ends: on its own, by signals, by the exit of the target, or because its reader is
//! gone.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually};
use rustix::process::{Pid, kill_process};
use serde_json::Value;

use crate::common::{Recording, Target, command, counts, runtap};

on_each_runtime!(
    a_signal_finishes_the_recording,
    a_second_signal_gives_up_what_is_missing,
    a_killed_target_leaves_what_was_received,
    a_target_that_ends_by_itself_is_recorded_whole,
    a_stream_goes_to_stdout,
);
on_the_newest_runtime!(a_reader_that_does_not_read_can_be_interrupted, a_conversion_can_be_interrupted);

/// Starts a program that is busy until it is dropped.
fn busy(runtime: &RealRuntime) -> Result<Target, Skip> {
    Ok(Target::start(runtime.program("spin", &["600", "20000"])?))
}

fn is_complete(summary: &Value) {
    assert_eq!(summary["schema"], "runtap.trace/1");
    assert_eq!((&summary["partial"], &summary["lost"]), (&Value::Null, &Value::from(0)), "{summary:#}");
}

fn a_signal_finishes_the_recording(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = busy(runtime)?;
    for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM), ("hup", Signal::HUP)] {
        if signal == Signal::HUP && hang_up_is_ignored() {
            continue;
        }
        let file = target.temp.path().join(format!("{name}.nettrace"));
        let recording = Recording::start(&target, file, &[]);
        recording.wait_for_bytes(10_000);
        recording.runtap.signal(signal);
        let (summary, file) = recording.finish(0);
        is_complete(&summary);
        assert_eq!(summary["pid"], target.pid());
        assert_eq!(summary["outputs"][0]["path"], file.to_str().unwrap());
        assert_eq!(summary["outputs"][0]["bytes"], fs::metadata(&file).unwrap().len());
        assert_eq!(summary["bytes"], summary["outputs"][0]["bytes"]);
        let counts = counts(&file, 0);
        assert_eq!(counts["events"], summary["events"]);
        target.still_answers();
    }
    Ok(())
}

/// Returns whether these tests run under `nohup`: then their children ignore a hang-up too, as they should.
fn hang_up_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

/// While the runtime is frozen it can't send the pending names; a second Ctrl-C stops without them.
fn a_second_signal_gives_up_what_is_missing(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = busy(runtime)?;
    let process = Pid::from_raw(target.pid().try_into().unwrap()).unwrap();
    let mut recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &[]);
    recording.wait_for_bytes(10_000);
    kill_process(process, Signal::STOP).unwrap();
    // Pending signals of one kind are merged: a single second signal could be lost.
    eventually("the end after the second signal", || {
        recording.runtap.has_ended().then_some(()).or_else(|| {
            recording.runtap.signal(Signal::INT);
            None
        })
    });
    let (summary, file) = recording.finish(5);
    assert!(summary["partial"]["offset"].is_u64() && summary["partial"]["reason"].is_string(), "{summary:#}");
    is_readable(&file, &summary);
    kill_process(process, Signal::CONT).unwrap();
    target.still_answers();
    Ok(())
}

fn a_killed_target_leaves_what_was_received(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = busy(runtime)?;
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), &[]);
    recording.wait_for_bytes(20_000);
    target.program.kill();
    let (summary, file) = recording.finish(5);
    assert!(summary["partial"]["offset"].is_u64() && summary["partial"]["reason"].is_string(), "{summary:#}");
    is_readable(&file, &summary);
    // The process has exited, and its socket is stale.
    runtap(["info", &target.p()]).expect_code(3);
    Ok(())
}

/// Checks that a partial recording can be counted and converted, with exit code 5. It has all samples, but not the
/// names that a runtime sends at the end.
#[track_caller]
fn is_readable(file: &std::path::Path, summary: &Value) {
    let counts = counts(file, 5);
    assert_eq!(counts["events"], summary["events"]);
    assert!(counts["partial"]["offset"].as_u64().unwrap() <= fs::metadata(file).unwrap().len());
    let samples = crate::common::count_of(&counts, "Microsoft-DotNETCore-SampleProfiler", 0);
    assert!(samples > 0, "{counts:#}");
    let converted = runtap(["convert", file.to_str().unwrap(), "--to", "speedscope", "-o", "-"]);
    let profiles = converted.expect_code(5).says("partial").json();
    let busy = profiles["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|profile| profile["samples"].as_array().unwrap().len() > 1);
    assert!(busy.count() >= 3, "three threads spin: {profiles}");
}

fn a_target_that_ends_by_itself_is_recorded_whole(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("spin", &["1", "20000", "--stdin"])?);
    let recording =
        Recording::start(&target, target.temp.path().join("x.nettrace"), &["--to", "nettrace,speedscope"]);
    recording.wait_for_bytes(1);
    target.program.begin();
    target.program.wait_for("done");
    assert!(target.program.wait().success());
    let (summary, file) = recording.finish(0);
    is_complete(&summary);
    counts(&file, 0);
    // The runtime also sends names when it exits.
    let profile = fs::read_to_string(file.with_extension("speedscope.json")).unwrap();
    assert!(
        profile.contains("spin!A.Heavy()") && profile.contains("spin!Recursion.Down(int32)"),
        "{profile}"
    );
    Ok(())
}

fn a_stream_goes_to_stdout(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = busy(runtime)?;
    let stream = runtap(["trace", &target.p(), "--duration", "0.3s", "-o", "-"]);
    assert!(stream.expect_code(0).stdout.starts_with(b"Nettrace"));
    let file = target.temp.path().join("from-stdout.nettrace");
    fs::write(&file, &stream.stdout).unwrap();
    assert_eq!(counts(&file, 0)["process_id"], target.pid());

    let folded = runtap([
        "trace",
        &target.p(),
        "--duration",
        "1s",
        "-o",
        "-",
        "--to",
        "folded",
        "--view",
        "thread-time",
    ]);
    let lines: Vec<&str> = folded.expect_code(0).text().lines().collect();
    assert!(lines.iter().any(|line| line.contains(";spin!Burn.Cycles(int32) ")), "{folded}");
    assert!(
        lines.iter().all(|line| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())),
        "{folded}"
    );
    assert_eq!(
        fs::read_dir(target.temp.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains("part") })
            .count(),
        0,
        "nothing is left behind"
    );

    // `runtap trace -o - | head -c 8`
    let mut command = command(["trace", &target.p(), "-o", "-"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::null()).stdout(writer);
    let running = Running::start_as_it_is(command);
    let mut first = [0; 8];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"Nettrace");
    drop(reader);
    let finished = running.wait();
    assert!(!finished.expect_code(0).stderr.contains("error"), "{finished}");
    target.still_answers();
    Ok(())
}

/// The reader of the output may stop reading, which must not block runtap forever.
fn a_reader_that_does_not_read_can_be_interrupted(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("storm", &["2", "0", "1000", "600", "0"])?);
    let mut command = command(["trace", &target.p(), "--providers", "Demo-Storm:7:5", "-o", "-"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::null()).stdout(writer);
    let mut running = Running::start_as_it_is(command);
    // The stream runs; a pipe holds 64 KiB, so one of the next writes blocks.
    let mut first = vec![0; 100_000];
    reader.read_exact(&mut first).unwrap();
    eventually("the end after the second signal", || {
        running.has_ended().then_some(()).or_else(|| {
            running.signal(Signal::INT);
            None
        })
    });
    running.wait().expect_code(5).says("partial");
    target.still_answers();
    Ok(())
}

/// The recording is complete before it is converted; a conversion that hangs can be interrupted.
fn a_conversion_can_be_interrupted(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["600", "20000"])?);
    // A full pipe without a reader blocks its writer.
    let fifo = target.temp.path().join("x.folded");
    let mut mkfifo = std::process::Command::new("mkfifo");
    mkfifo.arg(&fifo);
    runtap_testkit::run(mkfifo).expect_code(0);
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().try_into().unwrap();
    let mut pipe = fs::File::options().read(true).write(true).custom_flags(no_wait).open(&fifo).unwrap();
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    let file = target.temp.path().join("x.nettrace");
    let more = ["--to", "nettrace,folded", "--view", "thread-time", "--duration", "0.3s"];
    let recording = Recording::start(&target, file, &more);
    let tasks = format!("/proc/{}/task", recording.runtap.id());
    eventually("the thread that converts", || {
        let tasks = fs::read_dir(&tasks).unwrap();
        let mut names = tasks.flat_map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
        names.any(|name| name.trim() == "converter").then_some(())
    });
    recording.runtap.signal(Signal::INT);
    let finished = recording.runtap.wait();
    let summary = finished.expect_code(5).says("interrupted").json();
    is_complete(&summary);
    assert_eq!(summary["outputs"].as_array().unwrap().len(), 1, "{summary:#}");
    assert_eq!(summary["outputs"][0]["format"], "nettrace");
    counts(&recording.file, 0);
    target.still_answers();
    Ok(())
}
