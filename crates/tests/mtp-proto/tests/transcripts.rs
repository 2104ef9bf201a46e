//! What real applications have said to real and imitated servers: every frame is read, shown, and written again as it was,
//! and the server's machine finds exactly the violations that are known to be there.
//!
//! The recordings lie outside the repository (`RUNTAP_SHARED`, else `../shared` beside the workspace).

mod common;

use std::collections::BTreeMap;

use common::{decode, frame, unhex};
use runtap_mtp_proto::{
    Limits, Message, Versions, host,
    render::{Field, FieldValue, Rendering},
    server::{Application, Connection, Event, Mode, Output, Pipe, Settings},
};
use runtap_testkit::{Skip, shared_data, shared_dir};
use serde_json::Value;

struct Transcript {
    name: String,
    lines: Vec<Value>,
}

fn transcripts() -> Vec<Transcript> {
    let Some(folder) = shared_dir().map(|shared| shared.join("data/mtp/transcripts")) else {
        Skip::because("there are no recordings of the protocol (RUNTAP_SHARED)").report();
        return Vec::new();
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".jsonl"))
        .collect();
    names.sort();
    assert!(names.len() >= 55, "{}", names.len());
    names
        .into_iter()
        .map(|name| {
            let bytes = shared_data(format!("mtp/transcripts/{name}")).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let name = name.trim_end_matches(".zst").trim_end_matches(".jsonl").to_owned();
            Transcript { name, lines }
        })
        .collect()
}

fn json(fields: &[Field]) -> Value {
    let value = |value: &FieldValue| match value {
        FieldValue::Text(text) => Value::from(text.as_str()),
        FieldValue::Bool(value) => Value::from(*value),
        FieldValue::Code(value, _) => Value::from(*value),
        FieldValue::Int(value) => Value::from(*value),
        FieldValue::Texts(texts) => Value::from(texts.clone()),
        FieldValue::List(elements) => elements.iter().map(|element| json(element)).collect(),
        other => panic!("{other:?}"),
    };
    fields
        .iter()
        .map(|field| Value::from(vec![field.id.into(), field.name.into(), value(&field.value)]))
        .collect()
}

#[test]
fn every_frame_is_read_as_it_was_listed_and_written_as_it_came() {
    for Transcript { name, lines } in transcripts() {
        for line in lines.iter().filter(|line| line["kind"] == "frame") {
            let bytes = unhex(line["hex"].as_str().unwrap());
            let frame = frame(&bytes);
            let message = decode(&bytes);
            assert_eq!(message.to_frame().unwrap(), bytes, "{name}: {line}");
            assert_eq!(message.id().name(), line["name"].as_str(), "{name}");
            let shown = Rendering::new(&frame, Limits::default());
            assert_eq!((&shown.error, &shown.rest), (&None, &None), "{name}");
            assert_eq!(json(&shown.fields), line["fields"], "{name}");
        }
    }
}

fn settings(header: &Value) -> Settings {
    let command: Vec<&str> =
        header["cmd"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let mode = if command.contains(&"--help") {
        Mode::Help
    } else if command.contains(&"--list-tests") {
        Mode::Discover
    } else {
        Mode::Run
    };
    let mut settings = Settings::new(mode);
    settings.is_ide = header["ide"] == true;
    settings.versions = match header["versions"].as_str() {
        Some(_) if header["reject"] == true => Versions::default(),
        Some(versions) => Versions::parse(versions),
        None => Versions::parse("1.0.0"),
    };
    if header["control"] == true {
        settings.control_pipe = Some("/tmp/control".to_owned());
    }
    settings
}

/// The ids of the violations of a transcript, each once.
fn lint(lines: &[Value]) -> Vec<&'static str> {
    let mut application = Application::new(settings(&lines[0]));
    let mut connections: BTreeMap<&str, Connection> = BTreeMap::new();
    let mut found = Vec::new();
    let mut take = |output: &Output| {
        for violation in output.violations() {
            let rule = violation.rule.id();
            if !found.contains(&rule) {
                found.push(rule);
            }
        }
    };
    for line in lines {
        let conn = line["conn"].as_str().unwrap_or_default();
        match line["kind"].as_str().unwrap() {
            "open" => {
                let pipe = if conn.starts_with("control") { Pipe::Control } else { Pipe::Data };
                connections.insert(conn, application.connect(pipe));
            }
            "frame" if line["dir"] == "h2s" => {
                let bytes = unhex(line["hex"].as_str().unwrap());
                let connection = connections.get_mut(conn).unwrap();
                let output = application.handle_bytes(connection, &bytes);
                take(&output);
                let messages =
                    output.events.iter().filter(|event| matches!(event, Event::Message(_))).count();
                assert!(messages <= 1);
            }
            "close" => {
                let output = application.handle_close(connections.get_mut(conn).unwrap());
                take(&output);
            }
            "exit" => {
                let code = line["code"].as_i64().filter(|code| *code >= 0);
                take(&application.handle_exit(code.map(|code| i32::try_from(code).unwrap())));
            }
            _ => {}
        }
    }
    found
}

