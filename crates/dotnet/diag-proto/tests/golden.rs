//! Every recorded exchange with a real runtime, except those marked unstable: replies are encoded to identical bytes,
//! answered requests are decoded and encoded to identical bytes, and requests that crashed a runtime or were malformed
//! are rejected with offset and field. The exceptions are listed by name.
//!
//! The recordings are outside the repository (`RUNTAP_SHARED`, else `../shared` next to the workspace).

use std::{collections::BTreeMap, fs, path::PathBuf};

use runtap_diag_proto::{
    EncodeError, HEADER_LEN, Hresult, InfoForm, Reply, Request, RequestError, SessionId, client,
    client::{Client, Failure},
    merge_providers, server,
    server::Server,
    tap::{PieceKind, Side, Tap},
};
use runtap_testkit::{Skip, shared_dir};
use serde_json::Value;

/// Requests that runtimes carry out, but that this crate's client encodes differently.
const NORMALISED: [(&str, &str); 8] = [
    ("proc.resume_payload", "a payload without meaning is dropped"),
    ("proc.perfmap_extra", "bytes after the last field are dropped"),
    ("ep1.name_embedded_nul", "the name ends at the NUL"),
    ("ep5.name_embedded_nul", "the name ends at the NUL"),
    ("ep3.stack_byte_2", "a bool is written as 0 or 1"),
    ("ep4.ok_extra", "bytes after the last field are dropped"),
    ("ep2.same_provider_twice", "never sent: the second entry would be lost"),
    ("ep4.count_1000", "never sent: it is the same provider 1000 times"),
];

/// Requests that runtimes carry out, but this crate rejects.
const STRICTER: [(&str, &str, Hresult); 2] = [
    (
        "ep2.name_count_80000003",
        "the length wraps around in the runtime's 32-bit arithmetic",
        Hresult::BAD_ENCODING,
    ),
    ("proc.perfmap_ffffffff", "no type, and the runtime does nothing", Hresult::E_INVALIDARG),
];

/// Requests that runtimes reject for another reason, which they check earlier than this crate.
const REFUSED_EARLIER: [(&str, &str); 1] =
    [("prof.attach_data_longer_than_rest", "the library is looked for before the data is read")];

/// Well-formed requests that crashed a runtime. The client checks the target before it sends one: `runtap-diag` has that
/// test.
const CHECKED_BEFORE_SENDING: [&str; 2] = ["proc.hook_missing_file", "proc.hook_simple_name"];

/// Requests for sessions into `user_events`, whose descriptor is not in the recordings.
const WITHOUT_ANSWER: [(&str, &str); 2] = [
    ("ue.no_fd", "the runtime waits for the descriptor for ever"),
    ("ue.byte_without_fd", "refused before the byte was sent"),
];

fn recordings() -> Option<PathBuf> {
    let folder = shared_dir().map(|shared| shared.join("data/ipc"));
    if folder.is_none() {
        Skip::because("there are no recordings of the protocol (RUNTAP_SHARED)").report();
    }
    folder
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

/// Returns the server's event for these bytes, fed one by one.
fn serve(bytes: &[u8]) -> server::Event {
    let mut server = Server::new();
    for byte in bytes {
        server.handle_bytes(std::slice::from_ref(byte));
    }
    server.handle_eof();
    server.poll_event().unwrap()
}

/// Like [`serve`], for a server that gets a descriptor if it needs one.
fn serve_user_events(bytes: &[u8]) -> server::Event {
    let mut server = Server::with_user_events();
    server.handle_bytes(bytes);
    server.handle_descriptor();
    server.handle_eof();
    server.poll_event().unwrap()
}

/// Returns the client's event for an answer, fed one byte at a time, and the length of the answer.
fn receive(request: &Request, answer: &[u8]) -> (client::Event, usize) {
    let mut request = request.clone();
    if let Request::CollectTracing { config, .. } = &mut request {
        // The recordings have duplicate providers, which a client would have merged.
        config.providers = merge_providers(std::mem::take(&mut config.providers)).unwrap();
    }
    let mut client = Client::with_descriptor(request).unwrap();
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
        (client::Event::Failed(Failure::Rejected(error)), _) => error.to_bytes().unwrap(),
        other => panic!("{case}: {other:?}"),
    };
    assert_eq!(encoded, answer[..taken], "{case}");
}

