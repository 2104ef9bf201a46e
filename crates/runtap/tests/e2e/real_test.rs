//! `runtap test` on real applications: the output for users and programs, and exit codes.

use std::fs;

use runtap_testkit::{Finished, RealRuntime, Running, Signal, Skip, eventually, run, test_application};
use serde_json::Value;

use crate::common::{command, folder};

/// Returns `runtap test` of the newest orchard, with these options and this suite.
fn orchard(options: &[&str], suite: &str) -> Result<std::process::Command, Skip> {
    let runtime = RealRuntime::available(10)?;
    let module = test_application("orchard-2.5.2")?.join("orchard.dll");
    let mut command = command(["test"]);
    command.arg(module).arg("--dotnet").arg(runtime.root().join("dotnet")).args(options);
    command.args(["--", "--suite", suite]);
    Ok(command)
}

/// Runs the orchard and returns the result. `None` if the runtime or the application is missing.
fn finished(options: &[&str], suite: &str) -> Option<Finished> {
    match orchard(options, suite) {
        Ok(command) => Some(run(command)),
        Err(skip) => {
            skip.report();
            None
        }
    }
}

#[test]
fn text_output_shows_failures_twice_and_totals() {
    let Some(told) = finished(&[], "core") else { return };
    let text = told.expect_code(2).text();
    assert_eq!(text.matches("IsBlue").count(), 2, "{text}");
    for part in [
        "running tests from ",
        "(net10.0|x64)",
        "colour differs",
        "11 passed, 8 failed, 3 error, 2 timed out, 1 cancelled, 2 skipped",
        "failed: 27 tests",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("IsRound"), "passed tests are not listed: {text}");
    assert!(!text.contains('\x1b'), "a pipe gets plain lines");
}

#[test]
fn control_characters_of_tests_are_escaped() {
    let Some(told) = finished(&["--output", "detailed", "--color", "never"], "odd") else { return };
    let text = told.expect_code(2).text();
    assert!(!text.contains(['\x1b', '\0', '\u{7}', '\r']), "{text:?}");
}

#[test]
fn json_output_has_a_line_for_each_event_or_one_document() {
    let Some(told) = finished(&["--format", "json", "--retries", "1"], "flaky:1") else { return };
    let text = told.expect_code(2).text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!(lines[0]["type"], "run-start");
    assert_eq!(of("module-end").len(), 1);
    assert_eq!(of("test-result").len(), 5);
    let flaky: Vec<_> = of("test-result").into_iter().filter(|line| line["flaky"] == true).collect();
    assert_eq!(
        (flaky.len(), &flaky[0]["uid"], &flaky[0]["attempt"]),
        (1, &Value::from("flaky-1"), &Value::from(2))
    );
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["type"], &end["passed"], &end["failed"], &end["flaky"]),
        (&"run-end".into(), &2.into(), &1.into(), &1.into())
    );
    assert!(end["interrupted"].is_null());
    let stopped = ["--format", "json", "--summary", "--timeout", "1500ms"];
    let Some(told) = finished(&stopped, "slow:50:20000") else { return };
    assert!(
        told.expect_code(3).says("the time limit of the run has elapsed").json()["interrupted"].is_string()
    );
    let Some(told) = finished(&["--format", "json", "--summary"], "fast:3") else { return };
    let summary = told.expect_code(0).json();
    assert_eq!(
        (&summary["schema"], &summary["total"], &summary["exit_code"]),
        (&"runtap.test/1".into(), &3.into(), &0.into())
    );
}

#[test]
fn tests_are_listed_as_text_and_json() {
    let Some(told) = finished(&["--list-tests"], "core") else { return };
    assert!(told.expect_code(0).text().contains("28 tests\n  IsRound\n"));
    let Some(told) = finished(&["--list-tests", "json"], "core") else { return };
    let list = told.expect_code(0).json();
    assert_eq!(list["schema"], "runtap.test-list/1");
    let tests = list["modules"][0]["tests"].as_array().unwrap();
    assert_eq!((tests.len(), &tests[0]["type"]), (28, &"Apple".into()));
}

