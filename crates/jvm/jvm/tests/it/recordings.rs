//! The recordings of the original agents.

use std::collections::BTreeSet;

use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::{Channel, Decoder, Dialect, Side, Stream};
use runtap_jvm::coverage::{Coverage, Observed, Options};
use runtap_testkit::{require, shared_data};
use serde_json::Value;

fn observed(scenario: &str, dialect: Dialect) -> (Observed, Value) {
    let file = |name: &str| shared_data(format!("bytefrog/{scenario}.{name}")).expect("the folder is there");
    let mut model = Model::new(dialect, &Limits::default(), u64::MAX);
    let stream = Stream { channel: Channel::Data, from: Side::Agent, dialect: Some(dialect) };
    let read = Decoder::new(stream).feed(&file("data0.a2h.bin"), |_, message| {
        model.take(&message);
        None
    });
    read.expect("a good stream");
    model.finish();
    let json: Value = serde_json::from_slice(&file("json")).expect("JSON");
    let report = model.report();
    let observed = Observed::of(&report);
    let calls: u64 = observed.methods.values().map(|seen| seen.calls).sum();
    assert_eq!(calls, report.counters.entries, "{scenario}: all calls have a method");
    let visits: u64 =
        observed.methods.values().map(|seen| seen.unplaced + seen.lines.values().sum::<u64>()).sum();
    assert_eq!(visits, report.counters.visits, "{scenario}: all visits have a place");
    assert_eq!(observed.unparsed.len(), 0, "{scenario}: {:?}", observed.unparsed);
    (observed, json)
}

#[test]
fn every_signature_of_the_original_agents_is_one() {
    require!(shared_data("bytefrog/v1_basic.json").map(drop));
    for scenario in ["v1_basic", "v1_class17", "v1_jdk25", "v1_lambda", "v1_pause", "v1_stop_midrun"] {
        let (observed, json) = observed(scenario, Dialect::V1);
        assert!(!observed.lines, "{scenario}");
        let mapped = json["streams"]["data0.a2h"]["counts"]["mapMethodSignature"].as_u64().expect("a count");
        assert!(observed.methods.len() as u64 <= mapped, "{scenario}");
        let coverage = Coverage::of(&observed, None, &Options::default());
        let methods = coverage.totals().methods;
        assert_eq!((methods.covered, methods.missed), (observed.methods.len() as u64, 0), "{scenario}");
    }
}

#[test]
fn version_4_tells_of_lines() {
    require!(shared_data("bytefrog/v4_basic.json").map(drop));
    let (observed, _) = observed("v4_basic", Dialect::V4);
    assert!(observed.lines);
    let coverage = Coverage::of(&observed, None, &Options::default());
    assert!(coverage.has_lines);
    let counts = &coverage.packages["demo"];
    let fib = counts.classes["demo/Counts"].methods.iter().find(|method| method.name == "fib").expect("fib");
    // fib(15) calls itself 1,973 times in all; its lines ran in every call or in some.
    assert_eq!(fib.calls, 1973);
    assert!(fib.lines.values().all(|hits| (1..=1973).contains(hits)) && !fib.lines.is_empty(), "{fib:?}");
    let sources: BTreeSet<&str> = counts.sources().into_keys().collect();
    assert!(sources.contains("Counts.java"), "{sources:?}");
}