/// Returns the request of a row. The four longest are recorded as their first 256 bytes and their length; each is restored
/// by repeating its elements.
fn sent(row: &Value) -> Vec<u8> {
    let hex = text(row, "c2s");
    let Some((head, length)) = hex.split_once("..(") else { return unhex(hex) };
    let head = unhex(head);
    let mut all = head.clone();
    let unit = match text(row, "case") {
        "ep2.args_30000" | "ep4.name_5000" => head[head.len() - 2..].to_vec(),
        // One provider has 40 bytes.
        "ep3.count_1001" | "ep4.count_1000" => head[head.len() - 40..].to_vec(),
        other => panic!("{other}"),
    };
    let length: usize = length.strip_suffix(" B)").unwrap().parse().unwrap();
    all.extend(unit.iter().cycle().take(length - head.len()));
    match text(row, "case") {
        // The final NUL and a null string for the arguments.
        "ep4.name_5000" => all[length - 6..].fill(0),
        "ep2.args_30000" => all[length - 2..].fill(0),
        _ => {}
    }
    all
}

/// Returns a request with an equal kind of answer, for one that runtimes carry out and this crate rejects.
fn stand_in(case: &str) -> Option<Request> {
    match case {
        "ep2.name_count_80000003" => Some(Request::StopTracing(SessionId(0))),
        "proc.perfmap_ffffffff" => Some(Request::DisablePerfMap),
        _ => None,
    }
}

/// Compares this crate's treatment of a request with the recorded outcome.
fn judge(row: &Value, label: &str, sent: &[u8], event: &server::Event) -> &'static str {
    let case = text(row, "case");
    let listed = |list: &[(&str, &str)]| list.iter().any(|(name, _)| *name == case);
    let (request, refusal) = match event {
        server::Event::Request(request) => (Some(request), None),
        server::Event::Rejected(error) => (None, Some(error)),
        other => panic!("{label}: {other:?}"),
    };
    let ours = refusal.map(RequestError::hresult);
    let hresult = text(row, "hr").strip_prefix("0x").map(|n| Hresult(u32::from_str_radix(n, 16).unwrap()));
    let round_trip = || {
        let request = request.unwrap_or_else(|| panic!("{label}: {event:?}"));
        assert_eq!(request.to_bytes().unwrap(), sent, "{label}");
    };
    match (text(row, "reply"), hresult) {
        ("OK", _) => {
            if let Some((.., expected)) = STRICTER.iter().find(|(name, ..)| *name == case) {
                assert_eq!(ours, Some(*expected), "{label}");
                return "refused though carried out";
            }
            if listed(&NORMALISED) {
                let encoded = request.unwrap_or_else(|| panic!("{label}: {event:?}")).to_bytes();
                assert_ne!(encoded.as_deref(), Ok(sent), "{label}: no exception is needed");
            } else {
                round_trip();
            }
            "carried out"
        }
        ("ERR", Some(Hresult::UNKNOWN_COMMAND)) => {
            if case.starts_with("unknown") && case != "unknown.0207" {
                assert_eq!(ours, hresult, "{label}");
                return "unknown";
            }
            "unknown to this runtime only"
        }
        ("ERR", Some(Hresult::BAD_ENCODING)) => {
            assert_eq!(ours, hresult, "{label}");
            // The error has a field, and an offset within the message or at its end.
            match refusal {
                Some(RequestError::BadEncoding(error)) => {
                    assert!(!error.field.is_empty() && error.offset <= sent.len() as u64, "{label}: {error}");
                }
                Some(RequestError::Incomplete { received }) => assert_eq!(*received, sent.len(), "{label}"),
                other => panic!("{label}: {other:?}"),
            }
            "badly encoded"
        }
        ("ERR", hresult) => {
            match ours {
                // The runtime rejected the request because of its own state.
                None => round_trip(),
                Some(_) if listed(&REFUSED_EARLIER) => assert_eq!(ours, Some(Hresult::BAD_ENCODING)),
                Some(_) => assert_eq!(ours, hresult, "{label}"),
            }
            "refused"
        }
        ("", _) if text(row, "target").starts_with("died") => {
            if CHECKED_BEFORE_SENDING.contains(&case) {
                round_trip();
                return "killed by a well-formed request";
            }
            // The decoder accepts everything that the encoder produces (see `laws.rs`), so these are not such requests.
            assert_eq!(ours, Some(Hresult::BAD_ENCODING), "{label}");
            "killed"
        }
        ("", _) => {
            assert!(listed(&WITHOUT_ANSWER), "{label}");
            "no answer"
        }
        other => panic!("{label}: {other:?}"),
    }
}