#[test]
fn tests_are_selected_by_filters_and_partitions() {
    let names = |told: &Finished, code| -> Vec<String> {
        let text = told.expect_code(code).text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let results = lines.filter(|line| line["type"] == "test-result");
        results.map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    let json = |options: &[&str]| finished(&[&["--format", "json"], options].concat(), "core");
    let Some(told) = json(&["--filter", "class = Apple and trait[priority] = 2"]) else { return };
    assert_eq!(names(&told, 0), ["IsSweet"]);
    let Some(told) = json(&["--filter", "uid = apple-1"]) else { return };
    assert_eq!(names(&told, 0), ["IsRound"]);
    let Some(told) = json(&["--filter", "klass = X"]) else { return };
    told.expect_code(5).says("did you mean 'class'?").says("^^^^^");
    let Some(told) = json(&["--filter", "name = nothing-like-it or class = Appel"]) else { return };
    assert!(names(&told, 8).is_empty());
    told.says("matches none of 28 tests")
        .says("no test meets name = nothing-like-it\n")
        .says("no test meets class = Appel; is it class = Apple?");
    let Some(told) = json(&["--filter-uid", "nothing-like-it"]) else { return };
    assert!(names(&told, 8).is_empty());
    told.says("no test has the id nothing-like-it");
    // An empty part of a non-empty selection is not a failure.
    let ends = ["hash:1/2", "hash:2/2"].map(|part| {
        let options = ["--filter", "uid = apple-1", "--partition", part, "--format", "json"];
        finished(&options, "core").map(|told| {
            let names = names(&told, 0);
            assert_eq!(names.is_empty(), told.stderr.contains("nothing to run in part"), "{}", told.stderr);
            names.len()
        })
    });
    assert_eq!(ends.into_iter().flatten().sum::<usize>(), 1);
    let Some(told) = json(&["--filter", "uid = nothing", "--partition", "hash:1/2"]) else { return };
    assert!(names(&told, 8).is_empty(), "the other part has no test either");
    let mut all = Vec::new();
    for part in ["hash:1/2", "hash:2/2"] {
        let Some(told) = json(&["--partition", part]) else { return };
        let part = names(&told, 2);
        assert!(!part.is_empty() && part.len() < 27);
        all.extend(part);
    }
    assert_eq!(all.len(), 27);
}

#[test]
fn reports_of_every_kind_are_written() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let reports = ["junit", "trx", "ctrf", "html"].map(|kind| format!("{kind}={}", path(kind)));
    let mut options = Vec::new();
    for report in &reports {
        options.extend(["--report", report]);
    }
    let Some(told) = finished(&options, "core") else { return };
    told.expect_code(2).says("junit report: ");
    for (kind, part) in [
        ("junit", "<testsuites"),
        ("trx", "http://microsoft.com/schemas/VisualStudio/TeamTest/2010"),
        // One test starts and has no result, which is reported beside the others.
        ("ctrf", "\"tests\":28"),
        ("html", "<!doctype html>"),
    ] {
        let text = fs::read_to_string(path(kind)).unwrap();
        let text = text.replace(": ", ":");
        assert!(
            text.contains(part) && text.contains("IsBlue"),
            "{kind}: {}",
            text.chars().take(400).collect::<String>()
        );
    }
}

/// Results contain no classes; reports take them from the lists of the applications.
#[test]
fn classes_and_files_of_every_framework_are_in_the_reports() {
    let runtime = match RealRuntime::available(10) {
        Ok(runtime) => runtime,
        Err(skip) => return skip.report(),
    };
    for (name, version, class) in [
        ("library-mstest", "4.5.2", "Library.Shelves.BookTests"),
        ("library-nunit", "5.0.0", "Library.Shelves.ShelfTests(&quot;oak&quot;)"),
        ("library-xunit", "3.2.2", "Library.Desk.Outer+Inner"),
        ("orchard", "2.5.2", "Orchard.Trees.Apple"),
    ] {
        let module = match test_application(&format!("{name}-{version}")) {
            Ok(folder) => folder.join(format!("{name}.dll")),
            Err(skip) => return skip.report(),
        };
        let folder = folder();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let reports = ["junit", "trx", "ctrf"].map(|kind| format!("{kind}={}", path(kind)));
        let mut command = command(["test", "--no-history", "--dotnet"]);
        command.arg(runtime.root().join("dotnet")).arg(module);
        command.args(reports.iter().flat_map(|report| ["--report", report]));
        run(command).expect_code(2);
        let [junit, trx, ctrf] = ["junit", "trx", "ctrf"].map(|kind| fs::read_to_string(path(kind)).unwrap());
        for (report, text) in [
            (&junit, format!("classname=\"{class}\"")),
            (&trx, format!("className=\"{class}\"")),
            (&ctrf, format!("\"{}\"", class.replace("&quot;", "\\\""))),
        ] {
            assert!(report.contains(&text), "{name}: no {text}");
        }
        // In the orchard, one test and the entry for the test that does not end have no class.
        let unknown = format!("classname=\"{name}\"");
        assert_eq!(junit.matches(&unknown).count(), if name == "orchard" { 2 } else { 0 }, "{name}");
        if name != "orchard" {
            assert!(junit.contains("<system-out>[[ATTACHMENT|"), "{name}");
        }
    }
}

