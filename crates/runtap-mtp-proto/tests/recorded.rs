//! What real hosts and the real `dotnet test` have said: every frame is decoded and comes out again as the same bytes, and
//! breaks no rule, or just those that are known.

use std::collections::{BTreeSet, HashMap};

use runtap_mtp_proto::server::{Application, Config, Mode};
use runtap_mtp_proto::{Frames, Message, Version};
use runtap_testkit::{shared_data, shared_dir};
use serde_json::Value;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The message of a whole frame.
fn message(frame: &[u8]) -> Message {
    let mut frames = Frames::default();
    frames.feed(frame);
    let message = Message::decode(&frames.next_frame().unwrap().unwrap()).unwrap();
    assert_eq!(frames.next_frame(), Ok(None));
    assert!(frames.pending().is_empty());
    message
}

#[test]
fn vectors_come_out_as_they_went_in() {
    let vectors = match shared_data("mtp/vectors.json") {
        Ok(vectors) => vectors,
        Err(skip) => return skip.report(),
    };
    let vectors: Vec<Value> = serde_json::from_slice(&vectors).unwrap();
    assert!(vectors.len() > 10);
    for vector in vectors {
        let frame = bytes(vector["frame_hex"].as_str().unwrap());
        let message = message(&frame);
        assert_eq!(i64::from(message.id()), vector["serializer_id"].as_i64().unwrap());
        assert_eq!(message.encode(), frame, "{}", vector["name"]);
    }
}

/// The rules that a recording breaks, by its name.
fn known(name: &str) -> &'static [&'static str] {
    match name {
        // `Environment.Exit(0)` within a test.
        "orchard-2.5.2.exit-0.jsonl" => &["MTP018"],
        _ => &[],
    }
}

#[test]
fn transcripts_come_out_as_they_went_in_and_follow_the_rules() {
    let Some(shared) = shared_dir() else {
        return runtap_testkit::Skip::because("there is no shared folder (RUNTAP_SHARED)").report();
    };
    let mut names: Vec<_> = std::fs::read_dir(shared.join("data/mtp/transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".jsonl"))
        .collect();
    names.sort();
    assert!(names.len() > 50);
    for name in names {
        let text = shared_data(format!("mtp/transcripts/{name}")).unwrap();
        let lines: Vec<Value> = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let header = &lines[0];
        let words = header["cmd"].to_string();
        let mode = match () {
            () if words.contains("--help") => Mode::Help,
            () if words.contains("--list-tests") => Mode::Discover,
            () => Mode::Run,
        };
        let versions = header["versions"].as_str().unwrap_or("1.0.0");
        let mut application = Application::new(Config {
            mode,
            versions: versions.split(';').filter_map(Version::parse).collect(),
            is_ide: header["ide"] == true,
            control_pipe: Some("/c".to_owned()),
            identity: Default::default(),
        });
        let mut numbers = HashMap::new();
        let mut broken = BTreeSet::new();
        for line in &lines {
            if line["kind"] == "exit" {
                let code = line["code"].as_i64().unwrap();
                broken.extend(application.finish(i32::try_from(code).unwrap()).map(|v| v.to_string()));
            }
            if line["kind"] != "frame" {
                continue;
            }
            let frame = bytes(line["hex"].as_str().unwrap());
            let message = message(&frame);
            assert_eq!(message.encode(), frame, "{name}: {line}");
            assert_eq!(Message::name(message.id()), line["name"].as_str(), "{name}: {line}");
            let connection = line["conn"].as_str().unwrap();
            if line["dir"] == "h2s" && !connection.starts_with("control") {
                let next = numbers.len() as u64;
                let number = *numbers.entry(connection.to_owned()).or_insert(next);
                let mut frames = Frames::default();
                frames.feed(&frame);
                let handled = application.handle(number, &frames.next_frame().unwrap().unwrap());
                broken.extend(handled.violations.iter().map(ToString::to_string));
            }
        }
        let ids: BTreeSet<_> = broken.iter().map(|text| &text[..6]).collect();
        assert_eq!(ids, known(&name).iter().copied().collect(), "{name}: {broken:#?}");
    }
}
