//! `runtap test` with the history of earlier runs, and with a configuration file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Finished, RealRuntime, Skip, run, test_application};
use serde_json::Value;

use crate::common::{command, folder};

/// Runs `runtap test` in a directory with its own history, on applications of .NET 10.
struct Trial {
    directory: tempfile::TempDir,
    dotnet: PathBuf,
    modules: Vec<PathBuf>,
}

impl Trial {
    /// Creates a trial with these applications, each given by its folder and its name.
    fn of(modules: &[(&str, &str)]) -> Option<Self> {
        let trial = || {
            let modules: Result<Vec<_>, Skip> =
                modules.iter().map(|(folder, name)| Ok(test_application(folder)?.join(name))).collect();
            let dotnet = RealRuntime::available(10)?.root().join("dotnet");
            Ok(Self { directory: folder(), dotnet, modules: modules? })
        };
        trial().map_err(|skip: Skip| skip.report()).ok()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, options: &[&str], application: &[&str]) -> Command {
        let mut command = command(["test"]);
        command.args(&self.modules).arg("--dotnet").arg(&self.dotnet).args(options).current_dir(self.path());
        command.arg("--history").arg(self.path().join("history"));
        command.args(["--format", "json", "--"]).args(application).env("BARE_SCALE", "20");
        command
    }

    /// Reduces the recorded start-up times to almost zero, since they depend on other load.
    fn forget_starts(&self) {
        for entry in fs::read_dir(self.path().join("history")).unwrap() {
            let path = entry.unwrap().path();
            let known = fs::read_to_string(&path).unwrap();
            let forgotten = known.lines().map(|line| {
                let mut line: Value = serde_json::from_str(line).unwrap();
                if let Some(module) = line.get_mut("module") {
                    module["start_us"] = 1_000.into();
                }
                format!("{line}\n")
            });
            fs::write(&path, forgotten.collect::<String>()).unwrap();
        }
    }

    fn run(&self, options: &[&str], application: &[&str]) -> Finished {
        run(self.command(options, application))
    }
}

fn lines(told: &str) -> Vec<Value> {
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the sorted ids of finished tests.
fn uids(lines: &[Value]) -> Vec<String> {
    let results = lines.iter().filter(|line| line["type"] == "test-result");
    let mut uids: Vec<_> = results.map(|line| line["uid"].as_str().unwrap().to_owned()).collect();
    uids.sort_unstable();
    uids
}

/// Returns the modules in the order of their handshakes.
fn order(lines: &[Value]) -> Vec<String> {
    let starts = lines.iter().filter(|line| line["type"] == "module-start");
    starts.map(|line| line["module"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

const SIX: [(&str, &str); 6] = [
    ("six", "alpha.dll"),
    ("six", "bravo.dll"),
    ("six", "charlie.dll"),
    ("six", "delta.dll"),
    ("six", "echo.dll"),
    ("six", "foxtrot.dll"),
];

#[test]
fn the_longest_modules_come_first_once_they_are_known() {
    let Some(trial) = Trial::of(&SIX) else { return };
    let first = lines(trial.run(&["-j", "1"], &[]).expect_code(2).text());
    assert_eq!(order(&first)[0], "alpha.dll", "nothing is known: as they were given");
    trial.forget_starts();
    let again = lines(trial.run(&["-j", "1"], &[]).expect_code(2).text());
    let order = order(&again);
    // The others take at most a second, so start-up times determine their order.
    assert_eq!(order[..2], ["foxtrot.dll", "echo.dll"], "{order:?}");
    assert_eq!(uids(&first), uids(&again));
}

#[test]
fn a_slow_module_is_split_when_that_is_asked_for() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "slow:12:1500"];
    let whole = lines(trial.run(&["-j", "4"], &suite).expect_code(0).text());
    let pids = |lines: &[Value]| lines.iter().filter(|line| line["type"] == "module-start").count();
    assert_eq!((uids(&whole).len(), pids(&whole)), (12, 1));
    let unasked = lines(trial.run(&["-j", "4"], &suite).expect_code(0).text());
    assert_eq!(pids(&unasked), 1, "tests of one module may not bear each other at the same time");
    trial.forget_starts();
    let split = lines(trial.run(&["-j", "4", "--split"], &suite).expect_code(0).text());
    assert!(pids(&split) > 1, "{split:#?}");
    assert_eq!(uids(&split), uids(&whole), "every test once");
    let end = split.last().unwrap();
    assert_eq!((&end["type"], &end["total"]), (&"run-end".into(), &12.into()));
}

#[test]
fn failed_tests_are_run_again_until_there_are_none() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "flaky:1"];
    let report = ["--rerun", "--report", "jsonl=r.jsonl"];
    let older = trial.path().join("r.jsonl");
    fs::write(&older, "of an older run").unwrap();
    trial.run(&report, &suite).expect_code(5).says("no earlier run").says("--history DIR");
    assert_eq!(fs::read_to_string(&older).unwrap(), "of an older run", "nothing was run");
    let first = lines(trial.run(&[], &suite).expect_code(2).text());
    assert_eq!(uids(&first).len(), 3);
    let again = lines(trial.run(&["--rerun", "latest"], &suite).expect_code(2).text());
    assert_eq!(uids(&again), ["flaky-1", "never"]);
    // With an additional filter, only tests that match both.
    let one = lines(trial.run(&["--rerun", "--filter", "uid = never"], &suite).expect_code(2).text());
    assert_eq!(uids(&one), ["never"]);
    let steady = ["--suite", "fast:2"];
    let other = Trial::of(&[("orchard-2.5.2", "orchard.dll")]).unwrap();
    other.run(&[], &steady).expect_code(0);
    fs::write(other.path().join("r.jsonl"), "of an older run").unwrap();
    other.run(&report, &steady).expect_code(0).says("nothing to run again");
    assert_eq!(fs::read_to_string(other.path().join("r.jsonl")).unwrap(), "of an older run");
}

