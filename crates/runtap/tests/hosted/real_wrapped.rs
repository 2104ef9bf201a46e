//! Third-party commands, run live if they are installed, wrapped by `runtap mtp host`.

use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::{Finished, Skip, run, workspace_root};

use crate::servers::{Sums, dotnet_test, or_skip, our_sums, runtap, sums, with_own_places};

/// Creates a folder with these files.
pub(crate) fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder within");
        fs::write(path, text).expect("a file");
    }
    folder
}

/// Wraps a command that runs in the folder, and runs it under both servers.
fn under_both(folder: &Path, options: &[&str], command: &[&str]) -> Result<(Finished, Sums), Skip> {
    write(folder, options, command);
    let told = run(dotnet_test(folder, "wrapped", &[])?);
    let (ours, code) = our_sums(folder, &[&folder.join("wrapped")], &[])?;
    assert_eq!((sums(&told), told.code()), (ours, code), "{told}");
    Ok((told, ours))
}

pub(crate) fn write(folder: &Path, options: &[&str], command: &[&str]) {
    let words = ["mtp", "host", "--write-module", "wrapped"].into_iter().chain(options.iter().copied());
    let mut write = runtap(words.chain(["--"]).chain(command.iter().copied()));
    write.current_dir(folder);
    run(write).expect_code(0);
}

pub(crate) fn is_there(program: &str, arguments: &[&str]) -> Result<(), Skip> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Skip::because(format!("{program} is not here"))),
    }
}

pub(crate) const CRATE: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
    (
        "src/lib.rs",
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n    #[test]\n    fn overflows() {\n        \
         println!(\"before\");\n        assert_eq!(44, 255, \"it wraps\");\n    }\n    #[test]\n    \
         #[ignore = \"takes a minute\"]\n    fn slow() {}\n}\n",
    ),
    ("tests/whole.rs", "#[test]\nfn adds() {}\n"),
];

pub(crate) fn cargo_test() -> Outcome {
    or_skip(|| {
        is_there("cargo", &["--version"])?;
        let folder = project(CRATE);
        let command = ["cargo", "test", "--offline", "--no-fail-fast"];
        let (told, sums) = under_both(folder.path(), &["--from", "libtest"], &command)?;
        assert_eq!((sums, told.code()), ([4, 1, 2, 1], Some(2)), "{told}");
        let text = told.text();
        for part in [
            "failed shop::tests::overflows",
            "assertion `left == right` failed: it wraps",
            "at tests::overflows in src/lib.rs:8",
            "    before\n",
            "skipped shop::tests::slow\n  takes a minute\n",
        ] {
            assert!(text.contains(part), "{part}: {told}");
        }
        let listed = run(dotnet_test(folder.path(), "wrapped", &["--list-tests"])?);
        for name in ["shop::tests::adds", "shop::tests::overflows", "shop::tests::slow", "whole::adds"] {
            assert!(listed.expect_code(0).text().contains(&format!("  {name}\n")), "{listed}");
        }
        let chosen = run(dotnet_test(folder.path(), "wrapped", &["--filter-uid", "whole::adds"])?);
        assert!(chosen.text().contains("total: 1"), "{chosen}");
        Ok(())
    })
}

pub(crate) fn nextest() -> Outcome {
    or_skip(|| {
        is_there("cargo-nextest", &["nextest", "--version"])?;
        let folder = project(CRATE);
        let command = ["cargo", "nextest", "run", "--offline", "--no-fail-fast"];
        let command = [&command[..], &["--message-format", "libtest-json-plus"]].concat();
        let (told, sums) = under_both(folder.path(), &["--from", "nextest"], &command)?;
        assert_eq!((sums, told.code()), ([4, 1, 2, 1], Some(2)), "{told}");
        assert!(told.text().contains("failed shop::shop$tests::overflows ("), "{told}");
        Ok(())
    })
}

