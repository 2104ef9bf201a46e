//! The recordings of the original agents, replayed from files: the results equal their JSON, every time, and for truncated
//! files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::{ClassOutcome, Dialect, Rule};
use runtap_jvm::recording::{
    Conversation, ConversationTotals, Error, Options, RecordedAgent, ReplayedAgent, find, replay,
};
use runtap_testkit::{jvm_recordings, require, shared_data, shared_dir};
use runtap_transcript::Row;

/// Returns the folder of the recordings.
fn folder() -> Result<PathBuf, runtap_testkit::Skip> {
    shared_data("bytefrog/v1_basic.json")?;
    Ok(shared_dir().expect("it was read").join("data/bytefrog"))
}

fn one(path: &Path) -> RecordedAgent {
    let mut all = find(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(all.len(), 1, "{}", path.display());
    all.remove(0)
}

fn played(path: &Path) -> ReplayedAgent {
    replay(&one(path), &Options::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rules(replayed: &ReplayedAgent) -> Vec<Rule> {
    let broken = replayed.violations.iter().map(|(_, violation)| violation.rule);
    broken.chain(replayed.model.report().findings.iter().map(|finding| finding.rule)).collect()
}

/// Returns all results of a replay, as text.
fn whole(replayed: &ReplayedAgent) -> String {
    let threads = replayed.model.report().threads.len();
    let trees: Vec<_> = (0..threads).map(|thread| replayed.model.call_tree(Some(thread))).collect();
    format!(
        "{:#?}{trees:#?}{:#?}{:#?}{:#?}{:#?}{:#?}",
        replayed.model.report(),
        replayed.classes,
        replayed.violations,
        replayed.damage,
        replayed.unfinished,
        replayed.errors
    )
}

#[test]
fn every_recording_comes_to_its_json() {
    let recordings = require!(jvm_recordings());
    let folder = folder().expect("there are recordings");
    let mut names: Vec<String> =
        find(&folder).expect("a folder of recordings").into_iter().map(|it| it.agent).collect();
    names.sort();
    assert!(names.iter().eq(recordings.iter().map(|recording| &recording.name)));
    for recording in &recordings {
        let scenario = &*recording.name;
        let replayed = played(&recording.path());
        let report = replayed.model.report();
        let count = |name: &str| recording.count(name);
        let counters = report.counters;
        assert_eq!(counters.entries, count("methodEntry"), "{scenario}");
        assert_eq!(counters.exits + counters.flagged, count("methodExit"), "{scenario}");
        assert_eq!(counters.bubbles - counters.flagged, count("exceptionBubble"), "{scenario}");
        assert_eq!(counters.exceptions, count("exception"), "{scenario}");
        assert_eq!(counters.visits, count("methodVisit"), "{scenario}");
        assert_eq!(report.signatures as u64, count("mapMethodSignature"), "{scenario}");
        let classes = ["classTransformed", "classIgnored", "classTransformFailed"].map(count);
        assert_eq!(replayed.class_counts, classes, "{scenario}");
        assert_eq!(replayed.classes.values().sum::<u64>(), classes.iter().sum::<u64>(), "{scenario}");
        assert_eq!((counters.missing, counters.repeated, counters.gaps), (0, 0, 0), "{scenario}");
        let sequenced = ["methodEntry", "methodExit", "exceptionBubble", "exception", "methodVisit"];
        let events: u64 = sequenced.into_iter().map(count).sum();
        assert_eq!(report.sequences, events.checked_sub(1).map(|last| (0, last)), "{scenario}");
        assert_eq!(counters.data_breaks, count("dataBreak"), "{scenario}");
        let runs = if scenario == "v1_reconfigure" { 9 } else { 7 };
        assert_eq!(replayed.run, Some(runs), "{scenario}");
        assert_eq!(replayed.project, (scenario == "v4_project_hello").then_some(3), "{scenario}");
        assert_eq!((&replayed.damage, &replayed.unfinished), (&vec![], &vec![]), "{scenario}");
        let dialect = if scenario.starts_with("v4") { Dialect::V4 } else { Dialect::V1 };
        assert_eq!(report.dialect, dialect);
        let expected: &[Rule] = match scenario {
            "v1_error_midrun" => &[Rule::AgentError],
            // These agents end before they were commanded to, or before they did anything.
            "v1_config_split" | "v1_never_start" => &[Rule::EndWithoutShutdown],
            _ => &[],
        };
        let broken: Vec<Rule> =
            rules(&replayed).into_iter().filter(|rule| *rule != Rule::LateBreak).collect();
        assert_eq!(broken, expected, "{scenario}: {:?}", replayed.violations);
    }
}

/// Returns the rows of a recording with their totals.
fn rows(path: &Path) -> (Vec<Row>, ConversationTotals) {
    let mut rows = Vec::new();
    let agents = find(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut conversation = Conversation::new(&agents);
    while let Some(next) = conversation.next_rows().unwrap() {
        rows.extend(next);
    }
    (rows, conversation.into_totals())
}

#[test]
fn every_message_is_shown() {
    for recording in require!(jvm_recordings()) {
        let (rows, totals) = rows(&recording.path());
        let scenario = &*recording.name;
        assert_eq!((totals.undecoded, totals.damage), (0, vec![]), "{scenario}");
        assert_eq!(rows.iter().filter(|row| row.kind == "open").count() as u64, totals.connections);
        // The counts are those of the agent's messages.
        let sent = || rows.iter().filter(|row| row.dir.as_deref() == Some("a2h"));
        let names: BTreeSet<&str> = sent().filter_map(|row| row.name.as_deref()).collect();
        for name in names.iter().filter(|name| recording.count(name) > 0) {
            let shown = sent().filter(|row| row.name.as_deref() == Some(*name)).count();
            assert_eq!(shown as u64, recording.count(name), "{scenario}: {name}");
        }
        assert!(names.contains("hello") || names.contains("projectHello"), "{scenario}: {names:?}");
        let bytes: u64 = rows.iter().filter(|row| row.kind == "message").filter_map(|row| row.bytes).sum();
        assert_eq!(bytes, one(&recording.path()).bytes(), "{scenario}");
        let times: Vec<f64> = rows.iter().filter_map(|row| row.t).collect();
        assert!(times.is_sorted(), "{scenario}");
    }
}

#[test]
fn what_is_left_of_a_truncated_recording_is_shown() {
    let original = require!(folder());
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&original).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("v1_basic.") {
            // A copy would be as read-only as the original.
            fs::write(dir.path().join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
        }
    }
    let data = dir.path().join("v1_basic.data0.a2h.bin");
    let bytes = fs::read(&data).unwrap();
    fs::write(&data, &bytes[..50_000]).unwrap();
    let ((rows, totals), (all, _)) = (rows(dir.path()), rows(&original.join("v1_basic")));
    assert!(rows.len() > 1000 && rows.len() < all.len(), "{} of {}", rows.len(), all.len());
    assert_eq!(totals.damage.len(), 1, "{:?}", totals.damage);
    assert_eq!(totals.damage[0].stream.to_string(), "v1_basic.data0.a2h");
    // Bytes of another protocol.
    fs::write(&data, [&bytes[..2], &[0xff; 100]].concat()).unwrap();
    let (rows, totals) = self::rows(dir.path());
    assert!(totals.undecoded > 0);
    let undecoded = rows.iter().find(|row| row.is_undecoded).unwrap();
    assert_eq!(undecoded.fields.as_ref().unwrap()[0].name, "error");
}

#[test]
fn a_replay_is_the_same_each_time() {
    for recording in require!(jvm_recordings()) {
        let path = recording.path();
        assert_eq!(whole(&played(&path)), whole(&played(&path)), "{}", recording.name);
    }
}

#[test]
fn classes_that_failed_are_named() {
    let folder = require!(folder());
    let replayed = played(&folder.join("v1_class17"));
    let failed: Vec<_> =
        replayed.classes.iter().filter(|((outcome, _), _)| *outcome == ClassOutcome::Failed).collect();
    assert!(!failed.is_empty());
    assert_eq!(failed.iter().map(|(_, count)| **count).sum::<u64>(), replayed.class_counts[2]);
}

/// Copies one recording, so that the test can change its files.
fn copy(from: &Path, scenario: &str, without: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for file in fs::read_dir(from).expect("it is there") {
        let file = file.expect("an entry");
        let name = file.file_name().into_string().expect("plain");
        if name.starts_with(&format!("{scenario}.")) && (without.is_empty() || !name.ends_with(without)) {
            let bytes = fs::read(file.path()).expect("it can be read");
            fs::write(folder.path().join(name), bytes).expect("it can be written");
        }
    }
    folder
}

#[test]
fn files_without_times_come_to_the_same() {
    let from = require!(folder());
    for scenario in ["v1_basic", "v1_reconfigure", "v4_basic"] {
        let folder = copy(&from, scenario, ".chunks.tsv");
        let (with, without) = (played(&from.join(scenario)), played(folder.path()));
        assert_eq!(with.model.report().methods, without.model.report().methods, "{scenario}");
        assert_eq!(with.class_counts, without.class_counts, "{scenario}");
        assert_eq!(rules(&without), [], "{scenario}: {:?}", without.violations);
        assert_eq!(with.run, without.run);
        // HQ's messages are not needed for the trace.
        let folder = copy(&from, scenario, "ctl.h2a.bin");
        assert_eq!(with.model.report().methods, played(folder.path()).model.report().methods, "{scenario}");
        // Each file of an agent identifies all of its files.
        let by_file = played(&from.join(format!("{scenario}.data0.a2h.bin")));
        assert_eq!(whole(&with), whole(&by_file));
    }
}

#[test]
fn a_recording_that_was_cut_anywhere_has_what_came_before() {
    let from = require!(folder());
    let scenario = "v1_pause";
    let entries = |folder: &Path| {
        let replayed = played(folder);
        assert_eq!(replayed.damage, []);
        (replayed.model.report().counters.entries, replayed.unfinished)
    };
    let data = fs::read(from.join("v1_pause.data0.a2h.bin")).expect("it is there");
    let index = fs::read(from.join("v1_pause.data0.a2h.chunks.tsv")).expect("it is there");
    let (mut last, all) = (0, entries(&from.join(scenario)).0);
    // The bytes are always ahead of the index.
    for cut in (2..data.len()).step_by(97) {
        let folder = copy(&from, scenario, "data0.a2h.chunks.tsv");
        fs::write(folder.path().join("v1_pause.data0.a2h.bin"), &data[..cut]).expect("written");
        let rows: Vec<&[u8]> = index.split_inclusive(|byte| *byte == b'\n').collect();
        let mut sum = 0;
        let mut kept = Vec::new();
        for row in rows {
            let text = String::from_utf8_lossy(row);
            let Some(bytes) = text.trim_end().split('\t').nth(1).and_then(|n| n.parse::<usize>().ok()) else {
                break;
            };
            sum += bytes;
            if sum > cut {
                // Half of the entry was written.
                kept.extend_from_slice(&row[..row.len() / 2]);
                break;
            }
            kept.extend_from_slice(row);
        }
        fs::write(folder.path().join("v1_pause.data0.a2h.chunks.tsv"), kept).expect("written");
        let (now, unfinished) = entries(folder.path());
        assert!(now >= last && now <= all, "{now} after {last}");
        assert_eq!(unfinished, [Connection::Data(0)]);
        last = now;
    }
    assert!(last + 10 > all);
}

#[test]
fn wrong_bytes_are_told_with_stream_and_offset_and_end_nothing_else() {
    let from = require!(folder());
    let folder = copy(&from, "v1_reconfigure", "");
    let path = folder.path().join("v1_reconfigure.data1.a2h.bin");
    let mut data = fs::read(&path).expect("it is there");
    let whole = played(folder.path()).model.report();
    // Replaced by an id that no message has.
    let at = data.len() - 17;
    data[at] = 0xee;
    fs::write(&path, &data).expect("written");
    let replayed = played(folder.path());
    let report = replayed.model.report();
    assert_eq!(replayed.damage.len(), 1, "{:?}", replayed.damage);
    let damage = &replayed.damage[0];
    assert_eq!(
        (damage.stream.to_string(), damage.offset),
        ("v1_reconfigure.data1.a2h".to_owned(), at as u64)
    );
    assert!(damage.reason.contains("FROG001"), "{}", damage.reason);
    assert_eq!(
        report.counters.entries + report.counters.exits + 1,
        whole.counters.entries + whole.counters.exits
    );

    // An index that lists more bytes than there are, and an invalid index.
    let index = folder.path().join("v1_reconfigure.data0.a2h.chunks.tsv");
    fs::write(&index, "1.0\t100000\n2.0\tEOF\n").expect("written");
    let of_data0 = || {
        let mut damage = played(folder.path()).damage;
        damage.retain(|damage| damage.stream.to_string() == "v1_reconfigure.data0.a2h");
        assert_eq!(damage.len(), 1, "{damage:?}");
        damage.remove(0)
    };
    let damage = of_data0();
    assert!(damage.reason.contains("bytes are missing"), "{damage:?}");
    fs::write(&index, "1.0\t2\nfrom the beginning\n").expect("written");
    let damage = of_data0();
    assert_eq!(damage.offset, 2);
    assert!(damage.reason.contains("line 2: has no tab"), "{damage:?}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    assert!(matches!(find(path), Err(Error::NoRecording(_))));
    assert!(matches!(find(&path.join("none")), Err(Error::Read { .. })));
    fs::write(path.join("some.txt"), "text").expect("written");
    assert!(matches!(find(&path.join("some.txt")), Err(Error::NoRecording(_))));
    fs::write(path.join("agent0.data0.a2h.bin"), [0x1e, 0]).expect("written");
    let error = find(path).expect_err("no control");
    assert!(error.to_string().contains("agent0.ctl.a2h.bin"), "{error}");
    for hello in [&b""[..], b"\x00", b"\x00\x09", b"GET / HTTP/1.1\r\n"] {
        fs::write(path.join("agent0.ctl.a2h.bin"), hello).expect("written");
        let error = replay(&one(path), &Options::default()).expect_err("no hello");
        assert!(matches!(error, Error::NoHello(_)), "{error}");
    }
    fs::write(path.join("marks.tsv"), "1\tbegin\tx\nfoo\n").expect("written");
    // The rest can be read.
    let found = find(path).expect("a recording");
    assert_eq!(found[0].marks.names(), ["x"]);
    let trouble = found[0].marks.problem().expect("a line is wrong").to_string();
    assert!(trouble.contains("line 2"), "{trouble}");
}