#[test]
fn every_recorded_request_and_reply() {
    let mut seen = BTreeMap::<&str, usize>::new();
    for version in ["8.0.33", "9.0.22", "10.0.12"] {
        for row in lines(&format!("vectors-{version}.jsonl")) {
            let case = text(&row, "case");
            let label = &format!("{version} {case}");
            if row["unstable"] == true {
                continue;
            }
            let sent = sent(&row);
            // A runtime that received a byte without a descriptor reported that.
            let bytes = match case {
                "ue.byte_without_fd" if text(&row, "reply") == "ERR" => [&sent[..], &[0]].concat(),
                _ => sent.clone(),
            };
            let event = if case.starts_with("ue.") { serve_user_events(&bytes) } else { serve(&bytes) };
            *seen.entry(judge(&row, label, &bytes, &event)).or_default() += 1;
            let answer = unhex(text(&row, "s2c"));
            if !answer.is_empty() {
                let request = match &event {
                    server::Event::Request(request) => Some(request.clone()),
                    _ => stand_in(case),
                };
                check_reply(label, request.as_ref(), &answer);
                *seen.entry("reply").or_default() += 1;
            }
        }
    }
    println!("{seen:?}");
    if !seen.is_empty() {
        // Guards against a test that passes without checking anything.
        let expected = [
            ("badly encoded", 74),
            ("carried out", 100),
            ("killed", 20),
            ("killed by a well-formed request", 4),
            ("no answer", 3),
            ("refused", 48),
            ("refused though carried out", 6),
            ("reply", 288),
            ("unknown", 18),
            ("unknown to this runtime only", 42),
        ];
        for (what, least) in expected {
            assert!(seen.get(what).is_some_and(|n| *n >= least), "{what}: {seen:?}");
        }
    }
}

/// Sessions into `user_events` cannot be started without a descriptor, whatever is done with their bytes.
#[test]
fn user_events_are_never_sent_without_a_descriptor() {
    let mut seen = 0;
    for row in lines("vectors-10.0.12.jsonl") {
        if text(&row, "case").starts_with("ue.")
            && let server::Event::Request(request) = serve_user_events(&sent(&row))
        {
            assert_eq!(Client::new(request).unwrap_err(), EncodeError::DescriptorMissing);
            seen += 1;
        }
    }
    assert!(seen == 3 || recordings().is_none(), "{seen}");
}

/// A tap forwards the exchange unchanged, and identifies each piece.
fn pass_through(label: &str, sent: &[u8], received: &[u8]) {
    let mut tap = Tap::new();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (from, bytes) in [(Side::Client, sent), (Side::Runtime, received)] {
        for byte in bytes {
            tap.handle_bytes(from, std::slice::from_ref(byte));
        }
    }
    while let Some(piece) = tap.poll_transmit() {
        assert_ne!(piece.kind, PieceKind::Other, "{label}");
        if piece.from == Side::Client { &mut up } else { &mut down }.extend_from_slice(piece.bytes());
    }
    assert_eq!((&up[..], &down[..]), (sent, received), "{label}");
}

#[test]
fn every_recorded_conversation() {
    let mut environments = 0;
    let mut streams = 0;
    for flow in lines("flows.jsonl") {
        let mut connections = BTreeMap::<u64, (Vec<u8>, Vec<u8>)>::new();
        for step in flow["steps"].as_array().unwrap() {
            let (sent, received) = connections.entry(step["conn"].as_u64().unwrap_or_default()).or_default();
            // Only the start of a long stream is recorded.
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
            pass_through(&label, &sent, &received);
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
                other => panic!("{label}: {other:?}"),
            }
        }
    }
    if recordings().is_some() {
        assert_eq!((environments, streams), (2, 9));
    }
}

#[test]
fn requests_of_dotnet_trace_round_trip() {
    for run in lines("dotnet-trace-requests.jsonl") {
        let what = text(&run, "what");
        for hex in run["requests"].as_array().unwrap() {
            let sent = unhex(hex.as_str().unwrap());
            let server::Event::Request(request) = serve(&sent) else { panic!("{what}: {hex}") };
            assert_eq!(request.to_bytes().unwrap(), sent, "{what}");
        }
    }
}
