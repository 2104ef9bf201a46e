//! The harness runs its own tests: how its example behaves as libtest. How it does as a test application is tested with real
//! servers, in the tests of runtap.

// A program of its own elsewhere. Here this program is it: what `cargo test --tests` has not built, or an earlier build has
// left, is never run.
#[expect(unreachable_pub, reason = "it is a program of its own")]
#[path = "../examples/harness.rs"]
mod harness;

use std::process::{Command, ExitCode, Output};

/// Set for a process that is to be the example.
const EXAMPLE: &str = "RUNTAP_HARNESS_EXAMPLE";

fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(arguments)
        .env(EXAMPLE, "1")
        .env("TMPDIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the example runs");
    let Output { status, stdout, .. } = output;
    (status.code().expect("it ends by itself"), String::from_utf8(stdout).expect("it prints text"))
}

const ALL: [&str; 8] = [
    "divides",
    "io::needs_a_tape",
    "io::waits",
    "io::writes",
    "math::adds",
    "math::overflows",
    "math::parses",
    "takes_long",
];

/// The names of a list in the form that nextest reads.
fn listed(arguments: &[&str]) -> Vec<String> {
    let (code, text) = run(arguments);
    assert_eq!(code, 0, "{text}");
    let names = text.lines().map(|line| line.strip_suffix(": test").expect("nothing but tests").to_owned());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

fn it_lists_as_nextest_wants_it() {
    assert_eq!(listed(&["--list", "--format", "terse"]), ALL);
    assert_eq!(listed(&["--list", "--format", "terse", "--ignored"]), ["divides"]);
    assert_eq!(listed(&["--list", "--format", "terse", "math"]), &ALL[4..7]);
    assert_eq!(listed(&["--list", "--format", "terse", "math", "--skip", "adds"]), &ALL[5..7]);
}

fn one_test_runs_as_nextest_runs_it() {
    let (code, text) = run(&["math::adds", "--exact", "--nocapture"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out"), "{text}");
    let (code, text) = run(&["divides", "--exact", "--nocapture", "--ignored"]);
    assert_eq!(code, 101, "{text}");
    assert!(text.contains("not implemented yet"), "{text}");
}

fn all_of_them_run_as_cargo_runs_them() {
    let (code, text) = run(&["--test-threads", "1"]);
    assert_eq!(code, 101, "{text}");
    assert!(text.contains("3 passed; 3 failed; 2 ignored"), "{text}");
    assert!(text.contains("first line\nsecond line\n"), "{text}");
    assert!(text.contains("timed out: no answer in 5 s"), "{text}");
    assert!(text.contains("invalid digit found in string"), "{text}");
    let (code, text) = run(&["--include-ignored", "--format", "json", "-Z", "unstable-options"]);
    assert_eq!(code, 101, "{text}");
    assert_eq!(text.matches(r#""event": "failed""#).count(), 5, "{text}");
}

fn a_wrong_command_line_of_a_server_is_refused() {
    let (code, _) =
        run(&["--treenode-filter", "/x", "--server", "dotnettestcli", "--dotnet-test-pipe", "/t"]);
    assert_eq!(code, 5);
    let server = ["--server", "dotnettestcli", "--dotnet-test-pipe", "/t"];
    let (code, _) = run(&[&["--test-threads", "0"], &server[..]].concat());
    assert_eq!(code, 5);
}

fn main() -> ExitCode {
    if std::env::var_os(EXAMPLE).is_some() {
        return harness::main();
    }
    runtap_mtp_host::tests!(
        it_lists_as_nextest_wants_it,
        one_test_runs_as_nextest_runs_it,
        all_of_them_run_as_cargo_runs_them,
        a_wrong_command_line_of_a_server_is_refused,
    )
    .main()
}
