//! Applications of the library and of the harness.

use std::fs;
use std::path::Path;

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::{Skip, run, test_application};
use serde_json::Value;

use crate::real_wrapped::write;
use crate::samples::{SAMPLE, module};
use crate::servers::{Sums, dotnet_test, in_order, masked, or_skip, our_sums, runtap, sums, with_own_places};

/// The suite `core` of the orchard: 11 pass, 14 do not (8 fail, 3 are errors, 2 time out, 1 is cancelled), 2 are
/// skipped.
const ORCHARD: Sums = [27, 14, 11, 2];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for a test")
}

pub(crate) fn an_application_of_the_library() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "application", "application");
        let told = run(dotnet_test(folder.path(), "application", &[])?);
        insta::assert_snapshot!("application", in_order(&masked(&told, folder.path())));
        told.expect_code(2);
        assert_eq!(our_sums(folder.path(), &[&path], &[])?, (sums(&told), Some(2)));
        Ok(())
    })
}

pub(crate) fn a_test_binary_of_the_harness() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "harness", "harness");
        let told = run(dotnet_test(folder.path(), "harness", &["--test-threads", "1"])?);
        assert_eq!(sums(told.expect_code(2)), [8, 3, 3, 2]);
        let text = told.text();
        for part in [
            "failed math::overflows (",
            "assertion `left == right` failed: it wraps",
            "tests/mtp-host/examples/harness.rs:15",
            "invalid digit found in string",
            "failed (canceled) io::waits (",
            "skipped divides\n  not yet\n",
            "skipped io::needs_a_tape\n  there is no tape drive\n",
            "- For test 'io::writes': /",
        ] {
            assert!(text.contains(part), "{part}: {told}");
        }
        assert_eq!(our_sums(folder.path(), &[&path], &[])?, ([8, 3, 3, 2], Some(2)));
        // A test's output, its location and its traits reach a server that requests them.
        let mut command = runtap([Path::new("test"), &path, Path::new("--format"), Path::new("json")]);
        with_own_places(&mut command, folder.path());
        let told = run(command);
        let text = told.text();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let writes = lines.iter().find(|line| line["type"] == "test-result" && line["uid"] == "io::writes");
        assert_eq!(writes.expect("it has run")["stdout"], "first line\nsecond line\n", "{told}");
        assert!(
            lines.iter().any(|line| line["type"] == "test-start" && line["uid"] == "takes_long"),
            "{told}"
        );
        Ok(())
    })
}

pub(crate) fn lists_of_both() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "harness", "harness");
        let ours = run(runtap([Path::new("test"), &path, Path::new("--list-tests")]));
        assert_eq!(ours.expect_code(0).text().matches("math::").count(), 3, "{ours}");
        let theirs = run(dotnet_test(folder.path(), "harness", &["--list-tests"])?);
        assert_eq!(theirs.expect_code(0).text().matches("  math::").count(), 3, "{theirs}");
        for name in ["divides", "io::needs_a_tape", "io::waits", "io::writes", "takes_long"] {
            assert!(theirs.text().contains(&format!("  {name}\n")), "{name}: {theirs}");
            assert!(ours.text().contains(name), "{name}: {ours}");
        }
        Ok(())
    })
}

pub(crate) fn exit_codes() -> Outcome {
    or_skip(|| {
        let folder = folder();
        module(folder.path(), "harness", "harness");
        let told = |options: &[&str]| dotnet_test(folder.path(), "harness", options).map(run);
        assert_eq!(sums(told(&["--filter", "math::adds", "--exact"])?.expect_code(0)), [1, 0, 1, 0]);
        assert_eq!(sums(told(&["--filter", "math"])?.expect_code(2)), [3, 2, 1, 0]);
        assert_eq!(sums(told(&["--ignored"])?.expect_code(2)), [1, 1, 0, 0]);
        assert_eq!(sums(told(&["--filter", "nothing"])?.expect_code(8)), [0; 4]);
        assert_eq!(
            sums(told(&["--filter", "math", "--ignore-exit-code", "2"])?.expect_code(0)),
            [3, 2, 1, 0]
        );
        assert_eq!(sums(told(&["--filter-uid", "math::adds", "takes_long"])?.expect_code(0)), [2, 0, 2, 0]);
        assert!(
            told(&["--no-such-option"])?.expect_code(5).text().contains("unknown option --no-such-option")
        );
        Ok(())
    })
}

