//! Every exchange with a real runtime that was recorded: requests that were answered decode and encode to the same
//! bytes, requests that killed a runtime or were called badly encoded are refused, replies come back byte for byte.
//!
//! The recordings lie outside the repository (`RUNTAP_SHARED`, else `../shared` beside the workspace).

#![allow(clippy::print_stdout, reason = "a test says what it skipped")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use runtap_diag_proto::{
    HEADER_LEN, Hresult, InfoForm, Reply, Request, client,
    client::{Client, Failure},
    merge_providers, server,
    server::Server,
};
use serde_json::Value;

/// Requests that runtimes carry out and we do not encode the same way.
const NORMALISED: [(&str, &str); 6] = [
    ("proc.resume_payload", "a payload without meaning is dropped"),
    ("ep1.name_embedded_nul", "the name ends at the NUL"),
    ("ep5.name_embedded_nul", "the name ends at the NUL"),
    ("ep3.stack_byte_2", "a bool is written as 0 or 1"),
    ("ep4.ok_extra", "bytes after the last field are dropped"),
    ("ep2.same_provider_twice", "never sent: the second entry would be lost"),
];

/// Requests that runtimes carry out and we refuse.
const STRICTER: [(&str, &str); 1] =
    [("ep2.name_count_80000003", "the length wraps around in the runtime's 32-bit arithmetic")];

/// Requests for sessions into `user_events`, which are not served yet: refused as badly encoded whatever happens later.
const USER_EVENTS: &str = "ue.";

/// Requests that are recorded in part only.
const CUT: [&str; 4] = ["ep2.args_30000", "ep3.count_1001", "ep4.count_1000", "ep4.name_5000"];

fn recordings() -> Option<PathBuf> {
    let shared = std::env::var_os("RUNTAP_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/ipc");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recordings at {}", folder.display());
    None
}

