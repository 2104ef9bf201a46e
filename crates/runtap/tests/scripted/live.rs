//! Output while tests run, copies of the files that they leave, and options of `dotnet test`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use runtap_testkit::{Running, Signal, eventually, run};
use rustix::fs::OFlags;
use serde_json::Value;

use crate::harness::Test;
use crate::reports::Folder;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 11] = [
        ("what_applications_print_is_an_event", printed),
        ("characters_are_whole_however_they_come", characters),
        ("detailed_output_shows_what_a_good_application_prints", detailed),
        ("a_report_of_events_is_written_beside_the_lines", report_of_events),
        ("files_are_collected_by_application", collected),
        ("a_process_that_stays_after_its_session_is_ended", stays),
        ("who_does_not_heed_the_control_pipe_gets_a_signal", signalled),
        ("who_floods_has_no_more_time_than_others", overdue_in_a_flood),
        ("what_is_left_behind_and_floods_is_not_waited_for", left_behind),
        ("a_terminal_that_takes_nothing_holds_up_no_ctrl_c", stuck),
        ("options_of_dotnet_test_are_taken_or_explained", familiar),
    ];
    tests.map(|(name, test)| Test::new(format!("live::{name}"), test)).into()
}

const PRINTS: &str = "handshake\nstart\nstdout \"to all\\n\"\nstderr \"beware\\n\"\npass t1\nend\nexit 0";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns all text of a stream.
fn text_of(lines: &[Value], stream: &str) -> String {
    let of = lines.iter().filter(|line| line["type"] == "output" && line["stream"] == stream);
    of.map(|line| line["text"].as_str().unwrap()).collect()
}

fn printed() {
    let folder = Folder::new();
    let application = folder.application("talks", PRINTS);
    let told = folder.run(&[&application], &["--format", "json"]);
    let lines = lines(told.text());
    assert_eq!(
        (text_of(&lines, "stdout"), text_of(&lines, "stderr")),
        ("to all\n".into(), "beware\n".into())
    );
    let output = lines.iter().find(|line| line["type"] == "output").unwrap();
    assert_eq!(output["module"], application.to_str().unwrap());
}

fn characters() {
    let folder = Folder::new();
    // The output of a program that is not a test application is shown, too.
    let program = folder
        .script("prints", "for c in '\\303' '\\244' '\\360\\237' '\\246\\200' '\\342'; do printf $c; done");
    let told = folder.run(&[&program], &["--format", "json"]);
    assert_eq!(text_of(&lines(told.text()), "stdout"), "ä🦀\u{fffd}", "{told}");
}

fn detailed() {
    let folder = Folder::new();
    let application = folder.application("talks", PRINTS);
    let told = folder.run(&[&application], &["--output", "detailed"]);
    assert!(told.text().contains("standard output:\n    to all\n"), "{told}");
    assert!(told.text().contains("error output:\n    beware\n"), "{told}");
    let told = folder.run(&[&application], &[]);
    assert!(!told.text().contains("to all"), "{told}");
}

fn report_of_events() {
    let folder = Folder::new();
    let application = folder.application("talks", PRINTS);
    let told = folder.run(&[&application], &["--report", "jsonl=r.jsonl", "--report", "events"]);
    assert!(told.text().contains("passed: 1 test"), "{told}");
    let first = folder.text("r.jsonl");
    let kinds: Vec<_> = lines(&first).iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!((kinds.first().unwrap().as_str(), kinds.last().unwrap().as_str()), ("run-start", "run-end"));
    assert!(
        ["module-start", "output", "test-result", "module-end"]
            .iter()
            .all(|kind| kinds.iter().any(|it| it == kind))
    );
    assert_eq!(lines(&folder.text("test-results.jsonl")).len(), kinds.len());
    let told = folder.run(&[&application], &["--report", "jsonl=-"]);
    assert_eq!(lines(told.text()).last().unwrap()["passed"], 1);
    assert!(told.stderr.contains("passed: 1 test"), "{told}");
    let told = folder.run(&[&application], &["--report", "jsonl=-", "--report", "junit=-"]);
    assert_eq!(told.code(), Some(5), "{told}");
}

fn collected() {
    let folder = Folder::new();
    let log = folder.path("log.txt");
    fs::write(&log, "what happened").unwrap();
    let leaves = format!("handshake\nstart\npass t1\nartifact {}\nend\nexit 0", log.display());
    let applications = [folder.application("one", &leaves), folder.application("two", &leaves)];
    let told = folder.run(
        &[&applications[0], &applications[1]],
        &["--collect-artifacts", "--results-directory", "results", "--report", "junit=a.xml"],
    );
    assert!(told.stderr.contains("collected 2 files in results/test-artifacts"), "{told}");
    for name in ["one", "two"] {
        let copy = format!("results/test-artifacts/{name}/log.txt");
        assert_eq!(folder.text(&copy), "what happened");
        assert!(told.text().contains(&copy), "{told}");
    }
    fs::remove_file(&log).unwrap();
    let told = folder.run(&[&applications[0]], &["--collect-artifacts=kept"]);
    assert_eq!(told.code(), Some(0), "{told}");
    assert!(told.stderr.contains("not collected: "), "{told}");
}

