//! A `/proc` that hides processes, or shows those of another namespace: hidden processes are reported as hidden, not as
//! missing. Requires root.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{Finished, Program, require, run};

use crate::common::{command, folder};
use crate::real_doctor_rights::{ProgramCopy, child_of};

/// Runs `script` in its own mount and pid namespaces, with `$1` as the program under test and the following words as
/// `$@`.
fn in_namespaces(script: &str, words: &[&str], place: &ProgramCopy) -> Command {
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script, "sh"]);
    apart.arg(place.path().join("runtap")).args(words).env("TMPDIR", place.path()).current_dir("/");
    apart
}

/// Runs `runtap` as user `nobody` where users see only their own processes.
fn hidden(place: &ProgramCopy, words: &[&str]) -> Finished {
    let script = "mount -t proc -o hidepid=2 proc /proc; runtap=$1; shift; \
                  setpriv --reuid 65534 --regid 65534 --clear-groups \"$runtap\" \"$@\"";
    run(in_namespaces(script, words, place))
}

/// Starts the built-in program in its own namespaces.
fn contained(place: &ProgramCopy) -> Program {
    let mut demo = Command::new("unshare");
    demo.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(place.path().join("runtap"));
    demo.args(["demo", "serve", "--seconds", "60"]).env("TMPDIR", place.path());
    let mut demo = Program::start({
        demo.stdin(Stdio::piped()).stdout(Stdio::piped());
        demo
    });
    demo.wait_for("ready");
    demo
}

#[test]
fn processes_hidden_by_proc_are_not_reported_as_missing() {
    let place = require!(ProgramCopy::new());
    // The shell that runs the script.
    for verb in ["info", "doctor", "env", "resume"] {
        let refused = hidden(&place, &[verb, "1"]);
        refused.expect_code(3);
        let said = format!("{}{}", refused.stderr, refused.text());
        assert!(
            said.contains("hidepid") && said.contains(&format!("sudo runtap {verb} 1")),
            "{verb}: {refused}"
        );
    }
    hidden(&place, &["info", "4194304"]).expect_code(3).says("does not exist");
    hidden(&place, &["ps", "--all-users"]).expect_code(0).says("hidepid");
    let machine = hidden(&place, &["doctor", "--format", "json"]).expect_code(0).json();
    assert!(machine["findings"].to_string().contains("hidepid"), "{machine:#}");
    // The user's own processes are still visible, and root sees everything.
    let script = "mount -t proc -o hidepid=2 proc /proc; export TMPDIR=\"$(mktemp -d -p \"$TMPDIR\")\"; \
                  chown 65534 \"$TMPDIR\"; as='setpriv --reuid 65534 --regid 65534 --clear-groups'; \
                  $as \"$1\" demo serve --seconds 60 > \"$TMPDIR/out\" & pid=$!; \
                  until grep -q ready \"$TMPDIR/out\"; do :; done; \
                  $as \"$1\" info $pid; \"$1\" info $pid; $as \"$1\" trace -p $pid --duration 0.1s -o \"$TMPDIR/x\"";
    run(in_namespaces(script, &[], &place)).expect_code(0);
}

#[test]
fn the_proc_of_other_processes_is_reported() {
    let place = require!(ProgramCopy::new());
    let demo = contained(&place);
    let pid = child_of(&demo).to_string();
    let output = place.path().join("x");
    for words in [
        &["ps"][..],
        &["info", "1"],
        &["doctor"],
        &["trace", "-p", "1", "-o", output.to_str().unwrap()],
        &["tail", "1", "--clrevents", "gc"],
    ] {
        // Enters its mount namespace, but not its pid namespace.
        let mut entered = Command::new("nsenter");
        entered.args(["--target", &pid, "--mount"]).arg(place.path().join("runtap")).args(words);
        let refused = run(entered);
        refused.expect_code(3).says("belongs to another PID namespace").says("nsenter");
    }
    assert!(!output.exists());
    run(command(["info", &pid])).expect_code(0);
}

/// The reverse: a separate pid namespace, and the `/proc` of the outer one. Peers are identified by that `/proc` where
/// the kernel supports it.
#[test]
fn the_proc_of_an_outer_namespace_is_reported() {
    let place = require!(ProgramCopy::new());
    let demo = contained(&place);
    let pid = child_of(&demo).to_string();
    let mut inner = Command::new("unshare");
    inner.args(["--pid", "--fork", "--kill-child"]).arg(env!("CARGO_BIN_EXE_runtap")).args(["info", &pid]);
    let told = run(inner);
    told.says("an outer PID namespace");
    assert!(!told.stderr.contains("os error 0"), "{told}");
    match told.code() {
        Some(0) => {}
        // Before Linux 6.5.
        _ => drop(told.expect_code(3).says("can't be seen from here")),
    }
}

/// Without any `/proc`.
#[test]
fn a_missing_proc_is_reported() {
    let place = require!(ProgramCopy::new());
    let script = "mount -t tmpfs none /proc; \"$@\"";
    for words in [&["ps"][..], &["doctor", "1"], &["info", "-n", "x"]] {
        run(in_namespaces(script, words, &place)).expect_code(3).says("no /proc is mounted");
    }
    // Verbs that need no `/proc` work.
    let folder = folder();
    let output = folder.path().join("man");
    let words = ["man", "--out-dir", output.to_str().unwrap()];
    run(in_namespaces(script, &words, &place)).expect_code(0);
    assert!(Path::new(&output).join(OsStr::new("runtap.1")).is_file());
}