fn lines(file: &str) -> Vec<Value> {
    let Some(folder) = recordings() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let rows: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{file}");
    rows
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    digits.as_bytes().as_chunks().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

/// What our server makes of the bytes, fed one by one.
fn serve(bytes: &[u8]) -> server::Event {
    let mut server = Server::new();
    for byte in bytes {
        server.handle_bytes(std::slice::from_ref(byte));
    }
    server.handle_eof();
    server.poll_event().unwrap()
}

/// What our client makes of an answer, fed one byte at a time, and how much of it was the answer.
fn receive(request: &Request, answer: &[u8]) -> (client::Event, usize) {
    let mut request = request.clone();
    if let Request::CollectTracing { config, .. } = &mut request {
        // The recordings have a provider twice; a client of ours would have merged them.
        config.providers = merge_providers(std::mem::take(&mut config.providers)).unwrap();
    }
    let mut client = Client::new(request).unwrap();
    let mut taken = 0;
    for byte in answer {
        taken += client.handle_bytes(std::slice::from_ref(byte));
    }
    client.handle_eof();
    (client.poll_event().unwrap(), taken)
}

fn check_reply(case: &str, request: Option<&Request>, answer: &[u8]) {
    let placeholder = Request::ProcessInfo(InfoForm::ProcessInfo);
    let (event, taken) = receive(request.unwrap_or(&placeholder), answer);
    let encoded = match (&event, request) {
        (client::Event::Reply(reply), Some(request)) => reply.to_bytes(request).unwrap(),
        (client::Event::Failed(Failure::Refused(error)), _) => error.to_bytes().unwrap(),
        other => panic!("{case}: {other:?}"),
    };
    assert_eq!(encoded, answer[..taken], "{case}");
}

#[test]
fn every_recorded_request_and_reply() {
    let mut seen = BTreeMap::<&str, usize>::new();
    for version in ["8.0.33", "9.0.22", "10.0.12"] {
        for row in lines(&format!("vectors-{version}.jsonl")) {
            let case = text(&row, "case");
            let label = &format!("{version} {case}");
            if row["unstable"] == true || CUT.contains(&case) {
                continue;
            }
            let sent = unhex(text(&row, "c2s"));
            let event = serve(&sent);
            let request = match &event {
                server::Event::Request(request) => Some(request),
                _ => None,
            };
            let ours = match &event {
                server::Event::Refused(error) => Some(error.hresult()),
                _ => None,
            };
            let hresult =
                text(&row, "hr").strip_prefix("0x").map(|n| Hresult(u32::from_str_radix(n, 16).unwrap()));
            let known = matches!(
                case.split('.').next().unwrap(),
                "frame" | "unknown" | "ep" | "ep1" | "ep2" | "ep3" | "ep4" | "ep5"
            ) || case.starts_with("proc.info")
                || case.starts_with("proc.resume");
            let verdict = match (text(&row, "reply"), hresult) {
                _ if case.starts_with(USER_EVENTS) => {
                    assert_eq!(ours, Some(Hresult::BAD_ENCODING), "{label}");
                    "user_events"
                }
                _ if !known => {
                    assert_eq!(ours, Some(Hresult::UNKNOWN_COMMAND), "{label}");
                    "another command"
                }
                ("OK", _) if STRICTER.iter().any(|(name, _)| *name == case) => {
                    assert_eq!(ours, Some(Hresult::BAD_ENCODING), "{label}");
                    "refused though carried out"
                }
                ("OK", _) => {
                    let encoded = request.unwrap_or_else(|| panic!("{label}: {event:?}")).to_bytes();
                    if NORMALISED.iter().any(|(name, _)| *name == case) {
                        assert_ne!(encoded.as_ref(), Ok(&sent), "{label}: no exception is needed");
                    } else {
                        assert_eq!(encoded.unwrap(), sent, "{label}");
                    }
                    "carried out"
                }
                ("ERR", Some(Hresult::UNKNOWN_COMMAND)) if !case.starts_with("unknown") => {
                    "unknown to this runtime only"
                }
                ("ERR", hresult) if case == "unknown.0207" => {
                    // We know the command, and it has no payload here.
                    assert_eq!(
                        (hresult, ours),
                        (Some(Hresult::UNKNOWN_COMMAND), Some(Hresult::BAD_ENCODING)),
                        "{label}"
                    );
                    "unknown to this runtime only"
                }
                ("ERR", hresult) => {
                    assert_eq!(ours, hresult, "{label}");
                    "refused"
                }
                ("", _) => {
                    assert!(text(&row, "target").starts_with("died"), "{label}");
                    assert_eq!(ours, Some(Hresult::BAD_ENCODING), "{label}");
                    "killed"
                }
                other => panic!("{label}: {other:?}"),
            };
            *seen.entry(verdict).or_default() += 1;
            let answer = unhex(text(&row, "s2c"));
            if !answer.is_empty() && (request.is_some() || text(&row, "reply") == "ERR") {
                check_reply(label, request, &answer);
                *seen.entry("reply").or_default() += 1;
            }
        }
    }
    println!("{seen:?}");
    if !seen.is_empty() {
        // Guards against a test that passes because it looks at nothing.
        assert!(
            seen["carried out"] > 50 && seen["killed"] > 12 && seen["refused"] > 60 && seen["reply"] > 200,
            "{seen:?}"
        );
    }
}

#[test]
fn every_recorded_conversation() {
    let mut environments = 0;
    let mut streams = 0;
    for flow in lines("flows.jsonl") {
        let mut connections = BTreeMap::<u64, (Vec<u8>, Vec<u8>)>::new();
        for step in flow["steps"].as_array().unwrap() {
            let (sent, received) = connections.entry(step["conn"].as_u64().unwrap_or_default()).or_default();
            // A long stream is recorded by its head only.
            let bytes = unhex(step["hex"].as_str().or_else(|| step["head"].as_str()).unwrap_or_default());
            match text(step, "dir") {
                "c2s" => sent.extend(bytes),
                "s2c" if bytes.starts_with(b"ADVR_V1\0") => assert_eq!(bytes.len(), 34),
                "s2c" => received.extend(bytes),
                _ => {}
            }
        }
        for (number, (sent, received)) in connections {
            if sent.is_empty() {
                continue;
            }
            let label = format!("{} {} connection {number}", text(&flow, "flow"), text(&flow, "runtime"));
            match serve(&sent) {
                server::Event::Request(request) => {
                    assert_eq!(request.to_bytes().unwrap(), sent, "{label}");
                    check_reply(&label, Some(&request), &received);
                    let (event, taken) = receive(&request, &received);
                    match event {
                        client::Event::Reply(Reply::Environment(variables)) => {
                            environments += 1;
                            let shown: Vec<_> = variables.iter().map(|v| (v.name(), v.value())).collect();
                            assert!(shown.contains(&("DEMO_EMPTY", Some(""))), "{shown:?}");
                            assert!(shown.contains(&("DEMO_EQ", Some("a=b=c"))), "{shown:?}");
                            assert!(shown.contains(&("DEMO_UNI", Some("é中😀"))), "{shown:?}");
                            assert!(shown.contains(&("DEMO_NL", Some("l1\nl2"))), "{shown:?}");
                        }
                        client::Event::Reply(Reply::SessionStarted(_)) => {
                            streams += 1;
                            assert_eq!(taken, HEADER_LEN + 8, "{label}");
                            assert!(received[taken..].starts_with(b"Nettrace"), "{label}");
                        }
                        _ => {}
                    }
                }
                // Set-environment and perf-map commands.
                server::Event::Refused(error) => {
                    assert_eq!(error.hresult(), Hresult::UNKNOWN_COMMAND, "{label}: {error}");
                }
                other => panic!("{label}: {other:?}"),
            }
        }
    }
    if recordings().is_some() {
        assert_eq!((environments, streams), (2, 9));
    }
}

#[test]
fn what_dotnet_trace_sends() {
    for run in lines("dotnet-trace-requests.jsonl") {
        let what = text(&run, "what");
        for hex in run["requests"].as_array().unwrap() {
            let sent = unhex(hex.as_str().unwrap());
            let server::Event::Request(request) = serve(&sent) else { panic!("{what}: {hex}") };
            assert_eq!(request.to_bytes().unwrap(), sent, "{what}");
        }
    }
}
