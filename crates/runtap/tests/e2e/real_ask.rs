//! `ps`, `info` and `env` report the facts about real processes, in the documented formats.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use runtap_testkit::{RealRuntime, Signal, Skip, eventually, run};
use serde_json::{Value, json};

use crate::common::{Recording, Target, command, count_of, counts, folder, json, ps_row, runtap};

on_each_runtime!(
    ps_and_info_describe_a_process,
    env_prints_the_environment_of_the_process,
    a_suspended_process_is_reported
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];

fn ps_and_info_describe_a_process(runtime: &RealRuntime) -> Result<(), Skip> {
    let launch = runtime.program("spin", &IDLE)?;
    let assembly = launch.assembly().display().to_string();
    let mut target = Target::start(launch);
    let version =
        target.program.lines().iter().find_map(|line| line.strip_prefix("runtime ")).unwrap().to_owned();
    let command_line = format!("{}/dotnet {assembly} 0.05 1000 --stdin", runtime.root().display());

    let row = ps_row(target.pid());
    let mut id = Command::new("id");
    id.arg("-un");
    let user = run(id).text().to_owned();
    assert_eq!(
        row,
        json!({
            "pid": target.pid(), "kind": "dotnet", "name": "spin", "command_line": command_line,
            "runtime_version": version, "arch": "x64", "user": user.trim(), "container": row["container"],
            "suspended": false, "reachable": true, "reason": null, "socket": target.socket(),
            "parent_pid": std::process::id(), "cpu_percent": row["cpu_percent"], "rss_bytes": row["rss_bytes"],
            "uptime_ns": row["uptime_ns"],
        })
    );
    assert!(row["cpu_percent"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["rss_bytes"].as_u64().unwrap() > 1_000_000, "{row}");
    assert!(row["uptime_ns"].as_u64().unwrap() < 600_000_000_000, "{row}");

    let info = json(["info", "-p", &target.p(), "--format", "json"]);
    let cookie = info["runtime_cookie"].as_str().unwrap();
    assert_eq!((cookie.len(), cookie.matches('-').count()), (36, 4), "{cookie}");
    assert_eq!(
        info,
        json!({
            "schema": "runtap.info/1", "pid": target.pid(), "runtime_cookie": cookie, "command_line": command_line,
            "os": "Linux", "arch": "x64", "entry_assembly": "spin", "runtime_version": version,
            "portable_rid": "linux-x64", "suspended": false, "kind": "dotnet", "entry": "spin", "user": user.trim(),
            "uptime_ns": info["uptime_ns"], "jvm": null,
        })
    );
    assert!(info["uptime_ns"].as_u64() >= row["uptime_ns"].as_u64(), "{info} {row}");
    let text = runtap(["info", &target.p()]);
    let text = text.expect_code(0).text();
    assert!(text.contains(&command_line) && text.contains(&version) && text.contains(cookie), "{text}");

    target.program.begin();
    target.program.wait_for("done");
    assert!(target.program.wait().success(), "the target came to its own end");
    Ok(())
}

fn env_prints_the_environment_of_the_process(runtime: &RealRuntime) -> Result<(), Skip> {
    let crab = "grün 🦀 = a;b\ttab";
    let launch = runtime.program("spin", &IDLE)?.env("RUNTAP_E2E_TEXT", crab).env("RUNTAP_E2E_EMPTY", "");
    let launch = launch.env("RUNTAP_E2E_LATIN1", OsString::from_vec(b"gr\xfcn".to_vec()));
    let target = Target::start(launch);
    let environment = json(["env", "-p", &target.p(), "--format", "json"]);
    assert_eq!(environment["schema"], "runtap.env/1");
    let variables = environment["variables"].as_array().unwrap();
    let value = |name: &str| -> &Value {
        let found: Vec<&Value> = variables.iter().filter(|variable| variable["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name} in {variables:#?}");
        &found[0]["value"]
    };
    assert_eq!(value("RUNTAP_E2E_TEXT"), crab);
    assert_eq!(value("RUNTAP_E2E_EMPTY"), "");
    assert_eq!(value("RUNTAP_E2E_LATIN1"), "gr\u{fffd}n", "what is no UTF-8 comes as the runtime sends it");
    assert_eq!(value("TMPDIR"), target.temp.path().to_str().unwrap());
    assert_eq!(value("DOTNET_ROOT"), runtime.root().to_str().unwrap());
    let text = run(command(["env", &target.p()]));
    assert!(text.expect_code(0).text().contains(&format!("RUNTAP_E2E_TEXT={crab}\n")));
    target.still_answers();
    Ok(())
}

/// A runtime that is suspended at startup is reported as such, resumed by a recording, and intact afterwards.
fn a_suspended_process_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let temp = folder();
    let launch = runtime.program("spin", &IDLE)?;
    let launch = launch.env("TMPDIR", temp.path()).env("DOTNET_DefaultDiagnosticPortSuspend", "1");
    let program = launch.spawn_unready();
    let mut target = Target { program, temp };
    let info = eventually("the suspended runtime", || {
        let asked = runtap(["info", "-p", &target.p(), "--format", "json"]);
        (asked.code() == Some(0)).then(|| asked.json())
    });
    assert_eq!(info["suspended"], true);
    assert_eq!(ps_row(target.pid())["suspended"], true);

    let file = target.temp.path().join("startup.nettrace");
    let recording = Recording::start(&target, file, &["--clrevents", "loader"]);
    target.program.wait_for("ready");
    recording.runtap.signal(Signal::INT);
    let file = recording.file.clone();
    let summary = recording.runtap.wait().expect_code(0).json();
    assert_eq!(summary["partial"], Value::Null);
    // The program's own assembly was loaded after the session started.
    let counts = counts(&file, 0);
    assert!(count_of(&counts, "Microsoft-Windows-DotNETRuntime", 154) > 0, "{counts:#}");
    target.still_answers();
    Ok(())
}
