//! Recordings of real applications, made with another tool: shown, checked, and replayed to the server of this crate.

mod transcript;

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_mtp::transcript::{Mode, Played, Replay, Server, Tally, Tap, TestPipe};
use runtap_transcript::{Entry, Header, Journal, Located, Row};
use transcript::{Listed, Memory, broken, counts, lines, lint, listed, rows};

/// The recordings in which a rule is broken. In all others, none is.
const KNOWN: &[(&str, &[&str])] = &[
    // The framework calls `Environment.Exit(0)` in a test.
    ("orchard-2.5.2.exit-0", &["MTP030"]),
    // The server knows no version.
    ("orchard-2.5.2.rejected", &["MTP009", "MTP033"]),
    // It ends before it connects.
    ("orchard-2.5.2.unknown-option", &["MTP033"]),
];

fn known(recording: &Listed) -> &'static [&'static str] {
    KNOWN.iter().find(|(known, _)| *known == recording.name()).map_or(&[], |(_, rules)| rules)
}

#[test]
fn every_recording_is_shown_as_its_table_counts_it() {
    for recording in listed() {
        let (rows, inspector) = rows(&lines(&recording.path).unwrap());
        let name = recording.name();
        assert_eq!(counts(&rows), recording.frames, "{name}");
        assert_eq!(inspector.connections(), recording.connections, "{name}");
        assert_eq!(inspector.undecoded(), 0, "{name}");
        let exit = rows.iter().find(|row| row.kind == "exit").unwrap();
        let expected = match recording.exit_code {
            code @ ..0 => format!("signal {}", -code),
            code => format!("exit code {code}"),
        };
        assert_eq!(exit.summary, expected, "{name}");
        let silent = |row: &&Row| row.frame.is_some() && row.summary.is_empty();
        let silent: Vec<_> = rows.iter().filter(silent).filter_map(|row| row.name.as_deref()).collect();
        let empty = ["VoidResponse", "WaitForServerControlRequest"];
        assert!(silent.iter().all(|name| empty.contains(name)), "{name}: {silent:?}");
    }
}

#[test]
fn real_applications_break_no_rules_but_these() {
    for recording in listed() {
        let lines = lines(&recording.path).unwrap();
        assert_eq!(broken(&lines), known(&recording), "{}", recording.name());
        let (summary, findings) = lint(&lines);
        assert!(summary.has_end);
        assert_eq!(summary.connections, recording.connections);
        assert_eq!(summary.errors, findings.len() as u64);
    }
}

#[test]
fn without_open_lines_that_is_all_that_is_found_besides() {
    for recording in listed() {
        let mut lines = lines(&recording.path).unwrap();
        lines.retain(|located| !matches!(located.entry, Entry::Open(_)));
        let mut expected = known(&recording).to_vec();
        expected.extend((recording.connections > 0).then_some("REC001"));
        assert_eq!(broken(&lines), expected, "{}", recording.name());
    }
}

/// Replays a recording to the server of this crate.
fn played(recording: &Listed, mode: Mode, execution_id: Option<&str>) -> (Memory, Played, Tally) {
    played_lines(recording, lines(&recording.path).unwrap(), mode, execution_id)
}

fn played_lines(
    recording: &Listed,
    lines: Vec<Located>,
    mode: Mode,
    execution_id: Option<&str>,
) -> (Memory, Played, Tally) {
    let memory = Memory::new();
    let journal = Arc::new(Journal::begin::<TestPipe>(Box::new(memory.clone()), Header::default()).unwrap());
    let tap = Tap::listen(Server::Ourselves(mode), &journal).unwrap();
    let mut replay = Replay::new();
    for located in lines {
        replay.take(located).unwrap();
    }
    assert_eq!(replay.mode(), mode);
    let played = replay
        .allow_all_files(true)
        .play(tap.path(), execution_id, true)
        .unwrap_or_else(|error| panic!("{recording:?}: {error}"));
    let tally = tap.close(Instant::now() + Duration::from_secs(10), played.code).unwrap();
    journal.end(played.code.map(i64::from));
    (memory, played, tally)
}

