//! Microsoft's tools diagnose the service: their output must match what the service did.

#![cfg(target_os = "linux")]

mod service;
mod traces;

use std::collections::BTreeMap;
use std::process::Command;

use runtap_testkit::{Peer, Running, eventually, require, run};
use serde_json::{Value, json};

use self::service::Service;

/// Returns the command of a tool that looks for processes in the service's directory.
fn on(service: &Service, peer: &Peer, arguments: &[&str]) -> Command {
    let mut command = peer.command();
    command.args(arguments).env("TMPDIR", service.dir.path());
    command
}

fn lines(output: &[u8]) -> Vec<Value> {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn real_counters_are_what_the_service_counted() {
    let peer = require!(Peer::available("mspipe"));
    let service = Service::new();
    // Counts before the session are excluded.
    (0..7)
        .for_each(|id| assert_eq!(service.get(&format!("/orders/{id}")).0, if id == 3 { 409 } else { 200 }));
    let asked = "Example.Service,EventCounters\\Example-Counters,EventCounters\\System.Runtime";
    let arguments = ["counters", "--pid", &service.pid(), "--seconds", "12", "--counters", asked];
    let reader = Running::start(on(&service, &peer, &arguments));
    eventually("a session", || (service.truth()["measured"] == true).then_some(()));
    let before = service.truth();
    (0..40).for_each(|id| drop(service.get(&format!("/orders/{id}"))));
    let after = service.truth();
    let finished = reader.wait();
    let values = lines(&finished.expect_code(0).stdout);

    // Counters of meters are sums since the start of the session.
    let mut last = BTreeMap::new();
    for line in values.iter().filter(|line| line["provider"] == "Example.Service" && line["kind"] == "Rate") {
        let key = format!("{} {}", line["name"].as_str().unwrap(), line["tags"].as_str().unwrap());
        last.insert(key, line["value"].as_f64().unwrap());
    }
    let expected = [
        ("orders kind=even", 20.0),
        ("orders kind=odd", 16.0),
        ("requests route=/orders/{id},status=200", 36.0),
        ("requests route=/orders/{id},status=409", 4.0),
    ];
    assert_eq!(last, expected.map(|(name, value)| (name.to_owned(), value)).into(), "{finished}");
    let grown = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    assert_eq!((grown("orders"), grown("refused"), grown("requests")), (36, 4, 40));

    // Counters of event sources are increments per interval.
    let of = |name: &str| values.iter().filter(move |line| line["name"] == name).collect::<Vec<_>>();
    let increments: f64 = of("request-count").iter().map(|line| line["value"].as_f64().unwrap()).sum();
    assert!((increments - 40.0).abs() < f64::EPSILON, "{finished}");
    assert!(of("request-time").iter().any(|line| line["value"].as_f64().unwrap() > 0.0));
    let quantiles = of("request.duration").into_iter().find_map(|line| line["quantiles"].as_array());
    assert_eq!(quantiles.map(Vec::len), Some(3), "{finished}");
    for name in ["cpu-usage", "working-set", "thread-count"] {
        assert!(of(name).iter().any(|line| line["value"].as_f64().unwrap() > 0.0), "{name}: {finished}");
    }
}

#[test]
fn real_logs_are_what_the_service_logged() {
    let peer = require!(Peer::available("mspipe"));
    let service = Service::new();
    let arguments = ["logs", "--pid", &service.pid(), "--seconds", "8", "--level", "Information"];
    let mut reader = Running::start(on(&service, &peer, &arguments));
    let mut id = 0;
    while !reader.has_ended() {
        service.get(&format!("/orders/{id}"));
        id += 1;
    }
    let finished = reader.wait();
    let records = lines(&finished.expect_code(0).stdout);
    assert!(records.len() > 20, "{finished}");

    // All orders, in order, between the first one recorded and one handled near the end of the session.
    let number = |record: &Value| -> u64 { record["state"][0][1].as_str().unwrap().parse().unwrap() };
    let complete = (number(&records[0]) + 1)..number(&records[records.len() - 1]);
    let mut expected = Vec::new();
    for id in complete.clone() {
        let category = "axum_service";
        let (order, text) = (id.to_string(), |text: &str, id: u64| format!("{text} order={id}"));
        expected.push(json!({
            "category": category, "level": "Information", "id": 0, "event_name": "", "exception": null,
            "message": format!("{} customer=anna", text("order received", id)),
            "state": [
                ["order", order], ["customer", "anna"],
                ["{OriginalFormat}", "order received order={order} customer={customer}"],
            ],
        }));
        let (level, message) =
            if id % 10 == 3 { ("Warning", "order refused") } else { ("Information", "price found") };
        expected.push(json!({
            "category": category, "level": level, "id": 0, "event_name": "", "exception": null,
            "message": text(message, id),
            "state": [["order", order], ["{OriginalFormat}", format!("{message} order={{order}}")]],
        }));
    }
    let seen: Vec<_> = records.into_iter().filter(|record| complete.contains(&number(record))).collect();
    assert_eq!(seen, expected);
}

/// Runs one command of Microsoft's client library.
fn client(service: &Service, peer: &Peer, arguments: &[&str]) -> Value {
    let pid = service.pid();
    let arguments = [&arguments[..1], &["--pid", &pid], &arguments[1..]].concat();
    run(on(service, peer, &arguments)).expect_code(0).json()
}

#[test]
fn real_client_library_reaches_the_service() {
    let peer = require!(Peer::available("dncli"));
    let service = Service::new();
    let listed = run(on(&service, &peer, &["list", "--local"]));
    assert!(listed.expect_code(0).text().contains(&service.pid()), "{listed}");
    let info = client(&service, &peer, &["info"]);
    assert_eq!(info["answer"]["ManagedEntrypointAssemblyName"], "axum-service", "{info}");
    let env = client(&service, &peer, &["env"]);
    assert_eq!(env["answer"]["env"]["TMPDIR"], service.dir.path().to_str().unwrap());
    let file = service.dir.path().join("t.nettrace");
    let file = file.to_str().unwrap();
    let trace =
        client(&service, &peer, &["trace", "-o", file, "--duration", "1", "--providers", "axum_service:0:4"]);
    assert_eq!(trace["answer"]["stream_complete"], true, "{trace}");
}

#[test]
fn real_client_library_starts_the_service() {
    let peer = require!(Peer::available("dncli"));
    let dir = tempfile::tempdir().unwrap();
    let port = dir.path().join("port");
    let mut service = Service::starting(Some(&port));
    let mut listen = peer.command();
    let finished = run({
        listen.args(["listen", "--resume", "--socket"]).arg(&port);
        listen
    });
    let said = lines(&finished.expect_code(0).stdout);
    let advertised = said.iter().find(|line| line["command"] == "advertise").unwrap();
    assert_eq!(advertised["answer"]["pid"].to_string(), service.pid());
    assert!(said.iter().any(|line| line["command"] == "resume" && line["ok"] == true), "{finished}");
    service.wait_until_it_listens();
    assert_eq!(service.get("/orders/1").0, 200);
}
