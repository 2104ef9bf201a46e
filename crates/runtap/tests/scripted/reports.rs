//! Reports of `runtap test`: their contents, their location, and texts that must not break out of them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Finished, Running, Signal, eventually, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::Test;

pub(crate) fn all() -> Vec<Test> {
    let tests: [(&str, fn()); 12] = [
        ("classes_are_those_that_the_application_lists", classes_are_listed),
        ("an_application_that_lists_nothing_is_reported_all_the_same", nothing_listed),
        ("ids_that_are_names_tell_the_class_at_once", classes_of_ids),
        ("files_of_a_test_are_with_it", files_of_tests),
        ("ctrl_c_shows_in_every_report", interrupted),
        ("a_run_that_was_given_up_names_what_was_not_run", given_up),
        ("a_module_that_crashed_shows_in_every_report", crashed),
        ("mistakes_are_reported_before_a_program_is_started", mistakes),
        ("a_report_replaces_a_file_and_nothing_else", replaced),
        ("standard_output_takes_one_report", to_stdout),
        ("no_test_commands_a_build_server", no_commands),
        ("the_configuration_has_reports_for_github", configured),
    ];
    tests.map(|(name, test)| Test::new(format!("reports::{name}"), test)).into()
}

/// A folder with applications.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("runtap-scripted-").tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Creates an application that plays this scenario.
    pub(crate) fn application(&self, name: &str, scenario: &str) -> PathBuf {
        let program = self.path(name);
        symlink(std::env::current_exe().unwrap(), &program).unwrap();
        fs::write(self.path(&format!("{name}.mtp")), scenario).unwrap();
        program
    }

    /// Creates a program that is not a test application.
    pub(crate) fn script(&self, name: &str, lines: &str) -> PathBuf {
        let program = self.path(name);
        fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// Returns `runtap test` of these applications, in this folder.
    pub(crate) fn command(&self, applications: &[&Path], options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
        command.current_dir(self.0.path()).arg("test").args(applications).args(["-j", "1", "--no-history"]);
        command.args(options).env_remove("GITHUB_STEP_SUMMARY").env_remove("GITHUB_WORKSPACE");
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, applications: &[&Path], options: &[&str]) -> Finished {
        run(self.command(applications, options))
    }
}

/// All report formats that are files.
const FILE_REPORTS: [&str; 8] = [
    "--report",
    "junit=r.xml",
    "--report",
    "trx=r.trx",
    "--report",
    "ctrf=r.json",
    "--report",
    "html=r.html",
];

const PASSES: &str = "handshake\nstart\npass t1\nend\n";

fn classes_are_listed() {
    let folder = Folder::new();
    let shop = "handshake\nstart\nif discover\n\
        discover 1a2b name=Adds namespace=Shop.Tests type=Cart+Inner method=Adds file=/src/Cart.cs line=7 trait=Owner=ann\n\
        else\npass 1a2b name=Adds\npass 9z name=\"made up as it runs\"\nfi\nend\n";
    let shop = folder.application("shop", shop);
    folder.run(&[&shop], &FILE_REPORTS).expect_code(0);
    let junit = folder.text("r.xml");
    assert!(junit.contains("<testsuite name=\"Shop.Tests.Cart+Inner\" tests=\"1\""), "{junit}");
    assert!(junit.contains("<testcase name=\"Adds\" classname=\"Shop.Tests.Cart+Inner\""), "{junit}");
    assert!(junit.contains("<property name=\"trait.Owner\" value=\"ann\"/>"), "{junit}");
    assert!(junit.contains("<testcase name=\"made up as it runs\" classname=\"shop\""), "{junit}");
    let trx = folder.text("r.trx");
    assert!(trx.contains("className=\"Shop.Tests.Cart+Inner\" name=\"Adds\""), "{trx}");
    let ctrf: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    let test = &ctrf["results"]["tests"][0];
    assert_eq!(
        (&test["suite"][1], &test["filePath"]),
        (&"Shop.Tests.Cart+Inner".into(), &"/src/Cart.cs".into())
    );
    assert!(folder.text("r.html").contains("Shop.Tests.Cart+Inner"));
    // Known from the beginning, if the tests were listed for a filter.
    let told = folder.run(&[&shop], &["--filter", "class = Cart+Inner", "--output", "detailed"]);
    assert!(told.expect_code(0).text().contains("passed Shop.Tests.Cart+Inner.Adds"), "{told}");
}