/// Used if nextest is not installed.
pub(crate) fn nextest_from_its_recorded_output() -> Outcome {
    or_skip(|| {
        let recorded = include_str!("../../../tests/test/tests/fixtures/nextest.json");
        let folder = project(&[("nextest.json", recorded)]);
        let command = ["sh", "-c", "cat nextest.json; exit 100"];
        let (told, sums) = under_both(folder.path(), &["--from", "nextest"], &command)?;
        assert_eq!((sums, told.code()), ([6, 2, 3, 1], Some(2)), "{told}");
        let text = told.text();
        for part in [
            "failed shop::shop$tests::overflows (13ms)",
            "assertion `left == right` failed: it wraps",
            "at tests::overflows in src/lib.rs:24",
            "skipped shop::shop$tests::slow",
        ] {
            assert!(text.contains(part), "{part}: {told}");
        }
        Ok(())
    })
}

pub(crate) fn go_test() -> Outcome {
    or_skip(|| {
        is_there("go", &["version"])?;
        let folder = project(&[
            ("go.mod", "module example.org/shop\n\ngo 1.18\n"),
            (
                "shop_test.go",
                "package shop\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {}\n\nfunc TestOverflows(t *testing.T) {\n\
                 \tt.Errorf(\"got 44\")\n}\n\nfunc TestTape(t *testing.T) { t.Skip(\"no tape\") }\n",
            ),
        ]);
        let (told, sums) =
            under_both(folder.path(), &["--from", "go-json"], &["go", "test", "-json", "./..."])?;
        assert_eq!((sums, told.code()), ([3, 1, 1, 1], Some(2)), "{told}");
        assert!(told.text().contains("at TestOverflows in shop_test.go:8"), "{told}");
        Ok(())
    })
}

pub(crate) fn node_test() -> Outcome {
    or_skip(|| {
        is_there("node", &["--version"])?;
        let folder = project(&[(
            "shop.test.cjs",
            "const { describe, it } = require('node:test');\nconst assert = require('node:assert');\n\
             describe('cart', () => {\n  it('adds', () => {});\n  it('overflows', () => assert.strictEqual(44, 255));\n  \
             it('tapes', { skip: 'no tape' }, () => {});\n});\n",
        )]);
        let command = ["node", "--test", "--test-reporter=tap", "shop.test.cjs"];
        let (told, sums) = under_both(folder.path(), &["--from", "tap"], &command)?;
        assert_eq!((sums, told.code()), ([3, 1, 1, 1], Some(2)), "{told}");
        let text = told.text();
        assert!(text.contains("failed cart > overflows ("), "{told}");
        assert!(text.contains("/shop.test.cjs:5"), "{told}");
        Ok(())
    })
}

/// Returns pytest of the project's Python tools if installed, otherwise the system's.
fn pytest() -> Result<Vec<String>, Skip> {
    let own = workspace_root().join("target/tools/venv/bin/python3");
    let python = if own.is_file() { own } else { "python3".into() };
    let python = python.to_str().expect("the path is UTF-8");
    is_there(python, &["-m", "pytest", "--version"]).map_err(|_skip| Skip::because("pytest is not here"))?;
    Ok([
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "junit_logging=all",
        "--junitxml",
        "out.xml",
    ]
    .map(str::to_owned)
    .into())
}

