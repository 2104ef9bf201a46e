//! Process commands, the section of this name in the specification: information, environment, perf maps, startup hooks.

use std::fs;
use std::path::PathBuf;

use runtap_diag_proto::{InfoForm, PerfMapType, Reply, Request};
use runtap_testkit::{Skip, shared_dir};

use super::{NO_PORT_31, Note, Row};
use crate::cell::{Found, NOT_SENT, Stop};
use crate::column::Key;
use crate::room::Room;
use crate::target::{Target, VARIABLE};

pub(super) const ROWS: &[Row] = &[
    Row {
        request: "0x0400 ProcessInfo",
        checked: "pid, command line, system, architecture",
        section: "ProcessInfo",
        since: 5,
        run: |room| info(room, InfoForm::ProcessInfo),
        notes: &[],
    },
    Row {
        request: "0x0404 ProcessInfo2",
        checked: "also the entry assembly and the version; the cookie of 0x0400",
        section: "ProcessInfo2",
        since: 6,
        run: |room| info(room, InfoForm::ProcessInfo2),
        notes: &[],
    },
    Row {
        request: "0x0408 ProcessInfo3",
        checked: "also the portable RID; the cookie of 0x0400",
        section: "ProcessInfo3",
        since: 8,
        run: |room| info(room, InfoForm::ProcessInfo3),
        notes: &[],
    },
    Row {
        request: "0x0401 ResumeRuntime: suspended at startup, over its own socket",
        checked: "the program runs afterwards",
        section: "ResumeRuntime",
        since: 5,
        run: resumed,
        notes: &[],
    },
    Row {
        request: "0x0401 ResumeRuntime: of a running program",
        checked: "nothing more: there is nothing to do",
        section: "ResumeRuntime",
        since: 5,
        run: |room| Ok(room.target()?.ask(Request::ResumeRuntime)? == Reply::Resumed),
        notes: &[],
    },
    Row {
        request: "0x0402 ProcessEnvironment",
        checked: "a variable set for this test, with a blank, an equals sign and a letter beyond ASCII",
        section: "ProcessEnvironment",
        since: 5,
        run: environment,
        notes: &[],
    },
    Row {
        request: "0x0403 SetEnvironmentVariable: a value",
        checked: "0x0402 has it",
        section: "Commands",
        since: 6,
        run: |room| set(room, Some("new")),
        notes: &[],
    },
    Row {
        request: "0x0403 SetEnvironmentVariable: no value",
        checked: "0x0402 has the variable no more",
        section: "Commands",
        since: 6,
        run: |room| set(room, None),
        notes: &[],
    },
    Row {
        request: "0x0405 EnablePerfMap: type 1, all",
        checked: "perf-PID.map with the program's methods, and jit-PID.dump",
        section: "EnablePerfMap",
        since: 8,
        run: |room| perf_map(room, PerfMapType::All),
        notes: &[],
    },
    Row {
        request: "0x0405 EnablePerfMap: type 2, jitdump",
        checked: "jit-PID.dump, and no perf-PID.map",
        section: "EnablePerfMap",
        since: 8,
        run: |room| perf_map(room, PerfMapType::JitDump),
        notes: &[],
    },
    Row {
        request: "0x0405 EnablePerfMap: type 3, perf map",
        checked: "perf-PID.map with the program's methods, and no jit-PID.dump",
        section: "EnablePerfMap",
        since: 8,
        run: |room| perf_map(room, PerfMapType::PerfMap),
        notes: &[],
    },
    Row {
        request: "0x0405 EnablePerfMap: while suspended at startup",
        checked: "perf-PID.map with the program's methods, after the resume",
        section: "EnablePerfMap",
        since: 8,
        run: perf_map_while_suspended,
        notes: &[
            NO_PORT_31,
            Note {
                of: &[Key::Net8, Key::Net9],
                cell: NOT_SENT,
                why: "The request would crash the process (SIGSEGV), so runtap requests the version first. \
                      `DOTNET_PerfMapEnabled` in the environment has the same effect there.",
            },
        ],
    },
    Row {
        request: "0x0406 DisablePerfMap",
        checked: "perf-PID.map does not grow while new methods are compiled",
        section: "DisablePerfMap",
        since: 8,
        run: no_perf_map,
        notes: &[],
    },
    Row {
        request: "0x0407 ApplyStartupHook: of a running program",
        checked: "the hook has run in the process",
        section: "ApplyStartupHook",
        since: 8,
        run: hook,
        notes: &[],
    },
    Row {
        request: "0x0407 ApplyStartupHook: while suspended at startup",
        checked: "the hook has run when the program begins",
        section: "ApplyStartupHook",
        since: 8,
        run: hook_while_suspended,
        notes: &[NO_PORT_31],
    },
    Row {
        request: "0x0407 ApplyStartupHook: a file that is not there",
        checked: "the error",
        section: "ApplyStartupHook",
        since: 8,
        run: missing_hook,
        notes: &[Note {
            of: super::ALL,
            cell: NOT_SENT,
            why: "The request would terminate .NET 9 and 10 (an unhandled exception), so runtap checks the \
                  file in the target's file system first.",
        }],
    },
];

