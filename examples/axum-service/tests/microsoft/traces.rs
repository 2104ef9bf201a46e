//! dotnet-trace records the service, and TraceEvent reads the recording.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use runtap_testkit::{Peer, Running, require, run};
use serde_json::Value;

use crate::service::Service;
use crate::{lines, on};

/// Records the service with dotnet-trace for some seconds, while `work` is repeated.
fn recorded(service: &Service, peer: &Peer, options: &[&str], work: impl Fn()) -> PathBuf {
    let file = service.dir.path().join("t.nettrace");
    let pid = service.pid();
    let arguments = ["collect", "-p", &pid, "--duration", "00:00:00:03", "-o", file.to_str().unwrap()];
    let mut reader = Running::start(on(service, peer, &[&arguments, options].concat()));
    while !reader.has_ended() {
        work();
    }
    reader.wait().expect_code(0);
    file
}

/// Checks that TraceEvent reads a file without loss and errors; returns the number of its events.
fn parsed(file: &str, peer: &Peer) -> u64 {
    let mut tebench = peer.command();
    tebench.args([file, "--mode", "parse"]);
    let answer = run(tebench).expect_code(0).json();
    assert_eq!((&answer["events_lost"], &answer["error"]), (&Value::from(0), &Value::Null), "{answer}");
    answer["events"].as_u64().unwrap()
}

#[test]
fn real_dotnet_trace_lists_the_service_and_records_each_profile() {
    let peer = require!(Peer::available("dotnet-trace"));
    let tebench = require!(Peer::available("tebench"));
    let service = Service::new();
    let listed = peer.listed(service.dir.path());
    let ours = listed.iter().find(|line| line.split_whitespace().next() == Some(&service.pid()));
    assert!(ours.is_some_and(|line| line.contains("axum-service")), "{listed:?}");
    for profile in ["dotnet-common", "dotnet-sampled-thread-time", "gc-verbose", "gc-collect", "database"] {
        let options = ["--profile", profile, "--providers", "axum_service::4"];
        let file = recorded(&service, &peer, &options, || drop(service.get("/orders/1")));
        assert!(parsed(file.to_str().unwrap(), &tebench) > 50, "{profile}");
    }
}

#[test]
fn real_dotnet_trace_shows_the_hot_function_and_the_spans() {
    let peer = require!(Peer::available("dotnet-trace"));
    let tebench = require!(Peer::available("tebench"));
    let service = Service::new();
    let options = ["--profile", "dotnet-sampled-thread-time", "--providers", "axum_service::4"];
    let file = recorded(&service, &peer, &options, || drop(service.get("/hot?units=50")));
    let file = file.to_str().unwrap();
    assert!(parsed(file, &tebench) > 1000);

    let top = run(on(&service, &peer, &["report", file, "topN", "-n", "20", "-v"]));
    let top = top.expect_code(0).text();
    let hot = top.lines().find(|line| line.contains("axum_service.hot_work"));
    let percents =
        hot.map(|line| line.split_whitespace().filter(|word| word.ends_with('%')).collect::<Vec<_>>());
    let percents = percents.unwrap_or_else(|| panic!("{top}"));
    let exclusive: f64 = percents[percents.len() - 1].trim_end_matches('%').parse().unwrap();
    // In percent of the time of all threads, most of which sleep.
    assert!(exclusive > 1.0, "{top}");

    run(on(&service, &peer, &["convert", "--format", "Speedscope", file])).expect_code(0);
    let converted = fs::read(service.dir.path().join("t.speedscope.json")).unwrap();
    let converted: Value = serde_json::from_slice(&converted).unwrap();
    let frames = converted["shared"]["frames"].as_array().unwrap();
    let frames: Vec<_> = frames.iter().filter_map(|frame| frame["name"].as_str()).collect();
    let activity = |name: &str| frames.iter().any(|frame| frame.starts_with(&format!("Activity {name}(")));
    assert!(activity("request") && activity("hot"), "{frames:?}");
    assert!(frames.contains(&"axum-service!axum_service.hot_work"), "{frames:?}");
    let chromium = run(on(&service, &peer, &["convert", "--format", "Chromium", file]));
    chromium.expect_code(0);
}

#[test]
fn real_spans_are_activities_to_traceevent() {
    let peer = require!(Peer::available("dotnet-trace"));
    let tedump = require!(Peer::available("tedump"));
    let service = Service::new();
    let options = ["--providers", "axum_service::4,Microsoft-Extensions-Logging:0xc:4"];
    let file = recorded(&service, &peer, &options, || drop(service.get("/orders/8")));
    let mut dump = tedump.command();
    dump.arg(&file);
    let events = lines(&run(dump).expect_code(0).stdout);
    let of = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let id = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();

    // The orders whose requests were recorded completely.
    let (requests, prices) = (of("request/Start"), of("price/Start"));
    assert!(requests.len() > 10, "{}", requests.len());
    assert_eq!(requests[0]["payload"]["path"], "/orders/8");
    let ids: BTreeSet<_> = requests.iter().map(|event| id(event, "act")).collect();
    assert_eq!(ids.len(), requests.len(), "each has an id of its own");
    let first = id(requests[0], "act");
    let within: Vec<_> = prices.iter().filter(|event| id(event, "rel") == first).collect();
    assert_eq!(within.len(), 1);
    let stop = of("request/Stop").into_iter().find(|event| id(event, "act") == first).unwrap();
    assert_eq!(stop["payload"]["status"], 200);
    // The scope of the message is nested in the scope of the request, as dotnet-monitor requires.
    let scopes = of("ActivityJson/Start");
    let outer = scopes.iter().find(|scope| id(scope, "rel") == first).unwrap();
    let arguments: Value = serde_json::from_str(outer["payload"]["ArgumentsJson"].as_str().unwrap()).unwrap();
    assert_eq!((&arguments["path"], &arguments["method"]), (&"/orders/8".into(), &"GET".into()));
    let inner = scopes.iter().find(|scope| id(scope, "rel") == id(outer, "act")).unwrap();
    let found = of("MessageJson").into_iter().find(|event| id(event, "act") == id(inner, "act")).unwrap();
    assert_eq!(found["payload"]["FormattedMessage"], "price found order=8");
}
