//! Usage errors, help and the verbs without a target: exit codes and messages.

use std::fs;
use std::process::{Command, Stdio};

use runtap_testkit::Running;
use serde_json::Value;

use crate::common::{VERBS, command, folder, json, runtap};

#[test]
fn a_missing_target_without_a_terminal_is_an_error() {
    for verb in ["info", "env", "trace"] {
        runtap([verb]).expect_code(2).says("no target specified").says("hint:");
    }
}

#[test]
fn an_unknown_option_is_reported_with_the_nearest_valid_one() {
    runtap(["trace", "-p", "1", "--providrs", "X"]).expect_code(2).says("--providers");
    runtap(["trac", "-p", "1"]).expect_code(2).says("trace");
    runtap(["trace", "-p", "1", "--to", "speedscpe"]).expect_code(2).says("speedscope");
    runtap(["trace", "-p", "1", "--profile", "gc-verbos"]).expect_code(2).says("gc-verbose");
    runtap(["trace", "-p", "1", "--clrevents", "gcc"]).expect_code(2).says("gc");
    runtap(["trace", "-p", "1", "--duration", "soon"]).expect_code(2).says("soon").says("1m30s");
    for verb in ["trace", "tail"] {
        let told = runtap([verb, "-p", "1", "--clrevents", "gc", "--duration", "99999999999h"]);
        told.expect_code(2).says("99999999999h").says("3650 days").says("--duration");
    }
    // Reported before anything is recorded, and before the process is looked up.
    for (content, format) in [(["--view", "alloc"], "perfetto"), (["--compat", "dotnet-trace"], "perfetto")] {
        let told = runtap(["trace", "-p", "1", content[0], content[1], "--to", format]);
        told.expect_code(2).says(format).says("use speedscope");
    }
    runtap(["trace", "-p", "4294967295", "--view", "cpu"])
        .expect_code(3)
        .says("no effect on a nettrace file");
    runtap(["trace", "-p", "1", "--buffersize", "0"]).expect_code(2);
    runtap(["trace", "-p", "1", "--to", "folded", "--to", "speedscope", "-o", "-"]).expect_code(2);
    runtap(["trace", "-p", "1", "-n", "x"]).expect_code(2);
    runtap(["info", "-p", "x"]).expect_code(2);
    runtap(["info", "--diagnostic-port", "/nowhere/x,lissen"]).expect_code(2);
    runtap(Vec::<&str>::new()).expect_code(2);
}

#[test]
fn an_unreadable_transcript_is_an_error() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("text"), "no transcript\n").unwrap();
    for (name, why) in [
        ("none", "can't read FILE: No such file"),
        (".", "FILE is a directory"),
        ("text", "cannot replay FILE: line 1: not a JSON object"),
    ] {
        let path = path(name);
        runtap(["replay", &path]).expect_code(2).says(&why.replace("FILE", &path));
    }
}

#[test]
fn an_address_of_another_protocol_is_reported() {
    for address in
        ["http://localhost:9000", "https://host", "tcp://127.0.0.1:9000", "ws://localhost:9000/web"]
    {
        for words in [&["info", address][..], &["info", "--diagnostic-port", address], &["ps", address]] {
            runtap(words).expect_code(2).says(address).says("runtap://HOST:PORT");
        }
    }
}

#[test]
fn a_missing_or_foreign_process_is_reported() {
    let gone = Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    let sleep = Running::start(sleep);
    for verb in ["info", "env", "trace"] {
        runtap([verb, "-p", &gone.to_string()]).expect_code(3).says(&gone.to_string()).says("hint:");
        runtap([verb, &sleep.id().to_string()]).expect_code(3).says("hint:");
    }
    runtap(["info", "--diagnostic-port", "/nowhere/x"]).expect_code(3).says("/nowhere/x");
    // A number larger than any process id is a name.
    runtap(["info", "99999999999"]).expect_code(3);
}