#[test]
fn usage_errors_have_the_platforms_exit_code() {
    let wrong = |options: &[&str]| run(command(["test"].iter().chain(options)));
    wrong(&[]).expect_code(5).says("no test application specified").says("hint:");
    wrong(&["/no/such.dll"]).expect_code(5).says("no such file");
    wrong(&["/tmp"]).expect_code(5).says("a directory");
    wrong(&["/no/*.dll"]).expect_code(5).says("matches no test application");
    wrong(&["--no-such-option"]).expect_code(5).says("--no-such-option");
    wrong(&["/bin/true", "-e", "X"]).expect_code(5).says("NAME=VALUE");
    wrong(&["/bin/true", "--report", "x"]).expect_code(5).says("junit, trx, ctrf, html");
    // Options without a path, and an option that takes all following words.
    wrong(&["--rerun", "--list-tests", "/no/such.dll"]).expect_code(5).says("/no/such.dll: no such file");
    wrong(&["--rerun", "latest", "/no/such.dll"]).expect_code(5).says("/no/such.dll: no such file");
    wrong(&["--list-tests=xml", "/bin/true"]).expect_code(5).says("xml");
    wrong(&["--filter-uid", "a", "/bin/true"])
        .expect_code(5)
        .says("including /bin/true")
        .says("Put the path first");
    // Options that would have no effect.
    wrong(&["/bin/true", "--list-tests", "--summary"]).expect_code(5).says("--summary");
    wrong(&["/bin/true", "--list-tests", "--report", "junit"]).expect_code(5).says("--report");
    let negative = wrong(&["/bin/true", "--retries", "-1"]);
    negative.expect_code(5).says("invalid value '-1'");
    assert!(!negative.stderr.contains("-- -1"), "{negative}");
    wrong(&["/bin/true", "-j", "0"]).expect_code(5).says("at least 1");
    wrong(&["/bin/true", "--slow", "soon"]).expect_code(5).says("'none' means no limit");
    // Requests to runtap instead of the applications.
    for (word, says) in
        [("--list-tests", "runtap test PATH --list-tests"), ("--help", "runtap test PATH --help")]
    {
        wrong(&["/bin/true", "--", word]).expect_code(5).says(says);
    }
    // Not an application of the platform: its exit code is not interpreted.
    let told = wrong(&["/bin/ls"]);
    let text = told.expect_code(1).text();
    assert!(
        text.contains("exited with 2 without connecting") && text.contains("not an application of"),
        "{text}"
    );
    let told = wrong(&["/bin/true"]);
    assert!(told.expect_code(1).text().contains("exited with 0 without connecting"));
    let told = wrong(&["/bin/false"]);
    assert!(told.expect_code(1).text().contains("exited with 1 without connecting"));
}