fn signalled() {
    let folder = Folder::new();
    let deaf = folder.application("deaf", "handshake\ncontrol\nstart\nbegin t1\nawait cancel\nhang\n");
    let told = folder.run(&[&deaf], &["--timeout", "1s", "--grace", "50s", "--output", "detailed"]);
    let text = told.expect_code(3).text();
    assert!(text.contains("cancelled t1") && !text.contains("was killed"), "{told}");
}

fn stays() {
    let folder = Folder::new();
    let stays = folder.application("stays", "handshake\nstart\npass t1\nend\nhang\n");
    let told = folder.run(&[&stays], &["--exit-timeout", "200ms", "--timeout", "1h"]);
    assert!(
        told.expect_code(3).text().contains("it did not exit within 0.2 s after its last session"),
        "{told}"
    );
    assert!(told.text().contains("1 passed"), "{told}");
    let ends = folder.application("ends", "handshake\nstart\npass t1\nend\nexit 0\n");
    folder.run(&[&ends], &["--exit-timeout", "none"]).expect_code(0);
}

/// Each piece becomes a line of JSON, which is slower than the program's output.
const AS_JSON: [&str; 2] = ["--format", "json"];

fn overdue_in_a_flood() {
    let folder = Folder::new();
    let floods = "ignore sigint\nhandshake\nstart\nbegin t1\npass t1\nbegin t2\n\
        if run\nspawn one\nspawn other\nsleep 30s\nfi\npass t2\nend\n\
        part one\nflood stdout 2000MB\npart other\nflood stderr 2000MB\n";
    let floods = folder.application("floods", floods);
    let options = ["--timeout-per-test", "2s", "--grace", "300ms"];
    let told = folder.run(&[&floods], &[&AS_JSON[..], &options].concat());
    let lines = lines(told.expect_code(2).text());
    let state = |uid: &str| lines.iter().find(|line| line["uid"] == uid && line["state"].is_string());
    assert_eq!(state("t1").unwrap()["state"], "passed");
    assert_eq!(state("t2").unwrap()["state"], "timeout");
}

fn left_behind() {
    let folder = Folder::new();
    let leaves = folder.script("leaves", "timeout 100 yes &");
    let started = Instant::now();
    let told = folder.run(&[&leaves], &AS_JSON);
    assert!(told.text().contains("still holds its output open 2 s after its exit"));
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
}

fn stuck() {
    let folder = Folder::new();
    let mut make = Command::new("mkfifo");
    make.arg(folder.path("stuck"));
    run(make).expect_code(0);
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let mut stuck = fs::File::options();
    let mut stuck = stuck.read(true).write(true).custom_flags(no_wait).open(folder.path("stuck")).unwrap();
    let start = "handshake\ncontrol\nignore sigint\nstart\nbegin t2\npass t1\nawait cancel\n";
    for (times, how) in [(1, "cancelled t2\nend\nexit 3\n"), (2, "hang\n")] {
        let application = folder.application(&format!("waits-{times}"), &format!("{start}{how}"));
        let tested = folder.command(&[&application], &["--output", "detailed", "--grace", "5m"]);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>stuck"]).arg(tested.get_program()).args(tested.get_args());
        let shown = format!("shown-{times}");
        command.current_dir(folder.path(".")).stdout(fs::File::create(folder.path(&shown)).unwrap());
        while stuck.write(b" ").is_ok() {}
        let running = Running::start_as_it_is(command);
        eventually("a test is shown", || folder.text(&shown).contains("passed t1").then_some(()));
        running.signal(Signal::INT);
        eventually("the application has ended", || {
            // Two signals before the first is handled would be merged.
            thread::sleep(Duration::from_millis(200));
            let ended = !is_running(&application);
            if times > 1 && !ended {
                running.signal(Signal::INT);
            }
            ended.then_some(())
        });
        while stuck.read(&mut [0; 4096]).is_ok() {}
        running.wait().expect_code(3);
        assert!(folder.text(&shown).contains("cancelled t2"), "{}", folder.text(&shown));
    }
}

/// Returns whether a process exists that was started by this path.
fn is_running(program: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap();
    let mut lines = processes.filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    lines.any(|line| line.starts_with(program.as_os_str().as_bytes()))
}

fn familiar() {
    let folder = Folder::new();
    let application = folder.application("talks", PRINTS);
    let told = folder.run(&[&application], &["--no-build", "--nologo", "-v", "minimal", "-bl:x"]);
    assert_eq!(told.code(), Some(0), "{told}");
    assert!(told.stderr.contains("ignoring --no-build: nothing is built here"), "{told}");
    for (options, instead) in [
        (&["-c", "Release"][..], "bin/Release"),
        (&["--project", "Shop.Tests.csproj"], "bin/Release"),
        (&["--logger", "trx"], "--report trx=FILE"),
    ] {
        let told = folder.run(&[&application], options);
        assert_eq!(told.code(), Some(5), "{told}");
        assert!(told.stderr.contains(instead), "{told}");
    }
    assert_eq!(folder.run(&[], &["-?"]).code(), Some(0));
}
