//! A target is never killed by us: every request that the verbs can produce, with the most extreme values that they
//! take, to a program that runs and to one that waits at its start. Whether a verb succeeds is not judged here.

use std::path::Path;

use runtap_testkit::{RealRuntime, Skip, shared_dir};

use crate::common::{Target, folder, runtap};

on_each_runtime!(a_running_program_survives_everything, a_waiting_program_survives_everything);

const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];
const CLASS_ID: &str = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";

/// Runs a verb, which may refuse, and looks whether the target lives.
#[track_caller]
fn survives(target: &Target, verb: &[&str], rest: &[String]) {
    let p = target.p();
    let words = verb.iter().copied().chain(["-p", &p]).chain(rest.iter().map(String::as_str));
    let finished = runtap(words);
    assert!(finished.code().is_some_and(|code| code <= 6), "runtap itself failed: {finished}");
    let stat = std::fs::read_to_string(format!("/proc/{p}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    assert!(state.is_some_and(|state| !"ZX".contains(state)), "the target died of {finished}");
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Everything but sessions, which do not end in a program that waits.
fn change_everything(target: &Target, dumps: &Path) -> Result<(), Skip> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))?;
    let hook = shared.join("apps/dotnet/startuphook/bin/startuphook.dll").display().to_string();
    let library = shared.join("apps/dotnet/profiler/bin/libdemoprofiler.so").display().to_string();
    let long = |n: usize| "x".repeat(n);
    let path = |name: String| dumps.join(name).display().to_string();

    for word in [
        format!("{}=1", long(20_000)),
        format!("A={}", long(32_000)),
        format!("A={}", long(60_000)),
        "A\n\u{1}\u{202e}=\u{10ffff}".to_owned(),
        "=".to_owned(),
        long(32_700),
    ] {
        survives(target, &["set-env"], &[word]);
    }
    for kind in ["jitdump", "perfmap", "all"] {
        survives(target, &["perfmap", "enable"], &texts(&["--type", kind]));
    }
    survives(target, &["perfmap", "disable"], &[]);
    survives(target, &["perfmap", "disable"], &[]);

    for hook in [
        hook.clone(),
        hook.clone(),
        format!("{hook}:{hook}"),
        format!("/{}", long(4_000)),
        "x".into(),
        "/\n".into(),
        library.clone(),
    ] {
        survives(target, &["startup-hook"], &[hook]);
    }
    for (class_id, library) in [
        ("00000000-0000-0000-0000-000000000000", &library),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", &library),
        (CLASS_ID, &hook),
        (CLASS_ID, &format!("/{}", long(30_000))),
        (CLASS_ID, &"/dev/null".to_owned()),
    ] {
        let profiler = texts(&["--clsid", class_id, "--path", library]);
        survives(target, &["profiler", "startup"], &profiler);
        survives(target, &["profiler", "attach"], &profiler);
    }
    for (timeout, data) in [
        ("1ms", "fail".to_owned()),
        ("49d", format!("fail{}", long(40_000))),
        ("1d", long(65_000)),
        ("1s", long(60_000)),
    ] {
        survives(
            target,
            &["profiler", "attach"],
            &texts(&["--clsid", CLASS_ID, "--path", &library, "--timeout", timeout, "--data", &data]),
        );
    }
    survives(target, &["profiler", "startup"], &texts(&["--clsid", CLASS_ID, "--path", &library]));

    for kind in ["mini", "triage", "heap", "full"] {
        survives(
            target,
            &["dump", "--crashreport"],
            &texts(&["--type", kind, "-o", &path(format!("{kind}%%%p"))]),
        );
    }
    for name in [long(255), long(256), format!("{}/x", long(255)), "a\nb".to_owned()] {
        survives(target, &["dump"], &texts(&["--type", "mini", "-o", &path(name)]));
    }
    survives(target, &["resume"], &[]);
    Ok(())
}

fn a_running_program_survives_everything(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = folder();
    let out = place.path().join("out");
    let launch = runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out).env("DEMO_PROFILER_OUT", &out);
    let mut target = Target::start(launch.env("DOTNET_PerfMapJitDumpPath", place.path()));
    change_everything(&target, place.path())?;

    let file = place.path().join("x.nettrace").display().to_string();
    let many = |n: usize| (0..n).map(|n| format!("P{n}:1:1")).collect::<Vec<_>>().join(",");
    let gc = "Microsoft-Windows-DotNETRuntime";
    for session in [
        vec!["--buffersize", "1"],
        vec!["--buffersize", "4294967295", "--rundown", "false"],
        vec!["--rundown-keyword", "ffffffffffffffff"],
        vec!["--rundown-keyword", "0", "--no-stackwalk", "--buffering-mode", "block"],
        vec!["--providers", &many(1_000), "--rundown", "false"],
        vec!["--providers", &many(1_001)],
        vec!["--providers", &format!("{}:ffffffffffffffff:5:{}", "n".repeat(5_000), "a".repeat(20_000))],
        vec!["--providers", "A:1:0:x=\"\",B::9"],
        vec!["--clrevents", "gc", "--event-filter", &format!("{gc}=0-9999")],
        vec!["--clrevents", "gc", "--event-filter", &format!("{gc}=!0,4294967295")],
        vec!["--clrevents", "gc", "--event-filter", &format!("{gc}=0-10000")],
    ] {
        let rest = texts(&session).into_iter().chain(texts(&["--duration", "50ms", "-o", &file]));
        survives(&target, &["trace"], &rest.collect::<Vec<_>>());
    }
    target.still_answers();
    target.program.begin();
    target.program.wait_for("done");
    assert!(target.program.wait().success(), "it came to its own end");
    Ok(())
}

fn a_waiting_program_survives_everything(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = folder();
    let out = place.path().join("out");
    let launch = runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out).env("DEMO_PROFILER_OUT", &out);
    let target = Target::suspended(launch.env("DOTNET_PerfMapJitDumpPath", place.path()));
    change_everything(&target, place.path())?;
    target.resume_to_its_end();
    Ok(())
}