#[test]
fn a_missing_history_is_reported_once() {
    let folder = folder();
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    let Ok(mut command) = orchard(&[], "fast:3") else { return };
    command.env("XDG_STATE_HOME", &in_the_way);
    let told = run(command);
    let says = "the test history can't be written";
    assert_eq!(
        told.expect_code(0).says("can't be created").stderr.matches(says).count(),
        1,
        "{}",
        told.stderr
    );
    let Ok(mut command) = orchard(&[], "fast:3") else { return };
    command.env_remove("XDG_STATE_HOME").env_remove("HOME");
    run(command).expect_code(0).says("no test history is kept").says("--no-history");
    let Ok(mut command) = orchard(&[], "fast:3") else { return };
    let home = folder.path().join("home");
    command.env_remove("XDG_STATE_HOME").env("HOME", &home);
    let told = run(command);
    let says = "no test history is kept: the home directory";
    assert_eq!(told.expect_code(0).says("does not exist").stderr.matches(says).count(), 1, "{}", told.stderr);
    assert!(!home.exists());
}

#[test]
fn libraries_matched_by_a_shell_pattern_are_skipped() {
    let Ok(mut command) = orchard(&["--no-history"], "fast:3") else { return };
    let library = test_application("orchard-2.5.2").unwrap().join("Microsoft.Testing.Platform.dll");
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut all = self::command(["test"]);
    all.arg(&library).args(&words[1..]);
    run(all)
        .expect_code(0)
        .says("Skipped a library that is not an application")
        .says("Microsoft.Testing.Platform.dll");
    command = self::command(["test"]);
    command.arg(&library);
    run(command).expect_code(5).says("a library, not an application");
}

#[test]
fn help_has_the_options_of_the_applications() {
    let own = run(command(["test", "--help"]));
    assert!(own.expect_code(0).text().contains("--timeout-per-test"));
    let none = run(command(["test", "--help", "/bin/true"]));
    assert!(
        none.expect_code(0)
            .text()
            .contains("true: MTP034: the application exited in help mode without sending")
    );
    let runtime = match RealRuntime::available(10) {
        Ok(runtime) => runtime,
        Err(skip) => return skip.report(),
    };
    let mut command = command(["test", "--help", "--dotnet"]);
    command.arg(runtime.root().join("dotnet"));
    for (folder, name) in [("orchard-1.8.4", "orchard.dll"), ("library-mstest-4.5.2", "library-mstest.dll")] {
        match test_application(folder) {
            Ok(folder) => command.arg(folder.join(name)),
            Err(skip) => return skip.report(),
        };
    }
    let told = run(command);
    let text = told.expect_code(0).text();
    for part in [
        "--timeout-per-test",
        "Options of the platform",
        "--diagnostic-verbosity",
        "--suite  only orchard",
        "--filter  only library-mstest",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("\n  --results-directory").count(), 1, "each option once: {text}");
    assert!(!text.contains("--bare-secret"), "hidden options are not shown");
}

#[test]
fn ctrl_c_stops_the_run_and_reports_its_results() {
    let mut command = match orchard(&["--output", "detailed"], "slow:1000:20") {
        Ok(command) => command,
        Err(skip) => return skip.report(),
    };
    let folder = folder();
    let shown = folder.path().join("shown");
    command.stdout(fs::File::create(&shown).unwrap());
    let running = Running::start_as_it_is(command);
    let shows = |part: &str| fs::read_to_string(&shown).unwrap().contains(part);
    eventually("a test has passed", || shows("passed").then_some(()));
    running.signal(Signal::INT);
    running.wait().expect_code(3).says("Stopping");
    assert!(shows("exit code 3") && shows("stopped before its end"));
}

#[test]
fn applications_can_use_http_instead_of_a_pipe() {
    let Some(told) = finished(&["--transport", "http", "--format", "json", "--summary"], "core") else {
        return;
    };
    let summary = told.expect_code(2).json();
    assert_eq!((&summary["total"], &summary["passed"]), (&27.into(), &11.into()));
    let Ok(runtime) = RealRuntime::available(10) else { return };
    let Ok(old) = test_application("orchard-2.3.3") else { return };
    let mut command = command(["test", "--transport", "http", "--dotnet"]);
    command.arg(runtime.root().join("dotnet")).arg(old.join("orchard.dll"));
    let told = run(command);
    let text = told.expect_code(5).text();
    assert!(text.contains("needs Microsoft.Testing.Platform 2.4 or later"), "{text}");
}

