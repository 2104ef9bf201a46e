//! The verbs that change a process: their output, and their effect.

use std::fs;
use std::path::{Path, PathBuf};

use runtap_testkit::{RealRuntime, Skip, eventually, run, shared_dir};
use serde_json::Value;

use crate::common::{Target, command, folder, json, runtap};

on_each_runtime!(
    variables_change_for_the_program,
    a_hook_runs_at_once,
    a_hook_waits_for_a_suspended_program,
    a_file_that_is_not_an_assembly_is_not_sent_as_a_hook,
    a_profiler_is_attached_with_its_data,
    the_error_of_a_profiler_is_reported,
    a_profiler_is_loaded_at_the_start,
    perf_maps_grow_until_they_are_disabled,
    a_perf_map_at_startup_is_rejected_where_it_would_crash_the_runtime,
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];
pub(crate) const CLASS_ID: &str = "{D0D0CAFE-0001-4002-8003-A0B0C0D0E0F0}";

pub(crate) fn hook() -> Result<String, Skip> {
    Ok(shared("apps/dotnet/startuphook/bin/startuphook.dll")?.display().to_string())
}

pub(crate) fn profiler() -> Result<String, Skip> {
    Ok(shared("apps/dotnet/profiler/bin/libdemoprofiler.so")?.display().to_string())
}

fn shared(path: &str) -> Result<PathBuf, Skip> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))?;
    Ok(shared.join(path))
}

#[track_caller]
fn env(target: &Target, name: &str) -> Option<String> {
    let document = json(["env", &target.p(), "--format", "json"]);
    let mut variables = document["variables"].as_array().unwrap().iter();
    let found = variables.find(|variable| variable["name"] == name)?;
    Some(found["value"].as_str().unwrap().to_owned())
}

fn variables_change_for_the_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?.env("RUNTAP_E2E_OLD", "old"));
    let p = target.p();
    runtap(["set-env", &p, "RUNTAP_E2E_A=grün 🦀=1", "RUNTAP_E2E_EMPTY=", "RUNTAP_E2E_OLD"]).expect_code(0);
    assert_eq!(env(&target, "RUNTAP_E2E_A").as_deref(), Some("grün 🦀=1"));
    assert_eq!(env(&target, "RUNTAP_E2E_EMPTY").as_deref(), Some(""));
    assert_eq!(env(&target, "RUNTAP_E2E_OLD"), None);
    // The program itself sees the variable: its hook writes to the file that the variable names.
    let out = target.temp.path().join("hook.txt");
    runtap(["set-env", "-p", &p, &format!("DEMO_HOOK_OUT={}", out.display())]).expect_code(0);
    runtap(["startup-hook", &p, &hook()?]).expect_code(0);
    assert!(fs::read_to_string(&out).unwrap().starts_with(&format!("hook pid={p} ")));
    // An error in one assignment prevents all of them.
    runtap(["set-env", &p, "RUNTAP_E2E_B=1", "=2"]).expect_code(2).says("has no variable name");
    assert_eq!(env(&target, "RUNTAP_E2E_B"), None);
    runtap(["set-env", &p]).expect_code(2);
    target.still_answers();
    Ok(())
}

fn a_hook_runs_at_once(runtime: &RealRuntime) -> Result<(), Skip> {
    let out = folder();
    let out = out.path().join("hook.txt");
    let target = Target::start(runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out));
    runtap(["startup-hook", "-p", &target.p(), &hook()?]).expect_code(0).says("startuphook.dll");
    let line = fs::read_to_string(&out).unwrap();
    assert!(line.contains("entry=spin args=0.05|1000|--stdin"), "{line}");
    // A repeated hook runs again. A relative path refers to runtap's working directory.
    let hook = PathBuf::from(hook()?);
    let mut again = command(["startup-hook", &target.p(), "startuphook.dll"]);
    again.current_dir(hook.parent().unwrap());
    run(again).expect_code(0);
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 2);
    target.still_answers();
    Ok(())
}

fn a_hook_waits_for_a_suspended_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let out = folder();
    let out = out.path().join("hook.txt");
    let target = Target::suspended(runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out));
    runtap(["startup-hook", &target.p(), &hook()?]).expect_code(0);
    assert!(!out.exists(), "it waits, too");
    target.resume_to_its_end();
    assert!(fs::read_to_string(&out).unwrap().contains(" thread=1 "), "before Main, on its thread");
    Ok(())
}

fn a_file_that_is_not_an_assembly_is_not_sent_as_a_hook(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let text = target.temp.path().join("text.dll");
    fs::write(&text, "no assembly").unwrap();
    let spin = shared("apps/dotnet/spin/bin/spin.dll")?;
    let good = hook()?;
    for (path, why) in [
        (spin.to_str().unwrap(), "no class StartupHook"),
        (text.to_str().unwrap(), "not a .NET assembly"),
        (&profiler()?, "not a .NET assembly"),
        (target.temp.path().to_str().unwrap(), "not a file"),
        ("/nowhere/hook.dll", "/nowhere/hook.dll"),
        ("no-hook.dll", "/no-hook.dll"),
        (&format!("{good}:{good}"), "colon"),
        ("", "path"),
    ] {
        runtap(["startup-hook", "-p", &target.p(), path]).expect_code(2).says(why);
    }
    target.still_answers();
    Ok(())
}