fn info(room: &Room<'_>, form: InfoForm) -> Found {
    let target = room.target()?;
    let info = target.info(form)?;
    let first = target.info(InfoForm::ProcessInfo)?;
    let later = |since: InfoForm, field: &Option<String>, expected: &str| {
        field.as_deref() == (form >= since).then_some(expected)
    };
    Ok(info.process_id == u64::from(target.id())
        && !info.command_line.is_empty()
        && info.command_line == first.command_line
        && info.runtime_cookie == first.runtime_cookie
        && (info.os.as_str(), info.arch.as_str()) == ("Linux", "x64")
        && later(InfoForm::ProcessInfo2, &info.entry_assembly, target.about.name)
        && later(InfoForm::ProcessInfo2, &info.runtime_version, room.column.claimed())
        && later(InfoForm::ProcessInfo3, &info.portable_rid, "linux-x64"))
}

fn resumed(room: &Room<'_>) -> Found {
    let mut target = Target::suspended_on_socket(room)?;
    target.resume()?;
    Ok(true)
}

/// Returns the current value of an environment variable of the target.
fn variable(target: &Target<'_>, name: &str) -> Result<Option<String>, Stop> {
    match target.ask(Request::ProcessEnvironment)? {
        Reply::Environment(variables) => {
            let found = variables.iter().find(|variable| variable.name() == name);
            Ok(found.and_then(|variable| variable.value()).map(ToString::to_string))
        }
        other => Err(anyhow::anyhow!("{other:?}").into()),
    }
}

fn environment(room: &Room<'_>) -> Found {
    Ok(variable(&room.target()?, VARIABLE.0)?.as_deref() == Some(VARIABLE.1))
}

fn set(room: &Room<'_>, value: Option<&str>) -> Found {
    let target = room.target()?;
    let name = VARIABLE.0.to_owned();
    target.ask(Request::SetEnvironmentVariable { name, value: value.map(str::to_owned) })?;
    if let Some(requests) = target.requests() {
        return Ok(requests == [format!("set {} {value:?}", VARIABLE.0)]);
    }
    Ok(variable(&target, VARIABLE.0)?.as_deref() == value)
}

/// Returns the path to which the runtime writes its perf map, if it does.
fn map_file(room: &Room<'_>, target: &Target<'_>) -> PathBuf {
    room.file(&format!("perf-{}.map", target.id()))
}

/// Returns whether the files have the expected content, or runtap's server received the expected request.
fn maps(room: &Room<'_>, target: &Target<'_>, kind: PerfMapType) -> bool {
    if let Some(requests) = target.requests() {
        return requests == [format!("perf map {}", kind.number())];
    }
    let map = fs::read_to_string(map_file(room, target)).unwrap_or_default();
    // The lines have the form `start size name`.
    let has_map = map.lines().any(|line| line.contains(&format!("[{}] Program::Main", target.about.name)));
    let has_dump = room.file(&format!("jit-{}.dump", target.id())).is_file();
    match kind {
        PerfMapType::JitDump => has_dump && map.is_empty(),
        PerfMapType::PerfMap => has_map && !has_dump,
        _ => has_map && has_dump,
    }
}

fn perf_map(room: &Room<'_>, kind: PerfMapType) -> Found {
    let target = room.target()?;
    target.ask(Request::EnablePerfMap(kind))?;
    // Flushes the last lines of the map.
    let enabled = target.requests().map(|_| maps(room, &target, kind));
    target.ask(Request::DisablePerfMap)?;
    Ok(enabled.unwrap_or_else(|| maps(room, &target, kind)))
}

fn perf_map_while_suspended(room: &Room<'_>) -> Found {
    let mut target = room.suspended()?;
    target.ask(Request::EnablePerfMap(PerfMapType::PerfMap))?;
    target.resume()?;
    let enabled = target.requests().map(|_| maps(room, &target, PerfMapType::PerfMap));
    target.ask(Request::DisablePerfMap)?;
    Ok(enabled.unwrap_or_else(|| maps(room, &target, PerfMapType::PerfMap)))
}

fn no_perf_map(room: &Room<'_>) -> Found {
    let mut target = room.target()?;
    target.ask(Request::EnablePerfMap(PerfMapType::PerfMap))?;
    target.ask(Request::DisablePerfMap)?;
    if let Some(requests) = target.requests() {
        return Ok(requests == ["perf map 3", "no perf map"]);
    }
    let map = map_file(room, &target);
    let before = fs::read(&map)?;
    // The first round compiles all required methods.
    target.round();
    Ok(!before.is_empty() && fs::read(&map)? == before)
}

fn assembly() -> Result<String, Stop> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder"))?;
    Ok(shared.join("apps/dotnet/startuphook/bin/startuphook.dll").to_string_lossy().into_owned())
}

/// Sends a request that the client rejects because it would crash .NET 9 and 10.
fn missing_hook(room: &Room<'_>) -> Found {
    let mut target = room.target()?;
    let outcome = target.ask(Request::ApplyStartupHook { path: room.path("missing.dll") });
    // The process is still running.
    target.round();
    outcome.map(|_| false)
}

fn has_run(room: &Room<'_>, target: &Target<'_>) -> bool {
    if let Some(requests) = target.requests() {
        return requests.iter().all(|line| line.starts_with("hook /")) && !requests.is_empty();
    }
    let noted = fs::read_to_string(room.file("hook")).unwrap_or_default();
    noted.starts_with(&format!("hook pid={} runtime={}", target.id(), room.column.claimed()))
}

fn hook(room: &Room<'_>) -> Found {
    let target = room.target()?;
    target.ask(Request::ApplyStartupHook { path: assembly()? })?;
    Ok(has_run(room, &target))
}

fn hook_while_suspended(room: &Room<'_>) -> Found {
    let mut target = room.suspended()?;
    target.ask(Request::ApplyStartupHook { path: assembly()? })?;
    target.resume()?;
    Ok(has_run(room, &target))
}
