//! `runtap test` beside the real `dotnet test`: the same applications, the same totals.

use runtap_testkit::{DotnetTest, RealRuntime, Skip, run, test_application};
use serde_json::Value;

use crate::common::{command, folder};

/// Total, failed, succeeded, skipped, as `dotnet test` counts: whatever did not pass has failed.
fn beside(application: &str, name: &str, suite: &[&str]) -> Result<[[u64; 4]; 2], Skip> {
    let (runtime, sdk) = (RealRuntime::available(10)?, DotnetTest::available()?);
    let folder = folder();
    let source = test_application(application)?;
    // Its patterns are relative to its directory, and do not follow a link to one.
    let copied = folder.path().join("application");
    std::fs::create_dir(&copied).unwrap();
    for entry in std::fs::read_dir(source).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copied.join(entry.file_name())).unwrap();
        }
    }
    let mut theirs = sdk.command(folder.path(), &format!("application/{name}"));
    theirs.args(["--no-progress", "--no-ansi"]).args(suite);
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
    ours.arg(runtime.root().join("dotnet")).arg(copied.join(name)).arg("--").args(suite);
    let ours = run(ours).json();
    let of = |name: &str| ours[name].as_u64().unwrap();
    let failed = ["failed", "error", "timeout", "cancelled"].map(of).iter().sum();
    assert_eq!(ours["exit_code"], Value::from(theirs.code().unwrap()), "{ours}");
    Ok([expected, [of("total"), failed, of("passed"), of("skipped")]])
}

fn are_equal(application: &str, name: &str, suite: &[&str]) {
    match beside(application, name, suite) {
        Ok([theirs, ours]) => assert_eq!(theirs, ours, "{application} {suite:?}"),
        Err(skip) => skip.report(),
    }
}

#[test]
fn every_outcome_is_counted_as_dotnet_test_counts_it() {
    are_equal("orchard-2.5.2", "orchard.dll", &["--suite", "core"]);
    are_equal("orchard-2.5.2", "orchard.dll", &["--suite", "dups"]);
}

#[test]
fn an_older_platform_too() {
    are_equal("orchard-1.8.4", "orchard.dll", &["--suite", "core"]);
}

#[test]
fn mstest_too() {
    are_equal("library-mstest-4.5.2", "library-mstest.dll", &[]);
}

#[test]
fn nunit_too() {
    are_equal("library-nunit-5.0.0", "library-nunit.dll", &[]);
}

#[test]
fn xunit_too() {
    let [theirs, ours] = match beside("library-xunit-3.2.2", "library-xunit.dll", &[]) {
        Ok(both) => both,
        Err(skip) => return skip.report(),
    };
    // After its test that takes too long, it sends one more result about cleaning up, or it does not: by chance.
    let without = |[total, failed, passed, skipped]: [u64; 4]| [total - failed, passed, skipped];
    assert_eq!(without(theirs), without(ours));
    assert!(theirs[1].abs_diff(ours[1]) <= 1, "{theirs:?} {ours:?}");
}