pub(crate) fn pytest_leaves_a_report() -> Outcome {
    or_skip(|| {
        let folder = project(&[(
            "test_shop.py",
            "import pytest\n\n\nclass TestCart:\n    def test_adds(self):\n        pass\n\n\ndef test_overflows():\n    \
             print(\"before\")\n    assert 300 % 256 == 255, \"it wraps\"\n\n\n@pytest.mark.skip(reason=\"no tape\")\n\
             def test_tapes():\n    pass\n\n\n@pytest.mark.parametrize(\"n\", [1, 2])\ndef test_each(n):\n    assert n\n",
        )]);
        let command = pytest()?;
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let options = ["--from", "junit", "--report", "out.xml"];
        let (told, sums) = under_both(folder.path(), &options, &words)?;
        assert_eq!((sums, told.code()), ([5, 1, 3, 1], Some(2)), "{told}");
        let text = told.text();
        for part in [
            "failed test_shop.test_overflows (",
            "AssertionError: it wraps",
            "at test_overflows in test_shop.py:11",
            "    before\n",
            "skipped test_shop.test_tapes\n  no tape\n",
        ] {
            assert!(text.contains(part), "{part}: {told}");
        }
        // The classes are shown, although results do not contain them and the command can't list its tests.
        let mut command =
            runtap(["test", "./wrapped", "--no-history", "--report", "junit=ours.xml"].map(str::to_owned));
        with_own_places(&mut command, folder.path());
        command.current_dir(folder.path());
        let ours = run(command);
        assert!(!ours.expect_code(2).stderr.contains("did not list"), "{ours}");
        let report = fs::read_to_string(folder.path().join("ours.xml")).expect("there is a report");
        for suite in ["test_shop", "test_shop.TestCart"] {
            assert!(report.contains(&format!("<testsuite name=\"{suite}\"")), "{suite}: {report}");
        }
        // pytest can't list into a report, so listing runs the tests.
        let listed = run(dotnet_test(folder.path(), "wrapped", &["--list-tests"])?);
        assert!(listed.expect_code(0).text().contains("  test_shop.test_each[2]\n"), "{listed}");
        Ok(())
    })
}

pub(crate) fn a_report() -> Outcome {
    or_skip(|| {
        let recorded = include_str!("../../../tests/test/tests/fixtures/pytest.xml");
        let folder = project(&[("recorded.xml", recorded)]);
        let options = ["--from", "junit", "--report", "out.xml"];
        let (told, sums) =
            under_both(folder.path(), &options, &["sh", "-c", "cp recorded.xml out.xml; exit 1"])?;
        assert_eq!((sums, told.code()), ([6, 3, 2, 1], Some(2)), "{told}");
        assert!(told.text().contains("at test_overflows in test_shop.py:11"), "{told}");
        assert!(told.text().contains("failed on setup with \"OSError: no disk\""), "{told}");
        // The report of an earlier run is ignored.
        write(folder.path(), &options, &["true"]);
        let told = run(dotnet_test(folder.path(), "wrapped", &[])?);
        assert!(told.expect_code(1).text().contains("can't read the report"), "{told}");
        Ok(())
    })
}

pub(crate) fn commands_that_fail_without_a_test() -> Outcome {
    or_skip(|| {
        let folder = project(&[]);
        let told = |format: &str, script: &str| {
            write(folder.path(), &["--from", format], &["sh", "-c", script]);
            dotnet_test(folder.path(), "wrapped", &[]).map(run)
        };
        let broken = told("libtest", "echo 'error: no such crate' >&2; exit 101")?;
        assert!(broken.expect_code(1).text().contains("error: no such crate"), "{broken}");
        let killed = told("libtest", "echo 'running 2 tests'; echo 'test a ... ok'; kill -9 $$")?;
        assert!(killed.expect_code(7).text().contains("the binary ended after 1 of 2 tests"), "{killed}");
        assert_eq!(sums(&killed), [1, 0, 1, 0]);
        told("tap", "echo 1..0")?.expect_code(8);
        told("tap", "echo 1..1; echo ok 1 - adds")?.expect_code(0);
        let absent = {
            write(folder.path(), &["--from", "tap"], &["no-such-command-of-anybody"]);
            run(dotnet_test(folder.path(), "wrapped", &[])?)
        };
        assert!(
            absent.expect_code(1).text().contains("can't start \"no-such-command-of-anybody\""),
            "{absent}"
        );
        Ok(())
    })
}