fn nothing_listed() {
    let folder = Folder::new();
    let dies = "handshake\nif discover\nkill SIGKILL\nfi\nstart\npass 1a2b name=Adds\nend\n";
    let dies = folder.application("dies", dies);
    let told = folder.run(&[&dies], &FILE_REPORTS);
    told.expect_code(0).says("did not list its tests");
    assert!(folder.text("r.xml").contains("<testcase name=\"Adds\" classname=\"dies\""));
    // An application that hangs while listing costs time, but has no other effect.
    let hangs = "handshake\nif discover\nhang\nfi\nstart\npass 1a2b name=Adds\nend\n";
    let hangs = folder.application("hangs", hangs);
    let told = folder.run(&[&hangs], &["--report", "junit=h.xml", "--start-timeout", "3s"]);
    told.expect_code(0).says("did not list its tests");
    assert!(folder.text("h.xml").contains("errors=\"0\""));
}

fn classes_of_ids() {
    let folder = Folder::new();
    let nunit = "handshake\nstart\nfail Shop.CartTests.Adds(1) name=Adds(1)\nend\nexit 2\n";
    let nunit = folder.application("nunit", nunit);
    let told = folder.run(&[&nunit], &[]);
    assert_eq!(told.expect_code(2).text().matches("Shop.CartTests.Adds(1)").count(), 2, "{told}");
    // Only the list has the name.
    folder.run(&[&nunit], &["--report", "junit=r.xml"]).expect_code(2);
    assert!(folder.text("r.xml").contains("<testcase name=\"Adds(1)\" classname=\"Shop.CartTests\""));
    let told = folder.run(&[&nunit], &["--format", "json"]);
    let lines: Vec<Value> = told.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.iter().find(|line| line["type"] == "test-result").unwrap();
    assert_eq!((&result["class"], &result["method"]), (&"Shop.CartTests".into(), &"Adds".into()));
}

fn files_of_tests() {
    let folder = Folder::new();
    let left = "handshake\nstart\npass t1 name=Draws stdout=drawn\nartifact /out/picture.png test=t1 test-name=Draws\n\
        pass t2\nartifact /out/lost.png test=t9\nartifact /out/coverage.xml\nend\n";
    let left = folder.application("left", left);
    folder.run(&[&left], &FILE_REPORTS).expect_code(0);
    let junit = folder.text("r.xml");
    assert!(junit.contains("<system-out>drawn\n[[ATTACHMENT|/out/picture.png]]\n</system-out>"), "{junit}");
    assert_eq!(junit.matches("ATTACHMENT").count(), 1, "{junit}");
    let ctrf: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    let results = &ctrf["results"];
    assert_eq!(results["tests"][0]["attachments"][0]["path"], "/out/picture.png");
    let of_module = results["extra"]["modules"][0]["attachments"].as_array().unwrap();
    let paths: Vec<_> = of_module.iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/out/coverage.xml", "/out/lost.png"]);
}

/// Checks the contents of each report of an interrupted run, with these texts.
fn shows_errors(folder: &Folder, errors: usize, words: &[&str]) {
    let junit = folder.text("r.xml");
    let head = junit.lines().find(|line| line.starts_with("<testsuites")).unwrap();
    assert!(head.contains(&format!("errors=\"{errors}\"")), "{head}");
    let ctrf: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    let summary = &ctrf["results"]["summary"];
    assert_eq!(summary["failed"], errors, "{summary}");
    for word in words {
        for report in ["r.xml", "r.trx", "r.json", "r.html"] {
            assert!(folder.text(report).contains(word), "{report} does not say {word:?}");
        }
    }
}

fn interrupted() {
    let folder = Folder::new();
    let slow = "handshake\ncontrol\nsleep 300ms\nstart\npass t1\nawait cancel\nend\nexit 3\n";
    let slow = folder.application("a-slow", slow);
    let next = folder.application("b-next", PASSES);
    let shown = folder.path("shown");
    let options = [&["--output", "detailed"], &FILE_REPORTS[..]].concat();
    let mut command = folder.command(&[&slow, &next], &options);
    command.stdout(fs::File::create(&shown).unwrap());
    let running = Running::start_as_it_is(command);
    eventually("a test is shown", || folder.text("shown").contains("passed t1").then_some(()));
    running.signal(Signal::INT);
    running.wait().expect_code(3);
    let cut = "was stopped before it had run all of its tests";
    shows_errors(&folder, 2, &[cut, "was not run: the run was stopped before", "slow"]);
    for report in ["r.trx", "r.json", "r.html"] {
        assert!(folder.text(report).contains("it was stopped by a signal"), "{report}");
    }
    assert!(folder.text("r.trx").contains("<ResultSummary outcome=\"Aborted\">"));
    // By the time limit, as JSON.
    let told = folder.run(&[&slow], &["--timeout", "2s", "--format", "json", "--summary"]);
    let summary = told.expect_code(3).json();
    assert_eq!(summary["interrupted"], "it reached its time limit (--timeout)");
    let module = &summary["modules"][0];
    assert_eq!((&module["error_message"], &module["error"]), (&cut.into(), &0.into()), "a text and a number");
    assert_eq!(told.text().matches("\"error\":").count(), 2, "once for the run, once for the module: {told}");
}

