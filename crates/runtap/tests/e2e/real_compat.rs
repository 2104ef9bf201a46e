//! `convert --compat dotnet-trace` gives what dotnet-trace makes of the same recording: every thread, every frame, and
//! how long each was there.

use std::collections::BTreeMap;
use std::fs;

use runtap_testkit::{Peer, Recording, recordings, require, run};

use crate::common::{beside_others, folder, runtap};
use crate::speedscope;

/// Times by thread and frame, in milliseconds.
type Times = BTreeMap<(String, String), f64>;

fn times(file: &std::path::Path) -> Times {
    let mut times = Times::new();
    for thread in speedscope::read(file) {
        for (stack, ms) in thread.slices {
            for frame in stack {
                *times.entry((thread.name.clone(), frame)).or_default() += ms;
            }
        }
    }
    times
}

/// Whether dotnet-trace reads the recording and finds anything that it makes a profile of.
fn has_samples(recording: &Recording) -> bool {
    let rows = recording.expected["counts"].as_array().unwrap().iter();
    let sampled = |row: &serde_json::Value| match row["provider"].as_str().unwrap() {
        "Microsoft-DotNETCore-SampleProfiler" => true,
        "Microsoft-Windows-DotNETRuntime" => row["id"] == 10,
        _ => false,
    };
    recording.version() >= 4 && rows.into_iter().any(sampled)
}

fn compare(recording: &Recording, dotnet_trace: &Peer) -> bool {
    let folder = folder();
    let [file, theirs, ours] =
        ["it.nettrace", "it.speedscope.json", "ours.speedscope.json"].map(|name| folder.path().join(name));
    fs::write(&file, &recording.bytes).unwrap();
    let mut convert = dotnet_trace.command();
    convert.arg("convert").arg(&file).args(["--format", "Speedscope"]);
    run(convert).expect_code(0);
    let theirs = times(&theirs);

    let arguments =
        ["convert", file.to_str().unwrap(), "--compat", "dotnet-trace", "--to", "speedscope", "-o"];
    let done = runtap(arguments.into_iter().chain([ours.to_str().unwrap()]));
    if theirs.is_empty() {
        // They write an empty profile, which no viewer opens.
        done.expect_code(1).says("no samples");
        return false;
    }
    done.expect_code(if recording.expected["end_marker"] == true { 0 } else { 5 });
    // To the last bit.
    assert_eq!(times(&ours), theirs, "{}", recording.path.display());
    true
}

#[test]
fn every_frame_has_the_time_that_dotnet_trace_gives_it() {
    let _machine = beside_others();
    let dotnet_trace = require!(Peer::available("dotnet-trace"));
    let recordings = require!(recordings());
    let compared = recordings.iter().filter(|recording| has_samples(recording));
    let compared = compared.filter(|recording| compare(recording, &dotnet_trace)).count();
    assert!(compared >= 12, "only {compared} recordings were compared");
}

#[test]
fn formats_whose_threads_can_t_overlap_are_refused() {
    let error = runtap(["convert", "x.nettrace", "--compat", "dotnet-trace", "--to", "chrome"]);
    error.expect_code(2).says("--compat").says("speedscope");
}