#[test]
fn without_open_lines_as_much_is_played() {
    for recording in listed().into_iter().filter(Listed::is_run) {
        let mut lines = lines(&recording.path).unwrap();
        lines.retain(|located| !matches!(located.entry, Entry::Open(_)));
        let (_, without, _) = played_lines(&recording, lines, Mode::Run, None);
        let (_, with, _) = played(&recording, Mode::Run, None);
        assert_eq!(without.requests, with.requests, "{}", recording.name());
    }
}

fn is_state(row: &Row, state: &str) -> bool {
    row.summary.starts_with(&format!("{state} "))
}

#[test]
fn every_run_can_be_played_to_another_server() {
    for recording in listed().into_iter().filter(Listed::is_run) {
        let name = recording.name();
        let (memory, played, tally) = played(&recording, Mode::Run, None);
        let lines = memory.lines();
        let (again, inspector) = rows(&lines);
        assert_eq!(counts(&again), recording.frames, "{name}");
        assert_eq!(inspector.connections(), recording.connections, "{name}");
        let expected = match recording.exit_code {
            code @ ..0 => 128 - code,
            code => code,
        };
        assert_eq!(played.code.map(i64::from), Some(expected), "{name}");
        // One that was rejected, or whose server has gone, might have had more to say.
        let broken = broken(&lines);
        let new: Vec<_> = broken.iter().filter(|rule| !known(&recording).contains(rule)).collect();
        assert!(new.is_empty(), "{name}: {new:?}");
        let (before, _) = rows(&transcript::lines(&recording.path).unwrap());
        for (state, count) in [
            ("Passed", tally.totals.passed),
            ("Failed", tally.totals.failed),
            ("Skipped", tally.totals.skipped),
            ("Error", tally.totals.error),
            ("Timeout", tally.totals.timeout),
            ("Cancelled", tally.totals.cancelled),
        ] {
            let recorded = before.iter().filter(|row| is_state(row, state)).count() as u64;
            // One that a later attempt in the same process replaces is not counted.
            let replaced = name.ends_with(".attempts") && count < recorded;
            assert!(count == recorded || replaced, "{name}: {state}: {count}, recorded {recorded}");
        }
    }
}

#[test]
fn lists_and_helps_can_be_played_too() {
    for recording in listed().into_iter().filter(|recording| !recording.is_run()) {
        let mode = if recording.command.contains("--help") { Mode::Help } else { Mode::Discover };
        let (memory, played, tally) = played(&recording, mode, None);
        assert_eq!(counts(&rows(&memory.lines()).0), recording.frames, "{}", recording.name());
        assert_eq!(played.code, Some(0));
        assert_eq!(tally.discovered > 0, mode == Mode::Discover);
        assert!(tally.violations.is_empty(), "{}: {tally:?}", recording.name());
    }
}

#[test]
fn the_execution_id_is_the_servers_everywhere() {
    let given = "0123456789abcdef0123456789abcdef";
    for recording in listed().into_iter().filter(Listed::is_run) {
        let (memory, _, _) = played(&recording, Mode::Run, Some(given));
        let (again, _) = rows(&memory.lines());
        let ids = again.iter().flat_map(|row| &row.details).filter(|line| line.contains(" ExecutionId = "));
        for line in ids {
            assert!(line.ends_with(&format!("\"{given}\"")), "{}: {line}", recording.name());
        }
        let (before, _) = rows(&lines(&recording.path).unwrap());
        let without = |rows: &[Row]| -> Vec<String> {
            let lines =
                rows.iter().filter(|row| row.dir.as_deref() == Some("h2s")).flat_map(|row| &row.details);
            let others = lines.filter(|line| !line.contains(" ExecutionId = ")).cloned();
            others.collect()
        };
        // Nothing else is another. Ids of the same length: not even offsets are.
        let mut all = [without(&before), without(&again)];
        for lines in &mut all {
            lines.sort();
        }
        assert_eq!(all[0], all[1], "{}", recording.name());
    }
}
