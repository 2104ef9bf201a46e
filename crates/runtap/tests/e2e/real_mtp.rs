//! `runtap mtp` on real applications: recorded as the server and as a proxy between the real `dotnet test` or `runtap
//! test` and the application, checked, and replayed to both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use runtap_testkit::{
    DotnetTest, Finished, RealRuntime, Running, Signal, Skip, eventually, run, shared_data, shared_dir,
    test_application,
};
use serde_json::Value;

use crate::common::{command, folder, json};

/// The outcomes of orchard's suite `core`.
const CORE: &str = "11 passed, 8 failed, 3 error, 2 timed out, 1 cancelled, 2 skipped";

fn or_skip(test: impl FnOnce() -> Result<(), Skip>) {
    if let Err(skip) = test() {
        skip.report();
    }
}

/// Returns `runtap mtp record` of the newest orchard with these options and suite.
fn record(file: &Path, options: &[&str], suite: &str) -> Result<std::process::Command, Skip> {
    let runtime = RealRuntime::available(10)?;
    let module = test_application("orchard-2.5.2")?.join("orchard.dll");
    let mut command = command(["mtp", "record", "-o"]);
    command.arg(file).arg("--dotnet").arg(runtime.root().join("dotnet")).args(options);
    command.arg("--").arg(module).args(["--suite", suite]);
    Ok(command)
}

/// Returns the number of frames from the application for each id, in the format of `INDEX.tsv`.
fn counts(file: &Path) -> String {
    let document = inspected(file);
    assert_eq!(document["undecoded"], 0);
    let mut counts = BTreeMap::<u64, u64>::new();
    for row in document["rows"].as_array().unwrap().iter().filter(|row| row["dir"] == "h2s") {
        *counts.entry(row["id"].as_u64().unwrap()).or_default() += 1;
    }
    counts.iter().map(|(id, count)| format!("{id}x{count}")).collect::<Vec<_>>().join(" ")
}