fn given_up() {
    let folder = Folder::new();
    let fails = folder.application("a-fails", "handshake\nstart\nfail t1\nend\nexit 2\n");
    let next = folder.application("b-next", PASSES);
    let told = folder.run(&[&fails, &next], &[&["--max-fail", "1"], &FILE_REPORTS[..]].concat());
    told.expect_code(13);
    let junit = folder.text("r.xml");
    let not_run = "<error message=\"was not run: the run was stopped before\" type=\"error\"/>";
    assert!(junit.contains(not_run), "it has no exit code: {junit}");
    assert!(folder.text("r.trx").contains("too many tests failed (--max-fail)"));
    // No module has failed.
    let told = folder.run(&[&next], &[&["--minimum-expected-tests", "2"], &FILE_REPORTS[..]].concat());
    told.expect_code(9);
    shows_errors(&folder, 1, &["the run ended with exit code 9: fewer tests than expected"]);
}

fn crashed() {
    let folder = Folder::new();
    let dies = folder.application("dies", "handshake\nstart\npass t1\nkill SIGKILL\n");
    folder.run(&[&dies], &FILE_REPORTS).expect_code(137);
    shows_errors(&folder, 1, &["was killed (exit code 137, SIGKILL)"]);
    assert!(folder.text("r.trx").contains("<ResultSummary outcome=\"Failed\">"));
}

fn mistakes() {
    let folder = Folder::new();
    let one = folder.application("one", PASSES);
    let no = |reports: &[&str], says: &str| {
        let options: Vec<&str> = reports.iter().flat_map(|report| ["--report", report]).collect();
        let told = folder.run(&[&one], &options);
        told.expect_code(5).says(says);
        assert_eq!(told.text(), "", "nothing was started");
    };
    fs::create_dir(folder.path("folder")).unwrap();
    fs::write(folder.path("file"), "").unwrap();
    no(&["junit=new/a.xml", "pdf"], "'pdf' is not a report");
    assert!(!folder.path("new").exists(), "a mistake leaves nothing behind");
    no(&["github=a.md"], "the report for GitHub can't be written to a file");
    no(&["junit=a.xml", "trx=./folder/../a.xml"], "two reports would have the path");
    symlink("a.xml", folder.path("link.xml")).unwrap();
    no(&["junit=a.xml", "trx=link.xml"], "two reports would have the path");
    no(&["html=one"], "is a test application");
    no(&["junit=folder"], "folder");
    no(&["junit=file/a.xml"], "file");
    no(&["junit=-", "trx=-"], "only one report can be written to standard output");
    // In folders in which another user's link might be followed.
    let shared = folder.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(folder.path("file"), shared.join("a.xml")).unwrap();
    no(&["junit=shared/a.xml"], "which is not followed");
    assert_eq!(folder.text("file"), "");
}

fn replaced() {
    let folder = Folder::new();
    let one = folder.application("one", PASSES);
    // Like any new file: CI uploads it as another user.
    fs::write(folder.path("ordinary"), "").unwrap();
    fs::write(folder.path("old.xml"), "what was there").unwrap();
    fs::hard_link(folder.path("old.xml"), folder.path("other-name")).unwrap();
    let told = folder.run(&[&one], &["--report", "junit=new/folder/a.xml", "--report", "trx=old.xml"]);
    told.expect_code(0);
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("new/folder/a.xml"), mode("ordinary"));
    assert!(folder.text("old.xml").contains("<TestRun"));
    assert_eq!(folder.text("other-name"), "what was there", "the file is replaced, not written to");
    // A run that did not take place keeps the existing reports.
    let told = folder.run(&[&one], &["--report", "trx=other-name", "--report", "nothing"]);
    told.expect_code(5);
    assert_eq!(folder.text("other-name"), "what was there");
}

fn to_stdout() {
    let folder = Folder::new();
    let one = folder.application("one", PASSES);
    let told = folder.run(&[&one], &["--report", "ctrf=-", "--report", "junit=a.xml", "--report", "github"]);
    let report = told.expect_code(0).json();
    assert_eq!(report["results"]["summary"]["tests"], 1);
    told.says("passed: 1 test");
    assert!(folder.text("a.xml").contains("<testsuites"));
    let told = folder.run(&[&one], &["--report", "ctrf=/dev/stdout"]);
    assert_eq!(told.expect_code(0).json()["reportFormat"], "CTRF");
    let told = folder.run(&[&one], &["--report", "ctrf=-", "--format", "json"]);
    told.expect_code(5).says("can't be written to standard output");
    assert_eq!(told.text(), "");
}