/// The machine-readable output of `doctor`, with nothing that depends on the machine.
#[test]
fn the_doctor_reports_a_missing_process() {
    let told = runtap(["doctor", "4294967295", "--format", "json"]);
    insta::assert_snapshot!(told.expect_code(3).text(), @r#"
    {
      "schema": "runtap.doctor/1",
      "pid": 4294967295,
      "name": null,
      "kind": null,
      "reachable": false,
      "findings": [
        {
          "code": "no-such-process",
          "severity": "error",
          "detail": "does not exist",
          "fix": "'runtap ps' lists the processes that you can attach to"
        }
      ]
    }
    "#);
    let told = runtap(["doctor", "4294967295"]);
    insta::assert_snapshot!(told.expect_code(3).text(), @r"
    process 4294967295 cannot be reached
      no-such-process  does not exist
        fix: 'runtap ps' lists the processes that you can attach to
    ");
    runtap(["doctor", "no-such-name"]).expect_code(3).says("no-such-name").says("hint:");
}

#[test]
fn an_unreadable_file_is_reported() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("text"), "no recording").unwrap();
    for (file, verb) in
        ["missing", "empty", "text", "."].iter().flat_map(|file| [(file, "events"), (file, "convert")])
    {
        let option: &[&str] = if verb == "events" { &["--count"] } else { &["--to", "folded"] };
        let file = path(file);
        let told = runtap([verb, &file].iter().chain(option));
        assert!(told.expect_code(2).says(&file).stdout.is_empty());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing was written");
}

#[test]
fn verbs_without_a_target() {
    let version = json(["version", "--format", "json"]);
    assert_eq!(version["schema"], "runtap.version/1");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(version["target"].as_str().unwrap().contains("linux"), "{version}");
    assert!(version.as_object().unwrap().contains_key("commit"));
    let licenses = json(["licenses", "--format", "json"]);
    assert_eq!(licenses["schema"], "runtap.licenses/1");
    let packages = licenses["packages"].as_array().unwrap();
    assert!(packages.iter().any(|package| package["name"] == "tokio" && package["license"] == "MIT"));
    assert!(packages.iter().any(|package| package["name"] == "inferno" && package["license"] == "CDDL-1.0"));
    assert_eq!(packages[0]["version"], env!("CARGO_PKG_VERSION"));
    // Every package has its licence texts, and every text belongs to a package.
    let mut used = std::collections::BTreeSet::new();
    for package in packages {
        let texts = package["texts"].as_array().unwrap();
        assert!(package["license"] != "" && package["name"] != "" && !texts.is_empty(), "{package}");
        used.extend(texts.iter().map(|number| number.as_u64().unwrap()));
    }
    let texts = licenses["texts"].as_array().unwrap();
    let there: Vec<u64> = texts.iter().map(|text| text["number"].as_u64().unwrap()).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), there);
    for text in texts {
        let whole = text["text"].as_str().unwrap();
        assert!(whole.len() > 500 && !whole.contains("%%%% "), "{text}");
    }
    let text = runtap(["licenses"]);
    assert!(text.expect_code(0).text().contains("Permission is hereby granted"), "{text}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(runtap(["completions", shell]).expect_code(0).text().contains("runtap"));
    }
    assert!(runtap(["man"]).expect_code(0).text().contains(".TH runtap"));
    let pages = folder();
    let out_dir = pages.path().join("man");
    runtap(["man", "--out-dir", out_dir.to_str().unwrap()]).expect_code(0);
    for page in ["runtap.1", "runtap-trace.1", "runtap-ps.1"] {
        assert!(out_dir.join(page).is_file(), "{page}");
    }
    for verb in ["ps", "info", "env", "trace", "convert", "events"] {
        assert!(runtap([verb, "--help"]).expect_code(0).text().contains("Examples:"), "{verb}");
    }
}

/// Output to a pipe has colors only on request.
#[test]
fn colour_is_for_terminals() {
    let coloured = |extra: &[&str], variable: Option<(&str, &str)>| {
        let mut command = command(["info", "-p", "1"].iter().chain(extra));
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        runtap_testkit::run(command).stderr.contains('\u{1b}')
    };
    assert!(!coloured(&[], None));
    assert!(coloured(&["--color", "always"], None));
    assert!(coloured(&[], Some(("CLICOLOR_FORCE", "1"))));
    assert!(!coloured(&["--color", "never"], Some(("CLICOLOR_FORCE", "1"))));
}

/// A reader that closes the pipe is not an error: `runtap …
/// head`.
#[test]
fn a_broken_pipe_ends_quietly() {
    for arguments in [
        &["man"][..],
        &["completions", "zsh"],
        &["ps", "--format", "json"],
        &["--help"],
        &["version"],
        &["licenses"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(arguments);
        command.stdin(Stdio::null()).stdout(writer);
        let finished = Running::start_as_it_is(command).wait();
        finished.expect_code(0);
        assert_eq!(finished.stderr, "", "{arguments:?}");
    }
}

#[test]
fn ps_without_processes_is_still_a_document() {
    let document = json(["ps", "--format", "json", "--all-users"]);
    assert!(matches!(&document["processes"], Value::Array(_)));
}

/// The documented ways to select a process.
#[test]
fn every_verb_with_a_process_takes_it_in_every_way() {
    for verb in VERBS {
        let help = runtap(verb.iter().copied().chain(["--help"]));
        let help = help.expect_code(0).text();
        for option in
            ["-p, --process-id", "-n, --name", "--user", "--diagnostic-port", "--dport", "--all", "TARGET"]
        {
            // The hottest methods of several programs are no list.
            let expected = (verb, option) != (&["top"][..], "--all");
            assert_eq!(help.contains(option), expected, "{verb:?} {option}");
        }
    }
}