/// A quarantine hides the failure of its tests, but no other failure of the command.
pub(crate) fn failures_beside_a_quarantined_test_count() -> Outcome {
    const HOOK: &str = include_str!("../../../tests/test/tests/fixtures/node-hook.tap");
    const PACKAGE: &str = include_str!("../../../tests/test/tests/fixtures/go-after-tests.json");
    const TARGET: &str = include_str!("../../../tests/test/tests/fixtures/libtest-target-dies.txt");
    or_skip(|| {
        let (suite, _) = HOOK.split_once("# Subtest: after fails").expect("there is a suite");
        let alone = suite.to_owned() + "1..1\n";
        let alone = alone.as_str();
        let cut = suite.to_owned() + "1..2\n";
        let cut = cut.as_str();
        for (format, text, end, quarantined, (sums, code)) in [
            ("tap", alone, "exit 1", "q", ([1, 1, 0, 0], 0)),
            ("tap", HOOK, "exit 1", "q", ([3, 2, 1, 0], 2)),
            ("tap", cut, "exit 1", "q", ([1, 1, 0, 0], 7)),
            ("tap", cut, "exit 0", "q", ([1, 1, 0, 0], 1)),
            ("tap", alone, "kill -9 $$", "q", ([1, 1, 0, 0], 7)),
            ("tap", alone, "exit 139", "q", ([1, 1, 0, 0], 7)),
            ("go-json", PACKAGE, "exit 1", "example.org/f.TestQ", ([3, 2, 1, 0], 2)),
            ("libtest", TARGET, "exit 101", "crt::known_bad", ([4, 2, 2, 0], 2)),
            ("libtest", "running 1 test\ntest a ... FAILED\n", "exit 101", "a", ([1, 1, 0, 0], 0)),
            ("libtest", "running 1 test\ntest a ... FAILED\n", "exit 2", "a", ([1, 1, 0, 0], 1)),
        ] {
            let folder = project(&[("text", text)]);
            write(folder.path(), &["--from", format], &["sh", "-c", &format!("cat text; {end}")]);
            let filter = format!("name = {quarantined}");
            let told =
                our_sums(folder.path(), &[&folder.path().join("wrapped")], &["--quarantine", &filter])?;
            assert_eq!(told, (sums, Some(code)), "{format}: {end}");
        }
        Ok(())
    })
}

/// Two tests of one name, of which one always fails, and whose order changes in each run.
pub(crate) fn tests_of_one_name_are_not_mistaken_for_each_other() -> Outcome {
    or_skip(|| {
        let (fails, passes) = ("not ok 1 - same\n", "ok 1 - same\n");
        let folder = project(&[
            ("odd", &[fails, passes, "1..2\n"].concat()),
            ("even", &[passes, fails, "1..2\n"].concat()),
        ]);
        let script =
            "echo >> runs; if [ $(($(wc -l < runs) % 2)) = 1 ]; then cat odd; else cat even; fi; exit 1";
        write(folder.path(), &["--from", "tap"], &["sh", "-c", script]);
        let module = folder.path().join("wrapped");
        for (options, runs) in [(&[][..], 1), (&["--retries", "1"], 2), (&["--retries", "2"], 3)] {
            let _ = fs::remove_file(folder.path().join("runs"));
            let (sums, code) = our_sums(folder.path(), &[&module], options)?;
            assert_eq!((sums[0], code), (2, Some(2)), "{options:?}: {sums:?}");
            assert!(sums[1] >= 1, "{options:?}: {sums:?}");
            let ran = fs::read_to_string(folder.path().join("runs")).expect("it has run");
            assert_eq!(ran.len(), runs, "{options:?}");
        }
        Ok(())
    })
}

pub(crate) fn without_a_server() {
    let told = run(runtap(["mtp", "host", "--from", "tap", "--", "true"]));
    assert!(told.expect_code(2).stderr.contains("must be started by a server"), "{told}");
    let told = run(runtap(["mtp", "host", "--from", "soup", "--write-module", "x", "--", "true"]));
    assert!(told.expect_code(2).stderr.contains("libtest-json"), "{told}");
    let told = run(runtap(["mtp", "host", "--from", "tap", "--write-module", "x.dll", "--", "true"]));
    assert!(told.expect_code(2).stderr.contains(".dll"), "{told}");
}