fn inspected(file: &Path) -> Value {
    let document = json(["mtp", "inspect", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(document["schema"], "runtap.mtp-inspect/1");
    document
}

#[track_caller]
fn is_clean(file: &Path) {
    let document = json(["mtp", "lint", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!((&document["errors"], &document["warnings"]), (&0.into(), &0.into()), "{document:#}");
}

/// Returns the recordings in a folder, sorted by name.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    files.sort();
    files
}

#[test]
fn an_application_without_a_server_is_recorded() {
    or_skip(|| {
        let folder = folder();
        let file = folder.path().join("talk.jsonl");
        let told = run(record(&file, &[], "core")?);
        told.expect_code(2).says(CORE).says("2 connections");
        is_clean(&file);
        // As in the shared table for `orchard-2.5.2.run-ide.jsonl` (28 tests begin, 27 end), plus the control pipe.
        assert_eq!(counts(&file), "6x55 8x2 9x1 13x1");
        let end = inspected(&file)["rows"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&end["what"], &end["summary"]), (&"exit".into(), &"exit code 2".into()));
        let told = run(record(&file, &["--format", "json"], "fast:3")?);
        let document = told.expect_code(0).json();
        assert_eq!(document["schema"], "runtap.mtp-record/1");
        assert_eq!((&document["tests"]["passed"], &document["exit_code"]), (&3.into(), &0.into()));
        Ok(())
    });
}

#[test]
fn runs_of_runtap_test_are_recorded_with_the_control_pipe() {
    or_skip(|| {
        let folder = folder();
        let module = folder.path().join("a module");
        let file = folder.path().join("talk-%p.jsonl");
        run(record(&file, &["--write-module", module.to_str().unwrap()], "core")?).expect_code(0);
        let tested = run(command([Path::new("test"), &module]));
        assert!(tested.expect_code(2).text().contains(CORE), "{tested}");
        let files = recordings(folder.path());
        assert_eq!(files.len(), 1, "{files:?}");
        is_clean(&files[0]);
        assert_eq!(counts(&files[0]), "6x55 8x2 9x1 13x1");
        // Ctrl-C is forwarded over the control pipe, through runtap's.
        let mut command = record(&file, &["--write-module", module.to_str().unwrap()], "slow:1000:20")?;
        command.env("TMPDIR", folder.path());
        run(command).expect_code(0);
        let shown = folder.path().join("shown");
        let mut test = crate::common::command([Path::new("test"), &module]);
        test.args(["--output", "detailed"]).stdout(fs::File::create(&shown).unwrap());
        let running = Running::start_as_it_is(test);
        // By then its control pipe has long been connected.
        eventually("tests have passed", || {
            (fs::read_to_string(&shown).unwrap().matches("passed").count() > 10).then_some(())
        });
        running.signal(Signal::INT);
        running.wait().expect_code(3);
        let files = recordings(folder.path());
        let cancelled = |file: &PathBuf| {
            let document = inspected(file);
            document["rows"].as_array().unwrap().iter().any(|row| row["name"] == "ServerControlMessage")
        };
        assert!(files.iter().any(cancelled));
        Ok(())
    });
}

/// Runs the real `dotnet test` on a module; returns its output and the recording.
fn dotnet_test(folder: &Path, module: &str) -> Result<Finished, Skip> {
    let mut command = DotnetTest::available()?.command(folder, module);
    command.args(["--no-progress", "--no-ansi"]);
    Ok(run(command))
}

#[test]
fn the_real_dotnet_test_is_recorded_from_the_middle_and_played_back_to() {
    or_skip(|| {
        let folder = folder();
        let module = folder.path().join("recorded");
        let file = folder.path().join("talk.jsonl");
        run(record(&file, &["--write-module", module.to_str().unwrap()], "core")?).expect_code(0);
        let told = dotnet_test(folder.path(), "recorded")?;
        let sums = ["total: 27", "failed: 14", "succeeded: 11", "skipped: 2"];
        assert!(sums.iter().all(|sum| told.expect_code(2).text().contains(sum)), "{told}");
        is_clean(&file);
        // As in the shared folder's table for `sdk.run.orchard-2.5.2.jsonl`.
        assert_eq!(counts(&file), "6x27 8x2 9x1");
        let played = folder.path().join("played");
        let words = ["mtp", "replay", file.to_str().unwrap(), "--fast", "--write-module"];
        run(command(words.map(Path::new).iter().chain(&[&*played]))).expect_code(0);
        let again = dotnet_test(folder.path(), "played")?;
        assert!(sums.iter().all(|sum| again.expect_code(2).text().contains(sum)), "{again}");
        // Requests that were not recorded fail.
        let listed = run(command([Path::new("test"), &played, Path::new("--list-tests")]));
        assert_ne!(listed.code(), Some(0));
        Ok(())
    });
}

#[test]
fn a_tree_of_processes_is_one_recording() {
    or_skip(|| {
        let folder = folder();
        let (file, module) = (folder.path().join("talk.jsonl"), folder.path().join("recorded"));
        let mut command = record(&file, &["--write-module", module.to_str().unwrap()], "flaky:1")?;
        command.args(["--again", "2", "--watch"]);
        run(command).expect_code(0);
        let sums = "failed: 3 tests, 2 passed, 1 failed, 1 flaky, 3 retried";
        let told = run(crate::common::command([Path::new("test"), &module]));
        assert!(told.expect_code(2).text().contains(sums), "{told}");
        is_clean(&file);
        // An orchestrator, and a controller and a test host for each attempt; each with a control pipe.
        assert_eq!(inspected(&file)["connections"], 14);
        let played = folder.path().join("played");
        let words = ["mtp", "replay", file.to_str().unwrap(), "--fast", "--write-module"];
        run(crate::common::command(words.map(Path::new).iter().chain(&[&*played]))).expect_code(0);
        let again = run(crate::common::command([Path::new("test"), &played]));
        assert!(again.expect_code(2).text().contains(sums), "{again}");
        Ok(())
    });
}

#[test]
fn signals_reach_the_application() {
    or_skip(|| {
        let folder = folder();
        let file = folder.path().join("talk.jsonl");
        let running = Running::start(record(&file, &[], "slow:1000:20")?);
        let results = || fs::read_to_string(&file).unwrap_or_default().matches("TestResultMessages").count();
        eventually("tests have run", || (results() > 4).then_some(()));
        running.signal(Signal::TERM);
        let told = running.wait();
        assert_ne!(told.code(), Some(0), "{told}");
        let document = json(["mtp", "inspect", file.to_str().unwrap(), "--format", "json"]);
        assert_eq!(document["rows"].as_array().unwrap().last().unwrap()["what"], "exit");
        Ok(())
    });
}

/// Returns the number of results sent by the application, by state.
fn recorded_results(file: &Path) -> BTreeMap<String, u64> {
    let mut states = BTreeMap::new();
    for row in inspected(file)["rows"].as_array().unwrap().iter().filter(|row| row["id"] == 6) {
        for field in row["fields"].as_array().unwrap().iter().filter(|field| field[0] == 3 || field[0] == 4) {
            for test in field[2].as_array().unwrap() {
                let state = test.as_array().unwrap().iter().find(|field| field[1] == "State").unwrap();
                let word = match state[2].as_u64().unwrap() {
                    1 => "passed",
                    2 => "skipped",
                    3 => "failed",
                    4 => "error",
                    5 => "timeout",
                    6 => "cancelled",
                    // A test has started.
                    7 => continue,
                    other => panic!("{other}"),
                };
                *states.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    states
}

#[test]
fn recordings_of_other_servers_are_replayed_to_runtap_test() {
    or_skip(|| {
        let index = String::from_utf8(shared_data("mtp/transcripts/INDEX.tsv")?).unwrap();
        let transcripts = shared_dir().unwrap().join("data/mtp/transcripts");
        let folder = folder();
        let mut played = 0;
        for row in index.lines().skip(1) {
            let columns: Vec<_> = row.split('\t').collect();
            let [file, _, _, words, connections, exit_code, ..] = columns[..] else { panic!("{row}") };
            if words.contains("--help") || words.contains("--list-tests") || connections == "0" {
                continue;
            }
            let (path, module) = (transcripts.join(file), folder.path().join(format!("module-{played}")));
            let write = ["mtp", "replay", path.to_str().unwrap(), "--fast", "--write-module"];
            run(command(write.map(Path::new).iter().chain(&[&*module]))).expect_code(0);
            let told = run(command(["test", module.to_str().unwrap(), "--format", "json"]));
            let text = told.text();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let mut results = BTreeMap::new();
            for line in lines.filter(|line| line["type"] == "test-result") {
                *results.entry(line["state"].as_str().unwrap().to_owned()).or_default() += 1;
            }
            assert_eq!(results, recorded_results(&path), "{file}: {told}");
            // Recorded failures fail again, and so does one success: a process that exits with 0 during a test.
            let fails = exit_code != "0" || file.contains(".exit-0.");
            assert_eq!(told.code() != Some(0), fails, "{file}: {told}");
            assert!(!text.contains("MTP017"), "{file}: the ExecutionId is another one: {text}");
            played += 1;
        }
        assert!(played >= 40, "{played}");
        Ok(())
    });
}
