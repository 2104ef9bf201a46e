//! `convert`, `report` and `diff` on recordings of Java programs: equal to the outputs of `jvm report`.

use std::fs;
use std::path::PathBuf;

use runtap_jvm::report::ReportKind;
use runtap_testkit::{Finished, Skip, require, shared_data, shared_dir};

use crate::common::{folder, runtap};

/// Returns the paths of two recordings of the original agents.
fn recordings() -> Result<[String; 2], Skip> {
    shared_data("bytefrog/v1_basic.json")?;
    let folder = shared_dir().expect("it was read").join("data/bytefrog");
    Ok(["v1_basic", "v1_pause"].map(|name| folder.join(name).display().to_string()))
}

/// Returns a recording of a .NET program.
fn nettrace(folder: &tempfile::TempDir) -> Result<PathBuf, Skip> {
    let file = folder.path().join("x.nettrace");
    fs::write(&file, shared_data("nettrace/net10/cpu-spin.nettrace.zst")?).unwrap();
    Ok(file)
}

fn run(words: &[&str]) -> Finished {
    runtap(words.iter().copied())
}

#[track_caller]
fn are_equal(one: &[&str], other: &[&str]) {
    let (one, other) = (run(one), run(other));
    assert!(!one.stdout.is_empty(), "{one}");
    assert_eq!((one.code(), one.text(), &one.stderr), (other.code(), other.text(), &other.stderr));
}

#[test]
fn inspect_shows_the_messages_of_a_recording() {
    let [basic, _] = require!(recordings());
    let text = run(&["inspect", &basic]);
    text.expect_code(0);
    let hello = "v1_basic.ctl    a2h          2  message hello (0x0000)";
    assert!(text.text().contains(hello), "{text}");
    let document = run(&["inspect", &basic, "--format", "json"]).json();
    assert_eq!(document["schema"], "runtap.transcript/1");
    assert_eq!((&document["connections"], &document["undecoded"]), (&2.into(), &0.into()));
    let rows = document["rows"].as_array().unwrap();
    let entries = rows.iter().filter(|row| row["name"] == "methodEntry").count();
    let shown = text.text().matches("message methodEntry (0x0014)").count();
    assert_eq!((entries, shown), (2542, 2542));
    let wrong = run(&["inspect", &format!("{basic}.ctl.h2a.bin.gz")]);
    wrong.expect_code(2);
}

#[test]
fn files_are_those_of_jvm_report() {
    let [basic, pause] = require!(recordings());
    let dir = folder();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (one, other) = (file("one"), file("other"));
    for (recording, view) in [(&basic, "time"), (&basic, "calls"), (&format!("{pause}#..1s"), "time")] {
        for format in ["speedscope", "folded", "flamegraph", "pprof", "chrome", "perfetto", "firefox"] {
            let verbs = [(vec!["convert"], &one), (vec!["jvm", "report"], &other)];
            let made = verbs.map(|(verb, to)| {
                let _ = fs::remove_file(to);
                let words = [recording.as_str(), "--to", format, "--view", view, "-o", to];
                let made = run(&[verb, words.to_vec()].concat());
                let shown = made.stdout.clone();
                let shown = String::from_utf8_lossy(&shown).replace(to, "FILE");
                (shown, made.stderr, fs::read(to).ok())
            });
            assert_eq!(made[0], made[1], "{recording} {format} {view}");
        }
    }
    assert!(run(&["convert", &basic, "--to", "folded", "-o", "-"]).text().contains("demo.Counts.fib(int)"));
    are_equal(
        &["convert", &basic, "--to", "folded", "--merge-threads", "-o", "-"],
        &["jvm", "report", &basic, "--to", "folded", "--merge-threads", "-o", "-"],
    );
}

#[test]
fn reports_are_those_of_jvm_report() {
    let [basic, _] = require!(recordings());
    for kind in ReportKind::ALL.map(ReportKind::name) {
        for more in [&["-n", "2"][..], &["--format", "json"], &["--format", "json", "-n", "3"]] {
            let words = [&[&*basic, kind], more].concat();
            are_equal(&[&["report"], &*words].concat(), &[&["jvm", "report"], &*words].concat());
        }
    }
}

#[test]
fn differences_are_those_of_jvm_report() {
    let [before, after] = require!(recordings());
    let part = format!("{before}#..40ms");
    for (of_diff, of_report) in [
        (&[][..], &[][..]),
        (&["--inclusive"], &["--sort", "total"]),
        (&["--view", "calls", "-n", "3"], &["--sort", "calls", "-n", "3"]),
        (&["--view", "time", "--format", "json"], &["--sort", "self", "--format", "json"]),
        (&["--format", "json", "-n", "2"], &["--format", "json", "-n", "2"]),
    ] {
        for before in [&*before, &*part] {
            are_equal(
                &[&["diff", before, &after], of_diff].concat(),
                &[&["jvm", "report", &after, "--diff", before], of_report].concat(),
            );
        }
    }
    // Each line has the calls before and after.
    let folded = run(&["diff", &part, &before, "--view", "calls", "--absolute", "--to", "folded", "-o", "-"]);
    let [calls_before, calls_after] = [2, 1].map(|column| -> u64 {
        let values = folded.expect_code(0).text().lines().map(|line| line.rsplit(' ').nth(column - 1));
        values.map(|value| value.unwrap().parse::<u64>().unwrap()).sum()
    });
    assert!(calls_before > 0 && calls_before < 2542, "{calls_before}");
    assert_eq!(calls_after, 2542);
}

#[test]
fn a_recording_has_the_views_and_reports_of_its_kind() {
    let [basic, _] = require!(recordings());
    let dir = folder();
    let file = require!(nettrace(&dir));
    let file = file.to_str().unwrap();
    let fails = |words: &[&str]| run(words).expect_code(2).stderr.clone();

    let unknown = fails(&["report", &basic, "gc"]);
    let listed = "error: invalid value 'gc' for '<KIND>'\n  [possible values: methods, tree, exceptions, segments, slow, \
                  threads, classes, losses]\n";
    assert!(unknown.starts_with(listed), "{unknown}");
    let unknown = fails(&["report", file, "tree"]);
    let listed = "error: invalid value 'tree' for '<KIND>'\n  [possible values: cpu, gc, alloc, exceptions, contention, \
                  jit, threadpool, http, events, loss, counters, logs, heap]\n";
    assert!(unknown.starts_with(listed), "{unknown}");
    assert!(unknown.ends_with("\nFor more information, try '--help'.\n"), "{unknown}");

    let view = fails(&["convert", &basic, "--to", "folded", "--view", "cpu"]);
    assert!(view.contains("no view 'cpu'; valid values: time, calls"), "{view}");
    for verb in [&["convert", file, "--to", "folded"], &["diff", file, file, "-n1"]] {
        let view = fails(&[verb, &["--view", "calls"][..]].concat());
        assert!(view.contains("no view 'calls'; valid values: thread-time, cpu, alloc"), "{view}");
    }
    let stream = fails(&["convert", &basic, "--to", "nettrace"]);
    assert!(stream.contains("choose a format with --to (speedscope"), "{stream}");
    let kinds = fails(&["diff", &basic, file]);
    assert!(kinds.contains("v1_basic is a Java recording, and "), "{kinds}");
    assert!(kinds.contains("x.nettrace is a .NET recording: compare recordings of one kind"), "{kinds}");
}
