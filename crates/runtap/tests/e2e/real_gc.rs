//! Pauses agree with `PerfView`'s own analysis (`tegc`), in recordings and in live programs, with and without the
//! sampler: the sampler stops all threads too, inside of collections and across their ends.

use std::fs;
use std::path::Path;

use runtap_testkit::{Peer, RealRuntime, Signal, Skip, recordings, require, run};
use serde_json::Value;

use crate::common::{Recording, Target, folder, runtap};

on_each_runtime!(pauses_of_a_live_program, pauses_beside_the_sampler, pauses_of_the_server_s_collector);

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:1:4";

/// Compares every collection that both found, and the sums; returns the number of collections compared.
fn compare(file: &Path, tegc: &Peer) -> usize {
    let mut command = tegc.command();
    command.arg(file);
    let theirs = run(command);
    let theirs = theirs.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let theirs: Vec<Value> = theirs.flat_map(|process| process["gcs"].as_array().unwrap().clone()).collect();
    let ours = report(file);
    let collections = ours["collections"].as_array().unwrap();
    let (mut compared, mut sum, mut left_out) = (0, 0.0, 0);
    for their in theirs.iter().filter(|their| their["n"].as_i64().unwrap() > 0) {
        let number = &their["n"];
        let our = collections.iter().find(|our| our["number"] == *number);
        let our = our.unwrap_or_else(|| panic!("collection {number} is missing"));
        let pause = our["pause_ns"].as_u64().unwrap();
        if their["type"] == "BackgroundGC" && (their["pause"] == their["suspend"]) {
            // The collection could not run in the background and was done with all threads stopped: TraceEvent counts
            // only the stopping.
            left_out += pause;
            continue;
        }
        let theirs = their["pause"].as_f64().unwrap() * 1e6;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let difference = (pause as f64 - theirs).abs();
        assert!(difference < 1000.0, "{}: {our:#} is {their:#}", file.display());
        (compared, sum) = (compared + 1, sum + theirs);
    }
    // TraceEvent ignores a collection that had not ended at the end of the recording; its pauses exist anyway.
    let is_theirs = |our: &&Value| theirs.iter().any(|their| their["n"] == our["number"]);
    let only_ours: Vec<&Value> = collections.iter().filter(|our| !is_theirs(our)).collect();
    let newest = collections.iter().map(|our| our["number"].as_u64().unwrap()).max();
    assert!(
        only_ours.iter().all(|our| our["number"].as_u64() == newest),
        "{}: they do not have {only_ours:#?}",
        file.display()
    );
    left_out += only_ours.iter().map(|our| our["pause_ns"].as_u64().unwrap()).sum::<u64>();
    // If a background collection first runs another one, both stop the threads once: the time between the stop and the
    // start of the other is in the pause of neither, in TraceEvent too. It is long if a thread has to wait for a
    // processor.
    let total = ours["pauses"]["total_ns"].as_u64().unwrap();
    let of_all: u64 = collections.iter().map(|our| our["pause_ns"].as_u64().unwrap()).sum();
    assert!(total >= of_all, "{}: {total} ns, {of_all} of collections", file.display());
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let of_all = (of_all - left_out) as f64;
    assert!((of_all - sum).abs() <= sum * 0.005, "{}: {of_all} ns, {sum} by tegc", file.display());
    compared
}

fn report(file: &Path) -> Value {
    runtap(["report", file.to_str().unwrap(), "gc", "--format", "json"]).json()
}

/// Records while the program collects, and compares; returns the report and the program's own counts.
fn live(runtime: &RealRuntime, variables: &[(&str, &str)], options: &[&str]) -> Result<(Value, Value), Skip> {
    let tegc = Peer::available("tegc")?;
    let mut program = runtime.collector_program("8")?;
    for (name, value) in variables {
        program = program.env(name, value);
    }
    let mut target = Target::start(program);
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), options);
    recording.wait_for_bytes(1);
    target.program.begin();
    let truth = target.program.truth();
    recording.runtap.signal(Signal::INT);
    let (_, file) = recording.finish(0);
    assert!(compare(&file, &tegc) >= 8);
    let ours = report(&file);
    assert_eq!(ours["collections_by_generation"][0], truth["collections"], "{ours:#}");
    Ok((ours, truth))
}

fn has_background(report: &Value) -> bool {
    let mut all = report["collections"].as_array().unwrap().iter();
    all.any(|collection| collection["kind"] == "background" && collection["pause_ns"] != 0)
}

fn pauses_of_a_live_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let (report, _) = live(runtime, &[], &["--clrevents", "gc", "--clreventlevel", "informational"])?;
    assert!(has_background(&report), "{report:#}");
    Ok(())
}

fn pauses_beside_the_sampler(runtime: &RealRuntime) -> Result<(), Skip> {
    let (report, _) = live(runtime, &[], &["--providers", SAMPLER])?;
    assert!(has_background(&report), "{report:#}");
    // The runtime's own pause is within the measured one, which starts with the request for a pause and ends when all
    // threads run.
    let (report, truth) = live(runtime, &[("DOTNET_gcConcurrent", "0")], &["--providers", SAMPLER])?;
    let (ours, theirs) =
        (report["pauses"]["total_ns"].as_u64().unwrap(), truth["pause_ns"].as_u64().unwrap());
    assert!(ours >= theirs / 100 * 99, "{ours} ns, the runtime itself tells {theirs}");
    Ok(())
}

fn pauses_of_the_server_s_collector(runtime: &RealRuntime) -> Result<(), Skip> {
    // TraceEvent's result for a background collection of .NET 8's server GC is known to be wrong.
    let concurrent = if runtime.major() == 8 { "0" } else { "1" };
    let variables = [("DOTNET_gcServer", "1"), ("DOTNET_gcConcurrent", concurrent)];
    live(runtime, &variables, &["--providers", SAMPLER])?;
    Ok(())
}

#[test]
fn pauses_of_every_recording() {
    let tegc = require!(Peer::available("tegc"));
    let folder = folder();
    let mut compared = 0;
    for recording in require!(recordings()) {
        let file = folder.path().join("it.nettrace");
        fs::write(&file, &recording.bytes).unwrap();
        compared += compare(&file, &tegc);
    }
    assert!(compared >= 500, "only {compared} collections were compared");
}
