//! runtap never crashes a target: every request that the verbs can produce, with the most extreme values, for a running
//! program and a suspended one. The success of a verb is not checked here.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use runtap_record::providers::PROFILES;
use runtap_testkit::{Launch, RealRuntime, Skip, eventually, shared_dir};

use crate::common::{Target, VERBS, folder, runtap};

on_each_runtime!(a_running_program_survives_everything, a_waiting_program_survives_everything);

const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];
const CLASS_ID: &str = "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0";

/// Options that select the process, or format results.
const UNRELATED_OPTIONS: [&str; 11] = [
    "--help",
    "--quiet",
    "--verbose",
    "--color",
    "--process-id",
    "--name",
    "--diagnostic-port",
    "--token-file",
    "--all",
    "--user",
    "--format",
];
/// Options for a launched command, which these programs are not.
const COMMAND_OPTIONS: [&str; 3] = ["--show-child-io", "--dial-in", "--kill-command"];

/// A target, and the verbs with options that were tried on it.
struct Trial {
    target: Target,
    tried: RefCell<BTreeSet<(String, String)>>,
}

impl Trial {
    fn of(target: Target) -> Self {
        Self { target, tried: RefCell::default() }
    }

    /// Runs a verb, which may fail, and checks that the target is still running.
    #[track_caller]
    fn check_survival(&self, verb: &[&str], rest: &[String]) {
        let p = self.target.p();
        let words = verb.iter().copied().chain(["-p", &p]).chain(rest.iter().map(String::as_str));
        let name =
            verb.iter().take_while(|word| !word.starts_with('-')).copied().collect::<Vec<_>>().join(" ");
        let mut tried = self.tried.borrow_mut();
        tried.insert((name.clone(), String::new()));
        for word in words.clone().filter(|word| word.starts_with('-')) {
            let word = if word == "-o" { "--output" } else { word };
            tried.insert((name.clone(), word.to_owned()));
        }
        let finished = runtap(words);
        assert!(finished.code().is_some_and(|code| code <= 6), "runtap itself failed: {finished}");
        let stat = std::fs::read_to_string(format!("/proc/{p}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        assert!(state.is_some_and(|state| !"ZX".contains(state)), "the target died of {finished}");
    }

    /// Checks that every option in the help was tried: new options have to be added here.
    #[track_caller]
    fn nothing_was_left_out(&self) {
        let tried = self.tried.borrow();
        for verb in VERBS {
            let name = verb.join(" ");
            assert!(tried.contains(&(name.clone(), String::new())), "{name}");
            let help = runtap(verb.iter().copied().chain(["--help"]));
            let mut options = 0;
            for line in help.expect_code(0).text().lines().map(str::trim_start) {
                // An option is at the start of its line, separated from the text: `-o, --output <FILE>`.
                let line = match line.split_once(", ") {
                    Some((short, long)) if short.len() == 2 => long,
                    _ => line,
                };
                if !line.starts_with("--") {
                    continue;
                }
                let option = line.split([' ', '[', '.']).next().unwrap_or_default();
                // The text of an option may begin with an option too.
                if !option.bytes().all(|b| b == b'-' || b.is_ascii_lowercase()) {
                    continue;
                }
                options += 1;
                if !UNRELATED_OPTIONS.contains(&option) && !COMMAND_OPTIONS.contains(&option) {
                    assert!(tried.contains(&(name.clone(), option.to_owned())), "{name} {option}");
                }
            }
            assert!(options >= UNRELATED_OPTIONS.len() - 2, "{name}: {help}");
        }
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Tries all verbs except sessions.
fn change_everything(target: &Trial, dumps: &Path) -> Result<(), Skip> {
    let shared = shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))?;
    let hook = shared.join("apps/dotnet/startuphook/bin/startuphook.dll").display().to_string();
    let library = shared.join("apps/dotnet/profiler/bin/libdemoprofiler.so").display().to_string();
    let long = |n: usize| "x".repeat(n);
    let path = |name: String| dumps.join(name).display().to_string();

    for verb in ["info", "env", "doctor", "stack"] {
        target.check_survival(&[verb], &[]);
    }
    target.check_survival(&["stack"], &texts(&["--merge", "--locks", "--no-virtual"]));
    target.check_survival(&["stack"], &texts(&["--async"]));
    for word in [
        format!("{}=1", long(20_000)),
        format!("A={}", long(32_000)),
        format!("A={}", long(60_000)),
        "A\n\u{1}\u{202e}=\u{10ffff}".to_owned(),
        "=".to_owned(),
        "A=".to_owned(),
        long(32_700),
    ] {
        target.check_survival(&["set-env"], &[word]);
    }
    for kind in ["jitdump", "perfmap", "all"] {
        target.check_survival(&["perfmap", "enable"], &texts(&["--type", kind]));
    }
    target.check_survival(&["perfmap", "disable"], &[]);
    target.check_survival(&["perfmap", "disable"], &[]);

    for hook in [
        hook.clone(),
        hook.clone(),
        format!("{hook}:{hook}"),
        format!("/{}", long(4_000)),
        "x".into(),
        "/\n".into(),
        library.clone(),
    ] {
        target.check_survival(&["startup-hook"], &[hook]);
    }
    for (class_id, library) in [
        ("00000000-0000-0000-0000-000000000000", &library),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", &library),
        (CLASS_ID, &hook),
        (CLASS_ID, &format!("/{}", long(30_000))),
        (CLASS_ID, &"/dev/null".to_owned()),
    ] {
        let profiler = texts(&["--clsid", class_id, "--path", library]);
        target.check_survival(&["profiler", "startup"], &profiler);
        target.check_survival(&["profiler", "attach"], &profiler);
    }
    for (timeout, data) in [
        ("1ms", "fail".to_owned()),
        ("49d", format!("fail{}", long(40_000))),
        ("1d", long(65_000)),
        ("1s", long(60_000)),
        ("0s", "fail".to_owned()),
        ("99999999999h", "fail".to_owned()),
    ] {
        target.check_survival(
            &["profiler", "attach"],
            &texts(&["--clsid", CLASS_ID, "--path", &library, "--timeout", timeout, "--data", &data]),
        );
    }
    target.check_survival(&["profiler", "startup"], &texts(&["--clsid", CLASS_ID, "--path", &library]));

    for kind in ["mini", "triage", "heap", "full"] {
        target.check_survival(
            &["dump", "--crashreport", "--diag"],
            &texts(&["--type", kind, "-o", &path(format!("{kind}%%%p"))]),
        );
    }
    for name in [long(255), long(256), format!("{}/x", long(255)), "a\nb".to_owned()] {
        target.check_survival(&["dump"], &texts(&["--type", "mini", "-o", &path(name)]));
    }
    Ok(())
}

/// Tries sessions of every kind, with additional options for each.
fn record_everything(target: &Trial, place: &Path, more: &[&str]) {
    let file = place.join("x.nettrace").display().to_string();
    let many = |n: usize| (0..n).map(|n| format!("P{n}:1:1")).collect::<Vec<_>>().join(",");
    let gc = "Microsoft-Windows-DotNETRuntime";
    let (many_providers, too_many) = (many(1_000), many(1_001));
    let long = format!("{}:ffffffffffffffff:5:{}", "n".repeat(5_000), "a".repeat(20_000));
    let all_keywords =
        format!("{gc}:ffffffffffffffff:5,{gc}Rundown:ffffffffffffffff:5,{gc}Private:ffffffffffffffff:5");
    let (most_ids, all_but_two, too_many_ids) =
        (format!("{gc}=0-9999"), format!("{gc}=!0,4294967295"), format!("{gc}=0-10000"));
    let mut sessions = vec![
        vec!["--buffersize", "0"],
        vec!["--buffersize", "1"],
        vec!["--buffersize", "4294967295", "--rundown", "false"],
        vec!["--buffersize", "4294967296"],
        vec!["--rundown", "true"],
        vec!["--rundown-keyword", "ffffffffffffffff"],
        vec!["--rundown-keyword", "0", "--no-stackwalk", "--buffering-mode", "block"],
        vec!["--providers", &many_providers, "--rundown", "false"],
        vec!["--providers", &too_many],
        vec!["--providers", &long],
        vec!["--providers", &all_keywords],
        vec!["--providers", "A:1:0:x=\"\",B::9"],
        vec!["--providers", "\u{1}\u{202e} é中😀:1:5:\u{7f}=%n;;=="],
        vec!["--clrevents", "gc", "--event-filter", &most_ids],
        vec!["--clrevents", "gc", "--event-filter", &all_but_two],
        vec!["--clrevents", "gc", "--event-filter", &too_many_ids],
        vec!["--clrevents", "gcheapdump+gcheapcollect", "--clreventlevel", "0"],
        vec!["--clrevents", "gc+jit+exception", "--clreventlevel", "5"],
        vec!["--clrevents", "gc", "--clreventlevel", "6"],
        vec![
            "--stopping-event-provider-name",
            gc,
            "--stopping-event-event-name",
            "*",
            "--stopping-event-payload-filter",
            "A:",
        ],
        vec!["--method-names"],
        vec!["--to", "speedscope", "--max-depth", "1", "--max-size", "1"],
        vec!["--children"],
        vec!["--children", "--merge", "--to", "speedscope", "--evented", "--view", "alloc"],
        vec!["--to", "speedscope", "--compat", "dotnet-trace"],
        vec!["--to", "flamegraph", "--merge-threads"],
    ];
    sessions.extend(PROFILES.iter().map(|profile| vec!["--profile", profile.name]));
    for session in sessions {
        let rest =
            texts(&session).into_iter().chain(texts(&["--duration", "50ms", "-o", &file])).chain(texts(more));
        target.check_survival(&["trace"], &rest.collect::<Vec<_>>());
    }
    for duration in ["0", "0.000000001"] {
        target.check_survival(&["trace"], &texts(&[&["--duration", duration, "-o", &file], more].concat()));
    }
    for spec in ["A", &format!("{gc}:0-9999={}", "x".repeat(300)), "{provider}_{pid}", "="] {
        target.check_survival(&["trace", "--user-events", spec, "--duration", "50ms"], &texts(more));
    }
}

/// Tries the verbs that resume a suspended program.
fn try_resuming(target: &Trial) {
    for session in [
        vec!["--clrevents", "gc", "--clreventlevel", "5", "--buffersize", "1"],
        vec![
            "--providers",
            "P:ffffffffffffffff:5",
            "--buffersize",
            "4294967295",
            "--provider",
            "X",
            "--filter",
            "id > 1",
        ],
        vec!["--profile", "dotnet-common"],
    ] {
        target.check_survival(&["tail", "--duration", "50ms"], &texts(&session));
    }
    // A session that starts while the runtime writes its first counters may never be answered (dotnet/runtime#119014).
    let p = target.target.p();
    eventually("counters", || {
        let words = ["counters", "collect", "-p", &p, "--refresh-interval", "200ms", "--duration", "3s"];
        let done = runtap(words.into_iter().chain(["--to", "jsonl", "-o", "-"]));
        done.text().contains("\"type\":\"counter\"").then_some(())
    });
    let long = "n".repeat(20_000);
    for counters in [
        vec!["--counters", "System.Runtime", "--refresh-interval", "1ms"],
        vec!["--counters", "A\u{1}\u{202e}é[b;=\"],EventCounters\\X[]", "--maxTimeSeries", "4294967295"],
        vec!["--counters", &long, "--refresh-interval", "99999999999h", "--maxHistograms", "4294967295"],
        vec!["--children"],
        vec!["--wait"],
    ] {
        for verb in [&["counters", "monitor"][..], &["counters", "collect", "--to", "csv", "-o", "-"]] {
            target.check_survival(verb, &texts(&[&counters[..], &["--duration", "50ms"]].concat()));
        }
    }
    for top in [
        vec!["--refresh-interval", "1ms", "--window", "1ns", "--inclusive", "--number", "1"],
        vec!["--refresh-interval", "99999999999h", "--window", "99999999999h", "--view", "thread-time"],
    ] {
        target.check_survival(&["top"], &texts(&[&top[..], &["--duration", "50ms"]].concat()));
    }
    for heap in [
        vec!["--report", "--sort", "retained", "--number", "1", "--buffersize", "1"],
        vec!["--report", "--path", "0x1", "--buffersize", "4294967295"],
        vec!["--to", "dot", "-o", "/dev/null", "--timeout", "0s"],
        vec!["--quick"],
    ] {
        target.check_survival(&["heap"], &texts(&heap));
    }
    target.check_survival(&["resume"], &texts(&["--duration", "0"]));
    target.check_survival(&["resume"], &texts(&["--duration", "99999999999h"]));
}

fn a_running_program_survives_everything(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = folder();
    let out = place.path().join("out");
    let launch = runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out).env("DEMO_PROFILER_OUT", &out);
    let launch = into_a_file(launch.env("DOTNET_PerfMapJitDumpPath", place.path()), place.path());
    let target = Target::start_unready(launch);
    eventually("the program", || says(place.path(), "ready").then_some(()));
    let mut target = Trial::of(target);
    change_everything(&target, place.path())?;
    for resume in ["true", "false"] {
        record_everything(&target, place.path(), &["--resume-runtime", resume]);
    }
    try_resuming(&target);
    target.nothing_was_left_out();
    let program = &mut target.target.program;
    program.begin();
    assert!(program.wait().success(), "it came to its own end");
    assert!(says(place.path(), "done"));
    Ok(())
}

/// Redirects the target's standard output, to which createdump prints its progress, to a file: with --diag, a full pipe
/// would block it.
fn into_a_file(launch: Launch, place: &Path) -> Launch {
    let script = format!("exec \"$@\" > '{}'", place.join("said").display());
    launch.wrapped_by(&["sh", "-c", &script, "sh"])
}

/// Returns whether the program has printed such a line.
fn says(place: &Path, line: &str) -> bool {
    std::fs::read(place.join("said"))
        .is_ok_and(|said| said.split(|b| *b == b'\n').any(|it| it == line.as_bytes()))
}

fn a_waiting_program_survives_everything(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = folder();
    let out = place.path().join("out");
    let launch = runtime.program("spin", &IDLE)?.env("DEMO_HOOK_OUT", &out).env("DEMO_PROFILER_OUT", &out);
    let launch = into_a_file(launch.env("DOTNET_PerfMapJitDumpPath", place.path()), place.path());
    let mut target = Trial::of(Target::suspended(launch));
    change_everything(&target, place.path())?;
    record_everything(&target, place.path(), &["--resume-runtime", "false"]);
    try_resuming(&target);
    target.nothing_was_left_out();
    let program = &mut target.target.program;
    program.begin();
    assert!(program.wait().success(), "it came to its own end");
    assert!(says(place.path(), "done"));
    Ok(())
}