fn no_commands() {
    let folder = Folder::new();
    let evil = "handshake\nstart\n\
        fail t1 name=\"::error file=a.cs::owned\" message=\"##[error]owned\\n::stop-commands::x\" stdout=\"  ::add-mask::a\\n##vso[task.complete]\"\n\
        skip t2 name=\"a ##teamcity[x] \\u{202e}b\" reason=\"::warning::owned\"\n\
        message \"::set-output name=a::b\\n::debug::c\" level=2\nend\nexit 2\n";
    let evil = folder.application("evil", evil);
    let harmless = |told: &Finished| {
        for line in told.text().lines().chain(told.stderr.lines()) {
            let ours = line.starts_with("::error title=") || line.starts_with("::warning title=");
            assert!(ours || !line.trim_start().starts_with("::"), "{line}");
            assert!(
                ours || !line.contains("##[") && !line.contains("##vso[") && !line.contains("##teamcity["),
                "{line}"
            );
            assert!(!line.contains(['\u{202e}', '\x1b']), "{line}");
        }
    };
    let told = folder.run(&[&evil], &["--output", "detailed", "--report", "github"]);
    told.expect_code(2);
    harmless(&told);
    assert!(told.text().contains("owned"), "{told}");
    let told = folder.run(&[&evil], &["--format", "json"]);
    harmless(&told);
    let results = told.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names: Vec<_> =
        results.filter(|line| line["type"] == "test-result").map(|line| line["name"].clone()).collect();
    assert_eq!(
        names,
        ["::error file=a.cs::owned", "a ##teamcity[x] \u{202e}b"],
        "programs get what the test said"
    );
    for format in ["junit", "trx", "html", "ctrf", "jsonl"] {
        let told = folder.run(&[&evil], &["--report", &format!("{format}=-")]);
        harmless(&told);
        assert!(told.text().contains("owned"), "{told}");
    }
    let lists = "handshake framework=\"##vso[task.complete]\" architecture=\"##[error]x\"\nstart\n\
        discover t1 name=\"::error::owned\"\ndiscover t2 name=\"a ##vso[b] ##teamcity[c]\"\nend\nexit 0\n";
    let lists = folder.application("##vso[lists]", lists);
    for options in [&["--list-tests"][..], &["--list-tests=json"], &["--list-tests", "--format", "json"]] {
        let told = folder.run(&[&lists], options);
        harmless(&told);
        assert!(told.text().contains("owned"), "{told}");
    }
}

fn configured() {
    let folder = Folder::new();
    let fails = folder.application("fails", "handshake\nstart\nfail t1 name=\"a | b\"\nend\nexit 2\n");
    let config = "[test]\nreports = [{ format = \"github\" }, { format = \"junit\", path = \"out/a.xml\" }, { format = \"trx\" }]\n";
    fs::write(folder.path("runtap.toml"), config).unwrap();
    let mut command =
        folder.command(&[&fails], &["--config", "runtap.toml", "--results-directory", "results"]);
    command.env("GITHUB_STEP_SUMMARY", folder.path("summary.md"));
    let told = run(command);
    assert!(
        told.expect_code(2).text().contains("\n::error title=a | b::Xunit.FailException: it failed%0A"),
        "{told}"
    );
    assert!(folder.text("summary.md").contains("<code>a &#124; b</code>"));
    assert!(folder.text("out/a.xml").contains("<testsuites"));
    assert!(folder.text("results/test-results.trx").contains("<TestRun"));
    let wrong = "[test]\nreports = [{ format = \"github\", path = \"a.md\" }]\n";
    fs::write(folder.path("runtap.toml"), wrong).unwrap();
    folder
        .run(&[&fails], &["--config", "runtap.toml"])
        .expect_code(5)
        .says("the report for GitHub can't be written to a file");
    // A file that was found may have been written by another user.
    let inner = folder.path("clone");
    fs::create_dir(&inner).unwrap();
    fs::write(folder.path("victim"), "mine").unwrap();
    let evil = "[test]\nreports = [{ format = \"jsonl\", path = \"../victim\" }]\n";
    fs::write(inner.join("runtap.toml"), evil).unwrap();
    let mut command = folder.command(&[&fails], &[]);
    command.current_dir(&inner);
    run(command).expect_code(5).says("the report \"../victim\" is not written");
    assert_eq!(folder.text("victim"), "mine");
}
