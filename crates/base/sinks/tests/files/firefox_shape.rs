//! Our Firefox profile has the members that the crate of the format's own authors writes, with values of the same type.

use crate::read::firefox;
use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp, SamplingInterval,
    Timestamp, WeightType,
};
use runtap_model::{Process, SampleKind, Trace, TraceBuilder, View};
use runtap_sinks::{Format, Options};
use serde_json::Value;
use std::collections::BTreeSet;

const START_MS: u32 = 1_790_000_000;

/// One thread, two stacks.
fn ours() -> Value {
    let mut builder = TraceBuilder::new();
    let process = Process { pid: Some(7), name: Some("app".to_owned()), command_line: None };
    builder.set_process(process);
    builder.set_start_unix_ns(i64::from(START_MS) * 1_000_000);
    let thread = builder.thread(7);
    let [main, work] = ["main", "work"].map(|name| builder.frame(Some("app"), name));
    let outer = builder.stack(None, main);
    let inner = builder.stack(Some(outer), work);
    builder.add_sample(thread, 1_000_000, SampleKind::MANAGED, Some(outer));
    builder.add_sample(thread, 2_000_000, SampleKind::MANAGED, Some(inner));
    written(&builder.finish())
}

fn written(trace: &Trace) -> Value {
    let mut bytes = Vec::new();
    Format::Firefox.write(trace, &mut bytes, &Options::new(View::ThreadTime)).expect("a Vec takes all");
    firefox::json(&bytes)
}

/// Returns the profile that the crate `fxprof-processed-profile` writes for this trace.
fn theirs() -> Value {
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(f64::from(START_MS));
    let mut profile = Profile::new("app", start, SamplingInterval::from_nanos(1_000_000));
    let at = Timestamp::from_nanos_since_reference;
    let process = profile.add_process("app", 7, at(0));
    let thread = profile.add_thread(process, 7, at(1_000_000), true);
    let category = profile.add_category("Program", CategoryColor::Orange);
    let [main, work] = ["app!main", "app!work"].map(|name| FrameInfo {
        frame: Frame::Label(profile.intern_string(name)),
        category_pair: category.into(),
        flags: FrameFlags::empty(),
    });
    let outer = profile.intern_stack_frames(thread, [main.clone()].into_iter());
    let inner = profile.intern_stack_frames(thread, [main, work].into_iter());
    profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
    profile.add_sample(thread, at(1_000_000), outer, CpuDelta::from_nanos(0), 1);
    profile.add_sample(thread, at(2_000_000), inner, CpuDelta::from_nanos(1_000_000), 1);
    serde_json::to_value(&profile).expect("a profile is JSON")
}

/// Where in a document which types of values stand.
fn shape(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            for item in items {
                shape(item, &format!("{path}[]"), into);
            }
            "list"
        }
        Value::Object(members) => {
            for (name, member) in members {
                shape(member, &format!("{path}.{name}"), into);
            }
            "object"
        }
    };
    into.insert(format!("{path} {kind}"));
}

#[test]
fn the_version_and_the_members_are_those_of_the_authors_crate() {
    let (ours, theirs) = (ours(), theirs());
    for member in ["version", "preprocessedProfileVersion", "processType", "startTime", "interval", "product"]
    {
        assert_eq!(
            ours["meta"][member].to_string().trim_end_matches(".0"),
            theirs["meta"][member].to_string().trim_end_matches(".0"),
            "{member}"
        );
    }
    let [mut our_shape, mut their_shape] = [BTreeSet::new(), BTreeSet::new()];
    shape(&ours, "", &mut our_shape);
    shape(&theirs, "", &mut their_shape);
    let missing: Vec<_> = their_shape.difference(&our_shape).collect();
    // Times are written as they are, not as distances: both are read.
    assert_eq!(missing, [".threads[].samples.timeDeltas list", ".threads[].samples.timeDeltas[] number"]);
    let more: Vec<_> = our_shape.difference(&their_shape).map(String::as_str).collect();
    assert_eq!(
        more,
        [
            ".meta.importedFrom text",
            ".meta.initialSelectedThreads list",
            ".meta.initialSelectedThreads[] number",
            ".meta.keepProfileThreadOrder bool",
            // Where no sample is.
            ".threads[].samples.stack[] null",
            ".threads[].samples.time list",
            ".threads[].samples.time[] number",
        ]
    );
    for table in ["frameTable", "funcTable", "stackTable", "stringArray"] {
        let [ours, theirs] = [&ours, &theirs].map(|profile| profile["threads"][0][table].clone());
        // The only used category is the third of this crate and the second of the other one.
        let without_category = |mut table: Value| {
            table.as_object_mut().map(|table| table.remove("category"));
            table
        };
        assert_eq!(without_category(ours), without_category(theirs), "{table}");
    }
}