#[test]
fn broken_or_stopped_modules_are_rerun_completely() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "slow:4:2000"];
    trial.run(&["--timeout", "900ms"], &suite).expect_code(3);
    let again = lines(trial.run(&["--rerun"], &suite).expect_code(0).text());
    assert_eq!(uids(&again).len(), 4, "those that it did not come to, too");
    trial.run(&["--rerun"], &suite).expect_code(0).says("nothing to run again");
    trial.run(&[], &["--no-such-option"]).expect_code(5);
    let again = lines(trial.run(&["--rerun"], &suite).expect_code(0).text());
    assert_eq!(uids(&again).len(), 4);
}

#[test]
fn parts_by_time_together_contain_all_tests() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "slow:2:2500+fast:10"];
    trial.run(&[], &suite).expect_code(0);
    let file = fs::read_dir(trial.path().join("history")).unwrap().next().unwrap().unwrap().path();
    let history = fs::read(&file).unwrap();
    let mut parts = Vec::new();
    for part in ["timing:1/2", "timing:2/2"] {
        // Each machine has an equal history.
        fs::write(&file, &history).unwrap();
        parts.push(uids(&lines(trial.run(&["--partition", part], &suite).expect_code(0).text())));
    }
    let slow = |part: &[String]| part.iter().filter(|uid| uid.starts_with("slow")).count();
    assert_eq!((slow(&parts[0]), slow(&parts[1])), (1, 1), "{parts:?}");
    let all: BTreeSet<_> = parts.concat().into_iter().collect();
    assert_eq!((all.len(), parts.concat().len()), (12, 12));
}

#[test]
fn failures_in_quarantine_are_reported_but_do_not_count() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "flaky:1"];
    let told = lines(trial.run(&["--quarantine", "class = Flaky"], &suite).expect_code(0).text());
    let end = told.last().unwrap();
    assert_eq!(
        (&end["total"], &end["failed"], &end["quarantined"]),
        (&3.into(), &2.into(), &2.into()),
        "{end}"
    );
    let failed = told.iter().find(|line| line["uid"] == "never" && line["type"] == "test-result").unwrap();
    assert_eq!((&failed["state"], &failed["quarantined"]), (&"failed".into(), &true.into()));
    // One of two failing tests is not in quarantine.
    trial.run(&["--quarantine", "name = NeverPasses"], &suite).expect_code(2);
    trial.run(&["--quarantine", "name = NeverPasses", "--retries", "1"], &suite).expect_code(0);
}

#[test]
fn a_file_configures_runs_and_the_command_line_overrides_it() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let suite = ["--suite", "flaky:1"];
    let config = "[test]\nretries = 1\nreports = [{ format = 'junit', path = 'out/all.xml' }]\n\
        [test.profile.strict]\nflaky = 'fail'\nquarantine = ['name = NeverPasses']\n\
        [test.profile.patient]\nretries = 0\nquarantine = ['name = NeverPasses']\n\
        [[test.profile.patient.overrides]]\nfilter = 'uid = flaky-1'\nretries = 2\n";
    fs::write(trial.path().join("runtap.toml"), config).unwrap();
    let end = |told: &Finished| lines(told.text()).pop().unwrap();
    let usual = end(trial.run(&[], &suite).expect_code(2));
    assert_eq!((&usual["flaky"], &usual["failed"]), (&1.into(), &1.into()));
    assert!(fs::read_to_string(trial.path().join("out/all.xml")).unwrap().contains("flakyFailure"));
    trial.run(&["--profile", "strict"], &suite).expect_code(2);
    trial.run(&["--profile", "strict", "--flaky", "pass"], &suite).expect_code(0);
    let patient = end(trial.run(&["--profile", "patient"], &suite).expect_code(0));
    assert_eq!(
        (&patient["flaky"], &patient["retried"]),
        (&1.into(), &1.into()),
        "the other was not run again"
    );
    trial.run(&["--profile", "patient", "--retries", "0"], &suite).expect_code(2);
    trial.run(&["--profile", "strct"], &suite).expect_code(5).says("did you mean 'strict'?"); // typos: on purpose
    fs::write(trial.path().join("runtap.toml"), "[test]\nretry = 1").unwrap();
    trial
        .run(&[], &suite)
        .expect_code(5)
        .says("runtap.toml, line 2, column 1: unknown key 'retry'")
        .says("did you mean 'retries'?");
    // A limit in the file is disabled on the command line.
    fs::write(trial.path().join("runtap.toml"), "[test]\ntimeout-per-test = '100ms'").unwrap();
    let slow = ["--suite", "slow:1:30000"];
    assert_eq!(end(trial.run(&[], &slow).expect_code(2))["timeout"], 1);
    trial.run(&["--timeout-per-test", "none"], &slow).expect_code(0);
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let Some(trial) = Trial::of(&[("orchard-2.5.2", "orchard.dll")]) else { return };
    let summary = trial.path().join("summary.md");
    let mut command = command(["test"]);
    command.args(&trial.modules).arg("--dotnet").arg(&trial.dotnet).args([
        "--report",
        "github",
        "--no-history",
    ]);
    command.args(["--", "--suite", "flaky:1"]).env("GITHUB_STEP_SUMMARY", &summary);
    let told = run(command);
    let text = told.expect_code(2).text();
    assert!(text.contains("::error") && text.contains("NeverPasses"), "{text}");
    assert!(fs::read_to_string(summary).unwrap().contains("NeverPasses"));
}
