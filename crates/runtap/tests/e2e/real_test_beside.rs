//! `runtap test` compared with the real `dotnet test`: equal applications, equal totals.

use runtap_testkit::{DotnetTest, RealRuntime, Skip, run, test_application};
use serde_json::Value;

use crate::common::{command, folder};

/// Returns total, failed, succeeded, skipped, as `dotnet test` counts: every test that did not pass has failed. Each
/// application is a folder and a file in it.
fn beside(applications: &[(&str, &str)], options: &[&str]) -> Result<[[u64; 4]; 2], Skip> {
    let (runtime, sdk) = (RealRuntime::available(10)?, DotnetTest::available()?);
    let folder = folder();
    // Patterns of `dotnet test` are relative to its directory, and do not follow links to directories.
    for (application, _) in applications {
        let copied = folder.path().join(application);
        if std::fs::exists(&copied).unwrap() {
            continue;
        }
        std::fs::create_dir(&copied).unwrap();
        for entry in std::fs::read_dir(test_application(application)?).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), copied.join(entry.file_name())).unwrap();
            }
        }
    }
    let modules: Vec<_> = applications.iter().map(|(folder, file)| format!("{folder}/{file}")).collect();
    let mut theirs = sdk.command(folder.path(), &modules.join(";"));
    theirs.env("BARE_SCALE", "10").args(["--no-progress", "--no-ansi"]).args(options);
    let theirs = run(theirs);
    let text = theirs.text();
    let of = |word: &str| -> u64 {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(word))
            .unwrap_or_else(|| panic!("{theirs}"));
        line.trim().split(' ').next().unwrap().parse().unwrap()
    };
    let expected = [of("total:"), of("failed:"), of("succeeded:"), of("skipped:")];

    let mut ours = command(["test", "--format", "json", "--summary", "--no-history", "--dotnet"]);
    ours.arg(runtime.root().join("dotnet")).args(&modules).arg("--").args(options);
    ours.env("BARE_SCALE", "10").current_dir(folder.path());
    let ours = run(ours).json();
    let of = |name: &str| ours[name].as_u64().unwrap();
    let failed = ["failed", "error", "timeout", "cancelled"].map(of).iter().sum();
    assert_eq!(ours["exit_code"], Value::from(theirs.code().unwrap()), "{ours}");
    Ok([expected, [of("total"), failed, of("passed"), of("skipped")]])
}

#[track_caller]
fn are_equal(applications: &[(&str, &str)], options: &[&str]) {
    match beside(applications, options) {
        Ok([theirs, ours]) => assert_eq!(theirs, ours, "{applications:?} {options:?}"),
        Err(skip) => skip.report(),
    }
}

#[test]
fn every_outcome_is_counted_as_dotnet_test_counts_it() {
    are_equal(&[("orchard-2.5.2", "orchard.dll")], &["--suite", "core"]);
    are_equal(&[("orchard-2.5.2", "orchard.dll")], &["--suite", "dups"]);
}

#[test]
fn older_platforms_too() {
    are_equal(&[("orchard-1.8.4", "orchard.dll")], &["--suite", "core"]);
    are_equal(&[("orchard-2.3.3", "orchard.dll")], &["--suite", "core"]);
}

#[test]
fn mstest_totals_agree() {
    are_equal(&[("library-mstest-4.5.2", "library-mstest.dll")], &[]);
}

#[test]
fn nunit_totals_agree() {
    are_equal(&[("library-nunit-5.0.0", "library-nunit.dll")], &[]);
}

#[test]
fn several_applications_of_different_frameworks_too() {
    let six = ["alpha.dll", "bravo.dll", "charlie.dll", "delta.dll", "echo.dll", "foxtrot.dll"];
    are_equal(&six.map(|file| ("six", file)), &[]);
    let mixed = [
        ("orchard-1.8.4", "orchard.dll"),
        ("orchard-2.5.2", "orchard.dll"),
        ("library-mstest-4.5.2", "library-mstest.dll"),
        ("library-nunit-5.0.0", "library-nunit.dll"),
    ];
    are_equal(&mixed, &[]);
}

#[test]
fn xunit_totals_agree() {
    let [theirs, ours] = match beside(&[("library-xunit-3.2.2", "library-xunit.dll")], &[]) {
        Ok(both) => both,
        Err(skip) => return skip.report(),
    };
    // After its test that times out, it randomly sends one more result about cleaning up.
    let without = |[total, failed, passed, skipped]: [u64; 4]| [total - failed, passed, skipped];
    assert_eq!(without(theirs), without(ours));
    assert!(theirs[1].abs_diff(ours[1]) <= 1, "{theirs:?} {ours:?}");
}
