//! A full disk: received data stays readable, is reported as partial, and the target keeps running.

use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_testkit::{RealRuntime, Signal, Skip, run};
use serde_json::Value;

use crate::common::{Recording, Target, count_of, counts, folder, runtap};

on_each_runtime!(
    a_full_disk_leaves_a_readable_file,
    nothing_fits_into_dev_full,
    events_above_64_kib_are_no_matter_of_the_buffer,
);

/// With the buffer of 256 MB it was certainly never full; with one of 1 MB either can be the reason.
fn events_above_64_kib_are_no_matter_of_the_buffer(runtime: &RealRuntime) -> Result<(), Skip> {
    for (buffer, certain) in [("256", true), ("1", false)] {
        let mut target = Target::start(runtime.sizes_program()?);
        let file = target.temp.path().join("x.nettrace");
        let more = ["--providers", "Runtap-Sizes", "--buffersize", buffer];
        let recording = Recording::start(&target, file, &more);
        recording.wait_for_bytes(1);
        target.program.begin();
        let truth = target.program.truth();
        recording.runtap.signal(Signal::INT);
        let finished = recording.runtap.wait();
        let summary = finished.expect_code(0).json();
        assert_eq!(summary["lost"], truth["too_large"], "{summary:#}");
        finished.says("64 KiB");
        assert_eq!(finished.stderr.contains("its buffer was never full"), certain, "{finished}");
        assert_eq!(finished.stderr.contains("use a larger --buffersize"), !certain, "{finished}");
    }
    Ok(())
}

fn a_full_disk_leaves_a_readable_file(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["600", "20000"])?);
    let results = folder();
    // A small disk that only this command sees; the recording is copied out of it afterwards.
    let script = "mount -t tmpfs -o size=96k none \"$1\" || exit 77
        \"$2\" trace -p \"$3\" --to nettrace,speedscope -o \"$1/full.nettrace\" --format json; code=$?
        cp \"$1/full.nettrace\" \"$4\" && ls \"$1\" > \"$4/left\"; exit $code";
    let mount = results.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let mut private = Command::new("unshare");
    private.args(["--mount", "sh", "-c", script, "sh"]);
    private.args([&mount, Path::new(env!("CARGO_BIN_EXE_runtap")), Path::new(&target.p()), results.path()]);
    let finished = run(private);
    if matches!(finished.code(), Some(1 | 77 | 127))
        && finished.stdout.is_empty()
        && !rustix::process::geteuid().is_root()
    {
        return Err(Skip::because("only root can mount a small disk"));
    }
    let summary = finished.expect_code(5).says("the disk is full").says("partial").json();
    let file = results.path().join("full.nettrace");
    let written = fs::metadata(&file).unwrap().len();
    assert!((40_000..=96 << 10).contains(&written), "{written} bytes");
    assert!(summary["partial"]["offset"].as_u64().unwrap() <= written, "{summary:#}");
    // The recording is listed; the profile did not fit, and no incomplete file is left.
    assert_eq!(summary["outputs"].as_array().unwrap().len(), 1, "{summary:#}");
    assert_eq!(summary["outputs"][0]["format"], "nettrace");
    assert_eq!(fs::read_to_string(results.path().join("left")).unwrap(), "full.nettrace\n");

    let counts = counts(&file, 5);
    assert!(count_of(&counts, "Microsoft-DotNETCore-SampleProfiler", 0) > 100, "{counts:#}");
    assert!(
        counts["events"].as_u64() >= summary["events"].as_u64(),
        "what the summary counts is in the file"
    );
    runtap(["convert", file.to_str().unwrap(), "--to", "speedscope"]).expect_code(5).says("partial");
    target.still_answers();
    Ok(())
}

fn nothing_fits_into_dev_full(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["600", "20000"])?);
    let finished = runtap(["trace", "-p", &target.p(), "-o", "/dev/full", "--format", "json"]);
    let summary = finished.expect_code(5).says("the disk is full").json();
    assert_eq!((&summary["bytes"], &summary["events"]), (&Value::from(0), &Value::from(0)));
    target.still_answers();
    Ok(())
}