/// A program that servers start directly, without a shell.
pub(crate) fn a_native_executable() -> Outcome {
    or_skip(|| {
        // On the program's disk, so that a hard link is possible.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for a test");
        let path = folder.path().join("native");
        fs::hard_link(std::env::current_exe().expect("this program has a path"), &path).expect("a link");
        let mut command = dotnet_test(folder.path(), "native", &[])?;
        let told = run({
            command.env(SAMPLE, "harness");
            command
        });
        assert_eq!(sums(told.expect_code(2)), [8, 3, 3, 2]);
        assert!(told.text().contains("/native (native|x64) failed with 3 error(s)"), "{told}");
        let mut command = dotnet_test(folder.path(), "native", &["--list-tests"])?;
        command.env(SAMPLE, "harness");
        let listed = run(command);
        assert!(listed.expect_code(0).text().contains("  math::adds\n"), "{listed}");
        Ok(())
    })
}

/// Returns a field of a message as shown by `mtp inspect`: its number, its name, its value.
fn field<'a>(message: &'a Value, name: &str) -> Option<&'a Value> {
    message.as_array()?.iter().find(|field| field[1] == name).map(|field| &field[2])
}

/// The type of a failure and a duration, which the real server receives but does not print.
pub(crate) fn types_and_durations() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "harness", "harness");
        let file = folder.path().join("talk.jsonl");
        let recorded = folder.path().join("recorded");
        let words = ["mtp", "record", "-o", file.to_str().unwrap(), "--write-module"];
        run(runtap(words.map(Path::new).into_iter().chain([&*recorded, Path::new("--"), &path])))
            .expect_code(0);
        let chosen = ["--filter", "math::overflows", "math::parses", "takes_long", "divides"];
        run(dotnet_test(folder.path(), "recorded", &chosen)?).expect_code(2);
        let document = run(runtap(["mtp", "inspect", file.to_str().unwrap(), "--format", "json"])).json();
        let rows = document["rows"].as_array().expect("rows").iter();
        let rows: Vec<_> = rows.filter(|row| row["name"] == "TestResultMessages").collect();
        let of = |list: &str, name: &str| {
            let lists = rows.iter().filter_map(|row| field(&row["fields"], list)?.as_array());
            let found = lists.flatten().find(|test| field(test, "Uid").is_some_and(|uid| uid == name));
            found.unwrap_or_else(|| panic!("{name} is not in {list}: {document:#}"))
        };
        let kind = |name: &str| {
            let test = of("FailedTestMessageList", name);
            let exceptions = field(test, "ExceptionMessageList").and_then(Value::as_array).expect("a list");
            field(&exceptions[0], "ErrorType").and_then(Value::as_str).expect("it has a type").to_owned()
        };
        assert_eq!(kind("math::overflows"), "panic");
        assert_eq!(kind("math::parses"), "core::num::error::ParseIntError");
        // The test sleeps for 20 ms: 200,000 units of 100 ns.
        let long = field(of("SuccessfulTestMessageList", "takes_long"), "Duration").and_then(Value::as_i64);
        assert!(long >= Some(200_000), "{long:?}");
        assert_eq!(field(of("SuccessfulTestMessageList", "divides"), "Duration"), None, "it was skipped");
        Ok(())
    })
}

pub(crate) fn rust_and_dotnet_modules_in_one_run() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let copied = folder.path().join("orchard");
        fs::create_dir(&copied).expect("a folder for the application");
        for entry in
            fs::read_dir(test_application("orchard-2.5.2")?).expect("it is there").map(Result::unwrap)
        {
            if entry.file_type().expect("a type").is_file() {
                fs::copy(entry.path(), copied.join(entry.file_name())).expect("it can be copied");
            }
        }
        // Options of one application have no effect on the others: all run all their tests.
        let rust = module(folder.path(), "harness", "harness");
        let more = module(folder.path(), "application", "application");
        let told = run(dotnet_test(folder.path(), "harness;application;orchard/orchard.dll", &[])?);
        let dotnet = copied.join("orchard.dll");
        let (ours, code) = our_sums(folder.path(), &[&rust, &more, &dotnet], &[])?;
        assert_eq!(sums(&told), ours, "{told}");
        // Of the harness, of the application, of the orchard.
        let each: [Sums; 3] = [[8, 3, 3, 2], [6, 3, 2, 1], ORCHARD];
        let all = each.into_iter().reduce(|a, b| std::array::from_fn(|at| a[at] + b[at]));
        assert_eq!(Some(ours), all, "{told}");
        assert_eq!((told.code(), code), (Some(2), Some(2)));
        let text = told.text();
        assert!(text.contains("(net10.0|x64)") && text.contains("(native|x64)"), "{told}");
        Ok(())
    })
}

pub(crate) fn messages_conform_to_the_rules() -> Outcome {
    or_skip(|| {
        for name in ["harness", "application", "wrapped"] {
            let folder = folder();
            let path = if name == "wrapped" {
                let script = "echo running 2 tests; echo 'test a ... ok'; echo 'test b ... FAILED'; echo; echo 'test result: \
                              FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; exit 101";
                let options = ["--from", "libtest", "--list-arguments="];
                write(folder.path(), &options, &["sh", "-c", script]);
                folder.path().join(name)
            } else {
                module(folder.path(), name, name)
            };
            is_by_the_rules(folder.path(), &path)?;
        }
        Ok(())
    })
}