fn a_profiler_is_attached_with_its_data(runtime: &RealRuntime) -> Result<(), Skip> {
    let out = folder();
    let out = out.path().join("profiler.txt");
    let target = Target::start(runtime.program("spin", &IDLE)?.env("DEMO_PROFILER_OUT", &out));
    let library = profiler()?;
    let attach =
        ["profiler", "attach", &target.p(), "--clsid", CLASS_ID, "--path", &library, "--data", "hex:00ff41"];
    runtap(attach).expect_code(0).says("is attached");
    assert_eq!(fs::read_to_string(&out).unwrap(), "attach 3 00ff41\nattached\n");
    let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    assert!(maps.contains("libdemoprofiler.so"));
    runtap(attach).expect_code(4).says("0x8013136a").says("only one profiler in its lifetime");
    target.still_answers();
    Ok(())
}

fn the_error_of_a_profiler_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let library = profiler()?;
    let attach = |class: &str, path: &str, data: &str| {
        runtap(["profiler", "attach", &target.p(), "--clsid", class, "--path", path, "--data", data])
    };
    attach(CLASS_ID, &library, "fail").expect_code(4).says("0x80131375");
    attach("00000000-0000-0000-0000-000000000001", &library, "").expect_code(4).says("0x80040111");
    for (path, why) in [
        ("/nowhere/lib.so", "/nowhere/lib.so"),
        (target.temp.path().to_str().unwrap(), "not a file"),
        (&hook()?, "not a shared library"),
        ("lib.so", "relative"),
    ] {
        attach(CLASS_ID, path, "").expect_code(2).says(why);
    }
    attach("not-a-guid", &library, "").expect_code(2).says("not a class id");
    target.still_answers();
    Ok(())
}

fn a_profiler_is_loaded_at_the_start(runtime: &RealRuntime) -> Result<(), Skip> {
    let out = folder();
    let out = out.path().join("profiler.txt");
    let target = Target::suspended(runtime.program("spin", &IDLE)?.env("DEMO_PROFILER_OUT", &out));
    let library = profiler()?;
    let words = |verb: &str| {
        ["profiler", verb, &target.p(), "--clsid", CLASS_ID, "--path", &library].map(str::to_owned)
    };
    runtap(words("attach")).expect_code(4).says("0x8013135b").says("resume it first");
    runtap(words("startup")).expect_code(0).says("runtap resume");
    assert!(!out.exists());
    let again = words("startup");
    target.resume_to_its_end();
    assert_eq!(fs::read_to_string(&out).unwrap(), "init\nshutdown\n");

    // A running program would answer OK and do nothing.
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let mut again = again;
    again[2] = target.p();
    runtap(again).expect_code(4).says("already running");
    target.still_answers();
    Ok(())
}

fn perf_maps_grow_until_they_are_disabled(runtime: &RealRuntime) -> Result<(), Skip> {
    let maps = folder();
    let launch = runtime.program("manymethods", &["40000", "--stdin", "--linger", "600"])?;
    let mut target = Target::start(launch.env("DOTNET_PerfMapJitDumpPath", maps.path()));
    let p = target.p();
    let enabled = json(["perfmap", "enable", &p, "--type", "PerfMap", "--format", "json"]);
    assert_eq!(
        (&enabled["schema"], &enabled["pid"]),
        (&Value::from("runtap.perfmap/1"), &Value::from(target.pid()))
    );
    let map = maps.path().join(format!("perf-{p}.map"));
    let files: Vec<&str> =
        enabled["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(files.contains(&map.to_str().unwrap()), "{files:?}");
    assert_eq!(files.len(), if runtime.major() == 8 { 2 } else { 1 }, "{files:?}");
    let size = |map: &Path| fs::metadata(map).unwrap().len();
    let before = size(&map);
    target.program.begin();
    eventually("the map grows", || (size(&map) > before + 10_000).then_some(()));
    json(["perfmap", "disable", &p, "--format", "json"]);
    let stopped = size(&map);
    let text = fs::read_to_string(&map).unwrap();
    assert!(text.contains("Program::Main(string[])"), "methods compiled earlier are in it");
    assert!(text.contains("dm_00"), "{}", text.len());
    target.program.wait_for("done");
    assert_eq!(size(&map), stopped, "nothing is written any more");
    assert!(!text.contains("dm_19999"), "the program had not compiled all of them by then");
    // All of them are sent again.
    let all = json(["perfmap", "enable", &p, "--format", "json"]);
    assert!(
        all["files"]
            .as_array()
            .unwrap()
            .iter()
            .any(|file| { file["path"].as_str().unwrap().ends_with(&format!("jit-{p}.dump")) })
    );
    runtap(["perfmap", "disable", &p]).expect_code(0);
    Ok(())
}

fn a_perf_map_at_startup_is_rejected_where_it_would_crash_the_runtime(
    runtime: &RealRuntime,
) -> Result<(), Skip> {
    let maps = folder();
    let target =
        Target::suspended(runtime.program("spin", &IDLE)?.env("DOTNET_PerfMapJitDumpPath", maps.path()));
    let enabled = runtap(["perfmap", "enable", &target.p()]);
    if runtime.major() < 10 {
        enabled.expect_code(4).says("suspended at startup").says("DOTNET_PerfMapEnabled");
    } else {
        enabled.expect_code(0);
    }
    target.resume_to_its_end();
    Ok(())
}