#[test]
fn a_program_uses_the_runtime_of_the_specified_host() {
    let runtime = runtap_testkit::require!(RealRuntime::available(10));
    let program = runtap_testkit::require!(test_application("library-xunit-3.2.2")).join("library-xunit");
    let mut command = command(["test", "--no-history"]);
    command.arg(program).arg("--dotnet").arg(runtime.root().join("dotnet"));
    command.env("DOTNET_ROOT", "/nonexistent").env_remove("DOTNET_ROOT_X64");
    let told = run(command);
    assert!(told.expect_code(2).text().contains("(net10.0|"), "{told}");
}

#[test]
fn a_launcher_without_its_application_says_which_file_is_missing() {
    let library = runtap_testkit::require!(test_application("library-xunit-3.2.2"));
    let folder = folder();
    let launcher = folder.path().join("library-xunit");
    fs::copy(library.join("library-xunit"), &launcher).unwrap();
    let missing = launcher.with_extension("dll");
    let mut command = command(["test", "--no-history", "--report", "junit=r.xml"]);
    command.arg(&launcher).current_dir(folder.path());
    let told = run(command);
    let text = told.expect_code(154).text();
    let says = format!("this program only starts {}, which does not exist", missing.display());
    assert!(text.contains(&says) && !text.contains("no application of"), "{text}");
    let report = fs::read_to_string(folder.path().join("r.xml")).unwrap();
    assert!(report.contains(&says), "{report}");
}

#[test]
fn tests_beside_a_crashing_test_are_run_without_it() {
    let runtime = runtap_testkit::require!(RealRuntime::available(10));
    let parallel = runtap_testkit::require!(runtap_testkit::reported_application("xpar"));
    for retries in ["0", "1"] {
        let mut command = command(["test", "--no-history", "--format", "json", "--retries", retries]);
        command.arg(&parallel).arg("--dotnet").arg(runtime.root().join("dotnet"));
        let told = run(command);
        let lines = told.expect_code(2).text().lines();
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let end = lines.last().unwrap();
        assert_eq!(
            ["total", "passed", "error"].map(|name| end[name].as_u64()),
            [Some(4), Some(3), Some(1)],
            "{told}"
        );
        let results = lines.iter().filter(|line| line["type"] == "test-result");
        let failed = results.filter(|line| line["state"] != "passed").map(|line| line["name"].as_str());
        assert!(failed.into_iter().all(|name| name == Some("Par.C.Guilty")), "{told}");
    }
}

#[test]
fn tests_whose_ids_crash_an_adapter_are_named_and_the_others_run() {
    let runtime = runtap_testkit::require!(RealRuntime::available(10));
    let names = runtap_testkit::require!(runtap_testkit::reported_application("nnames"));
    let told = |options: &[&str]| {
        let mut command = command(["test", "--format", "json"]);
        command.arg(&names).arg("--dotnet").arg(runtime.root().join("dotnet")).args(options);
        run(command)
    };
    let ends = |told: &Finished| -> (Value, Vec<String>) {
        let lines = told.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        let results = lines.iter().filter(|line| line["type"] == "test-result");
        let names = results.map(|line| line["uid"].as_str().unwrap().to_owned()).collect();
        (lines.last().unwrap().clone(), names)
    };
    // Tests whose names begin like this suffice. The complete run requests nothing by id.
    let whole = told(&[]);
    let (_, mut all) = ends(whole.expect_code(0));
    all.retain(|uid| uid.starts_with("Shop.Cart.a") || uid.ends_with("Plain"));
    let parts = told(&["--filter", "name ~ '^a|Plain'"]);
    let (end, run) = ends(parts.expect_code(1));
    assert!(run.len() > 1 && run.len() < all.len(), "{run:?} of {all:?}");
    assert_eq!(end["passed"].as_u64(), Some(run.len() as u64));
    assert!(parts.text().contains("running them in smaller parts"), "{parts}");
    // Exactly the tests without a result are named.
    for uid in &all {
        let uid_in_json = Value::from(uid.as_str()).to_string();
        let uid_in_json = uid_in_json.trim_matches('"');
        let is_named = ["even if only this test is run: ", "chosen tests has no result: "]
            .iter()
            .any(|text| parts.text().contains(&format!("{text}{uid_in_json}")));
        assert_eq!(is_named, !run.contains(uid), "{uid}");
    }
}