/// Records a run, a list and the help under the real server, and a run under runtap; checks them by `runtap mtp lint`,
/// which considers the negotiated version.
fn is_by_the_rules(folder: &Path, module: &Path) -> Result<(), Skip> {
    let (file, recorded) = (folder.join("talk-%p.jsonl"), folder.join("recorded"));
    let words = ["mtp", "record", "-o", file.to_str().unwrap(), "--write-module"];
    run(runtap(words.map(Path::new).into_iter().chain([&*recorded, Path::new("--"), module]))).expect_code(0);
    for options in [&[][..], &["--list-tests"], &["--help"]] {
        let told = run(dotnet_test(folder, "recorded", options)?);
        assert!(matches!(told.code(), Some(0 | 2)), "{told}");
    }
    let mut command = runtap([Path::new("test"), &recorded]);
    with_own_places(&mut command, folder);
    run(command).expect_code(2);
    let files = fs::read_dir(folder).expect("it is there").map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let mut versions = Vec::new();
    for file in files {
        let words = ["mtp", "lint", file.to_str().unwrap(), "--format", "json"];
        let document = run(runtap(words)).expect_code(0).json();
        assert_eq!((&document["errors"], &document["warnings"]), (&0.into(), &0.into()), "{document:#}");
        versions.push(document["version"].as_str().unwrap_or("none").to_owned());
    }
    versions.sort_unstable();
    assert_eq!(versions, ["1.0.0", "1.0.0", "1.0.0", "1.4.0"], "the released SDK, and runtap");
    Ok(())
}

pub(crate) fn attempts_of_an_orchestrator() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "retries", "retries");
        let told = run(dotnet_test(folder.path(), "retries", &[])?);
        assert_eq!(sums(told.expect_code(0)), [2, 0, 2, 0]);
        assert!(told.text().contains("total: 2 (+1 retried)"), "{told}");
        let mut command = runtap([Path::new("test"), &path]);
        with_own_places(&mut command, folder.path());
        let told = run(command);
        assert!(told.expect_code(0).text().contains("2 tests, 2 passed, 1 flaky, 1 retried"), "{told}");
        Ok(())
    })
}

pub(crate) fn http_is_the_other_transport() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let path = module(folder.path(), "harness", "harness");
        let (ours, code) = our_sums(folder.path(), &[&path], &["--transport", "http"])?;
        assert_eq!((ours, code), ([8, 3, 3, 2], Some(2)));
        let told = |module: &Path, options: &[&str]| {
            let words = [Path::new("test"), module, Path::new("--transport"), Path::new("http")];
            let mut command = runtap(words.into_iter().chain(options.iter().map(Path::new)));
            with_own_places(&mut command, folder.path());
            run(command)
        };
        let listed = told(&path, &["--list-tests"]);
        assert_eq!(listed.expect_code(0).text().matches("math::").count(), 3, "{listed}");
        let help = told(&path, &["--help"]);
        assert!(help.expect_code(0).text().contains("--include-ignored"), "{help}");
        // A wrapped command uses the protocol as well.
        write(
            folder.path(),
            &["--from", "tap"],
            &["sh", "-c", "echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1"],
        );
        let ran = told(&folder.path().join("wrapped"), &[]);
        assert!(ran.expect_code(2).text().contains("2 tests, 1 passed, 1 failed"), "{ran}");
        Ok(())
    })
}

pub(crate) fn many_results_take_few_messages() -> Outcome {
    or_skip(|| {
        let folder = folder();
        let counted = |sample: &str| -> Result<usize, _> {
            let path = module(folder.path(), "many", sample);
            let (file, recorded) = (folder.path().join("talk.jsonl"), folder.path().join("recorded"));
            let words = ["mtp", "record", "-o", file.to_str().unwrap(), "--write-module"];
            run(runtap(words.map(Path::new).into_iter().chain([&*recorded, Path::new("--"), &path])))
                .expect_code(0);
            let told = run(dotnet_test(folder.path(), "recorded", &[])?);
            assert_eq!(sums(told.expect_code(0)), [2000, 0, 2000, 0]);
            let document = run(runtap(["mtp", "inspect", file.to_str().unwrap(), "--format", "json"])).json();
            Ok(document["rows"].as_array().unwrap().iter().filter(|row| row["id"] == 6).count())
        };
        let count = counted("many:2000")?;
        // A message grows while the server is busy: on a fast machine one can contain all results.
        assert!((1..200).contains(&count), "{count}");
        assert_eq!(counted("unbatched:2000")?, 2000);
        Ok(())
    })
}
