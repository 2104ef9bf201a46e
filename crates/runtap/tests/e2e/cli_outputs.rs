//! Output files: opened before any target is contacted, complete when they appear, and never in place of their input.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_diag_proto::Hresult;
use runtap_testkit::{
    FakeRuntime, Fault, Finished, On, Running, Signal, Skip, eventually, require, run, shared_data,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, path, words};
use crate::common::{command, folder, runtap, shell, trace_of};

/// Returns a folder with a recording.
pub(crate) fn recorded() -> Result<(TempDir, PathBuf), Skip> {
    let bytes = shared_data("nettrace/net10/cpu-spin.nettrace.zst")?;
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, bytes).unwrap();
    Ok((folder, file))
}

/// Returns the sorted names in a folder.
#[track_caller]
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn port(runtime: &FakeRuntime) -> String {
    format!("{},connect", runtime.path().display())
}

/// If the result of a session or a dump can't be written, the target receives no request.
#[test]
fn a_target_gets_no_request_for_an_unwritable_output() {
    let runtime = FakeRuntime::spawn();
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    symlink("nowhere/", folder.path().join("link")).unwrap();
    for (output, why, code) in [
        ("nowhere/x", "does not exist", 2),
        ("file/x", "is not a directory", 2),
        // A trailing slash means a folder, also in the target of a link.
        ("nowhere/", "does not exist", 2),
        ("nowhere//.", "does not exist", 2),
        ("file/", "is not a directory", 2),
        ("link", "does not exist", 2),
        ("/proc/nothing", "can't write", 1),
    ] {
        let output = folder.path().join(output);
        let output = output.to_str().unwrap();
        for verb in [&["trace", "--duration", "1s"][..], &["trace", "--to", "folded"], &["dump"]] {
            let refused = runtap(verb.iter().copied().chain(["--dport", &port(&runtime), "-o", output]));
            refused.expect_code(code).says(why);
        }
    }
    runtap(["trace", "--dport", &port(&runtime), "-o", folder.path().to_str().unwrap()])
        .expect_code(1)
        .says("directory");
    let slash = format!("{}/nowhere/", folder.path().display());
    let several = ["trace", "--duration", "1s", "--to", "folded,nettrace", "-o", &slash];
    runtap(several.into_iter().chain(["--dport", &port(&runtime)])).expect_code(2).says("does not exist");
    assert_eq!(runtime.requests(), []);
    assert_eq!(names(folder.path()), ["file", "link"]);
}

#[test]
fn a_command_is_not_started_if_the_output_cannot_be_written() {
    let folder = folder();
    let mut touch = Command::new("touch");
    touch.arg(folder.path().join("started"));
    for (output, code) in [("nowhere/x", 2), ("/proc/nothing", 125)] {
        let output = folder.path().join(output);
        run(trace_of(["-o", output.to_str().unwrap()], &touch)).expect_code(code).says("can't write");
    }
    assert_eq!(names(folder.path()), [] as [&str; 0]);
}

/// After a rejected session, the folder has only the files that existed before.
#[test]
fn a_rejected_session_leaves_no_files() {
    let runtime = FakeRuntime::builder().fault(On::Any, Fault::Refuse(Hresult::E_FAIL)).spawn();
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    let trace = |to: &str| {
        let mut trace = command(["trace", "--dport", &port(&runtime), "--duration", "1s", "--to", to, "-o"]);
        trace.arg(&file).current_dir(folder.path());
        run(trace).expect_code(4);
    };
    trace("nettrace");
    trace("folded,nettrace");
    let mut unnamed = command(["trace", "--dport", &port(&runtime), "--duration", "1s"]);
    unnamed.current_dir(folder.path());
    run(unnamed).expect_code(4);
    assert_eq!(names(folder.path()), [] as [&str; 0]);
    fs::write(&file, "precious").unwrap();
    trace("nettrace");
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["x.nettrace"]);
}

/// A pipe is an output too, and is opened when it has a reader. Until then no request is sent.
#[test]
fn a_pipe_is_waited_for() {
    let runtime = FakeRuntime::spawn();
    let folder = folder();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut trace = command(["trace", "--dport", &port(&runtime), "--duration", "0.1s", "-o"]);
    trace.arg(&pipe);
    let waiting = Running::start(trace);
    let tasks = format!("/proc/{}/task", waiting.id());
    eventually("the thread that opens it", || {
        let names =
            fs::read_dir(&tasks).unwrap().flat_map(|it| fs::read_to_string(it.unwrap().path().join("comm")));
        names.into_iter().any(|name| name.trim() == "work").then_some(())
    });
    waiting.signal(Signal::INT);
    waiting.wait().expect_code(130);
    assert_eq!(runtime.requests(), []);
}

/// Checked with system calls: the last file is created before the first byte is sent to the target.
#[test]
fn every_output_is_open_before_the_first_byte_to_the_target() {
    if !Command::new("strace").arg("-V").output().is_ok_and(|it| it.status.success()) {
        Skip::because("there is no strace").report();
        return;
    }
    let runtime = FakeRuntime::spawn();
    let folder = folder();
    let log = folder.path().join("strace");
    let file = path(&folder, "x.nettrace");
    let to = ["--to", "nettrace,folded,speedscope", "-o", &file];
    for (verb, files) in
        [(&["trace", "--duration", "0.1s"][..], 3), (&["dump", "--crashreport", "-o", &file], 2)]
    {
        let ours = command(verb.iter().copied().chain(["--dport", &port(&runtime)]));
        let mut traced = Command::new("strace");
        traced.args(["-f", "-e", "trace=openat,connect", "-o"]).arg(&log);
        traced.arg(ours.get_program()).args(ours.get_args());
        if verb.first() == Some(&"trace") {
            traced.args(to);
        }
        // The result is irrelevant here.
        let finished = run(traced);
        let log = fs::read_to_string(&log).unwrap();
        let at = |what: &str| -> Vec<usize> {
            let lines = log.lines().enumerate().filter(|(_, line)| line.contains(what));
            lines.map(|(n, _)| n).collect()
        };
        let socket = runtime.path().to_str().unwrap();
        let connected = at(socket);
        let made = at("O_EXCL");
        assert!(!connected.is_empty(), "no request was sent: {finished}");
        assert!(made.len() >= files, "{log}");
        assert!(made.iter().take(files).all(|made| *made < connected[0]), "{log}");
    }
}