/// The transcripts in which a rule is broken. In all others, none is.
const KNOWN: &[(&str, &[&str])] = &[
    // The framework calls `Environment.Exit(0)` in a test.
    ("orchard-2.5.2.exit-0", &["MTP030"]),
    // The server knows no version.
    ("orchard-2.5.2.rejected", &["MTP009", "MTP033"]),
    // It ends before it connects.
    ("orchard-2.5.2.unknown-option", &["MTP033"]),
];

#[test]
fn real_applications_break_no_rules_but_these() {
    let mut wrong = Vec::new();
    for Transcript { name, lines } in transcripts() {
        let expected = KNOWN.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, rules)| rules);
        let found = lint(&lines);
        if found != expected {
            wrong.push(format!("{name}: {found:?}, expected {expected:?}"));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

#[test]
fn our_replies_are_those_that_were_recorded() {
    for Transcript { name, lines } in transcripts() {
        // The stand-in sends other handshakes, and answers control requests when it likes.
        let mut application = Application::new(settings(&lines[0]));
        let mut connections: BTreeMap<&str, Connection> = BTreeMap::new();
        let mut due: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for line in &lines {
            let conn = line["conn"].as_str().unwrap_or_default();
            match (line["kind"].as_str().unwrap(), line["dir"].as_str()) {
                ("open", _) => {
                    let pipe = if conn.starts_with("control") { Pipe::Control } else { Pipe::Data };
                    connections.insert(conn, application.connect(pipe));
                }
                ("frame", Some("h2s")) => {
                    let bytes = unhex(line["hex"].as_str().unwrap());
                    let output = application.handle_bytes(connections.get_mut(conn).unwrap(), &bytes);
                    due.insert(conn, output.transmit);
                }
                ("frame", _) => {
                    let theirs = decode(&unhex(line["hex"].as_str().unwrap()));
                    let ours = match &theirs {
                        Message::ServerControl(control) => {
                            connections.get_mut(conn).unwrap().control(control.kind.unwrap()).unwrap()
                        }
                        _ => due.remove(conn).unwrap(),
                    };
                    match (decode(&ours), theirs) {
                        (Message::Handshake(ours), Message::Handshake(theirs)) => {
                            assert_eq!(ours.chosen_version(), theirs.chosen_version(), "{name}");
                            assert_eq!(ours.is_ide(), theirs.is_ide(), "{name}");
                            let offered = |handshake: &runtap_mtp_proto::Handshake| {
                                handshake.server_control_pipe().is_some()
                            };
                            assert_eq!(offered(&ours), offered(&theirs), "{name}");
                        }
                        (ours, theirs) => assert_eq!(ours, theirs, "{name}"),
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn our_host_could_have_held_each_conversation() {
    for Transcript { name, lines } in transcripts() {
        let mut hosts: BTreeMap<&str, host::Connection> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["kind"] == "frame") {
            let conn = line["conn"].as_str().unwrap();
            let host = hosts.entry(conn).or_insert_with(|| {
                if conn.starts_with("control") {
                    host::Connection::control()
                } else {
                    host::Connection::data()
                }
            });
            let bytes = unhex(line["hex"].as_str().unwrap());
            if line["dir"] == "h2s" {
                assert_eq!(host.request(&decode(&bytes)).as_ref(), Ok(&bytes), "{name}: {line}");
            } else {
                assert!(host.handle_bytes(&bytes).unwrap().is_some(), "{name}: {line}");
            }
        }
    }
}
