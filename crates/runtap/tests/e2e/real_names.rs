//! Names of methods in interrupted recordings: the runtime was killed before it could send them.

use runtap_testkit::{RealRuntime, Skip};
use serde_json::Value;

use crate::common::{Recording, Target, runtap};

on_each_runtime!(method_names_can_be_received_during_the_recording, unnamed_methods_come_with_a_hint);

/// Records `spin` from before its work until it is killed; returns the summary, and the output of `report cpu` as text
/// and as a document.
fn killed(runtime: &RealRuntime, more: &[&str]) -> Result<(Value, String, Value), Skip> {
    let mut target = Target::start(runtime.program("spin", &["600", "20000", "--stdin"])?);
    let recording = Recording::start(&target, target.temp.path().join("x.nettrace"), more);
    recording.wait_for_bytes(1);
    target.program.begin();
    recording.wait_for_bytes(150_000);
    target.program.kill();
    let (summary, file) = recording.finish(5);
    let report =
        runtap(["report", file.to_str().unwrap(), "cpu", "--view", "thread-time", "--format", "json"]);
    let document = report.expect_code(5).json();
    Ok((summary, report.stderr, document))
}

fn has_frame(document: &Value, name: &str) -> bool {
    document["frames"].as_array().unwrap().iter().any(|frame| frame["name"].as_str().unwrap().contains(name))
}

fn method_names_can_be_received_during_the_recording(runtime: &RealRuntime) -> Result<(), Skip> {
    let (summary, _, document) = killed(runtime, &["--method-names"])?;
    assert!(has_frame(&document, "Burn.Cycles"), "{document:#}");
    assert_eq!(summary["processes"][0]["notes"], Value::from(Vec::<Value>::new()), "{summary:#}");
    Ok(())
}

fn unnamed_methods_come_with_a_hint(runtime: &RealRuntime) -> Result<(), Skip> {
    let (summary, stderr, document) = killed(runtime, &[])?;
    assert!(!has_frame(&document, "Burn.Cycles"), "{document:#}");
    assert!(!has_frame(&document, "0x"), "no addresses in place of names: {document:#}");
    let note = summary["processes"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("No method names were received") && note.contains("--method-names"), "{note}");
    assert!(
        stderr.contains("frames are addresses without a method name") && stderr.contains("--method-names"),
        "{stderr}"
    );
    Ok(())
}