#[test]
fn recordings_are_readable_only_by_their_owner() {
    let folder = folder();
    let file = folder.path().join("x.nettrace");
    let kept = folder.path().join("x.folded");
    fs::write(&kept, "old").unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).unwrap();
    let demo = demo(&folder, "1");
    let options = ["--to", "nettrace,folded,speedscope", "-o", file.to_str().unwrap()];
    let traced = trace_of(options, &demo);
    let mut open = shell("umask 0; exec \"$@\"", words(&traced));
    open.envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(open).expect_code(0);
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("x.nettrace"), mode("x.speedscope.json")), (0o600, 0o600));
    assert_eq!(mode("x.folded"), 0o640, "what was there passes its mode on");
    assert!(fs::metadata(&kept).unwrap().len() > 3);
    let repaired = folder.path().join("r.nettrace");
    let cut = fs::read(&file).unwrap();
    fs::write(&file, &cut[..cut.len() - 1]).unwrap();
    runtap(["repair", file.to_str().unwrap(), "-o", repaired.to_str().unwrap()]).expect_code(0);
    assert_eq!(mode("r.nettrace"), 0o600);
    // These are world-readable.
    let mut man =
        shell("umask 022; exec \"$@\"", words(&command(["man", "--out-dir", &path(&folder, "man")])));
    man.env("TMPDIR", folder.path());
    run(man).expect_code(0);
    assert_eq!(mode("man/runtap.1"), 0o644);
}

/// By its name, by a link, or by another name of the file.
#[test]
fn no_verb_writes_over_its_input() {
    let (folder, file) = require!(recorded());
    let other = folder.path().join("other.nettrace");
    fs::copy(&file, &other).unwrap();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    let before = fs::read(&file).unwrap();
    for input in [&file, &other] {
        let _ = (fs::remove_file(&soft), fs::remove_file(&hard));
        symlink(input, &soft).unwrap();
        fs::hard_link(input, &hard).unwrap();
        for output in [input, &soft, &hard] {
            let refused = |verb: &[&str]| {
                let mut verb = command(verb);
                verb.arg("-o").arg(output);
                run(verb)
                    .expect_code(2)
                    .says("the recording")
                    .says("itself\n  hint: Choose another file with -o.");
            };
            let text = |path: &Path| path.to_str().unwrap().to_owned();
            refused(&["diff", &text(&file), &text(&other), "--to", "folded"]);
            refused(&["diff", &text(&file), &text(&other), "--to", "flamegraph"]);
            refused(&["convert", &text(input), "--to", "folded"]);
            refused(&["repair", &text(input)]);
        }
    }
    assert!(fs::read(&file).unwrap() == before && fs::read(&other).unwrap() == before);
    assert_eq!(names(folder.path()), ["hard", "other.nettrace", "soft", "x.nettrace"]);
}

/// If one of several formats can't be written, the others are.
#[test]
fn the_other_formats_are_written() {
    let (folder, file) = require!(recorded());
    fs::create_dir(folder.path().join("x.folded")).unwrap();
    let some = |verb: &[&str]| -> Finished {
        let finished = runtap(verb);
        finished.expect_code(1).says("can't write").says("x.folded");
        finished
    };
    let file = file.to_str().unwrap();
    let told = some(&["convert", file, "--to", "speedscope,folded,flamegraph", "--format", "json"]);
    let formats: Vec<Value> =
        told.json()["outputs"].as_array().unwrap().iter().map(|it| it["format"].clone()).collect();
    assert_eq!(formats, ["speedscope", "flamegraph"]);
    let text = some(&["convert", file, "--to", "folded,pprof"]);
    assert!(text.text().contains("x.pb.gz"), "{text}");
    let output = path(&folder, "x.folded");
    some(&["diff", file, file, "--to", "folded,flamegraph", "-o", &output]);
    assert_eq!(names(folder.path()), ["x.folded", "x.nettrace", "x.pb.gz", "x.speedscope.json", "x.svg"]);
}

/// After a recording: a folder has taken the name meanwhile.
#[test]
fn the_other_formats_are_written_after_a_recording() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let demo = demo(&folder, "1");
    // The program itself creates a folder with that name.
    let script = "mkdir \"$TMPDIR/x.folded\" && exec \"$@\"";
    let mut launched = shell(script, words(&demo));
    launched.env("TMPDIR", folder.path());
    let options =
        ["--providers", DEMO, "--profile", "cpu-sampling", "--to", "folded,speedscope,nettrace", "-o", &file];
    let told = run(trace_of(options, &launched));
    told.expect_code(125).says("x.folded");
    assert!(told.text().contains("x.speedscope.json") && told.text().contains("x.nettrace"), "{told}");
    assert_eq!(names(folder.path()), ["x.folded", "x.nettrace", "x.speedscope.json"]);
}
