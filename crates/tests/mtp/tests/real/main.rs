//! Real test applications, on real runtimes: every outcome that their tables state, and every way to end.

mod tables;

use std::time::Duration;

use runtap_mtp::{
    Mode, Module, ModuleFailure, RunEvent, RunOutcome, RunSpec, Stop, StopLevel, TestInfo, TestOutcome,
    TestResult, Totals, Transport, code, run,
};
use runtap_testkit::{RealRuntime, Skip, test_application};

/// What is run, and where the table of its outcomes is. xunit's ids depend on the path, so names are compared.
const APPLICATIONS: [(&str, &str, &str, &str); 6] = [
    ("orchard-1.8.4", "orchard.dll", "orchard", "expected-core.tsv"),
    ("orchard-2.3.3", "orchard.dll", "orchard", "expected-core.tsv"),
    ("orchard-2.5.2", "orchard.dll", "orchard", "expected-core.tsv"),
    ("library-mstest-4.5.2", "library-mstest.dll", "library-mstest", "expected.tsv"),
    ("library-nunit-5.0.0", "library-nunit.dll", "library-nunit", "expected.tsv"),
    ("library-xunit-3.2.2", "library-xunit.dll", "library-xunit", "expected.tsv"),
];

/// A run of one application, with these arguments.
fn spec(runtime: &RealRuntime, application: &str, file: &str, arguments: &[&str]) -> Result<RunSpec, Skip> {
    let module = test_application(application)?.join(file);
    let mut spec = RunSpec::new(vec![Module::new(module)]);
    spec.application.dotnet = Some(runtime.root().join("dotnet"));
    spec.application.arguments = arguments.iter().map(Into::into).collect();
    Ok(spec)
}

/// The newest orchard, playing a suite.
fn orchard(suite: &str) -> Result<RunSpec, Skip> {
    spec(&RealRuntime::available(10)?, "orchard-2.5.2", "orchard.dll", &["--suite", suite])
}

fn events(spec: &RunSpec) -> (RunOutcome, Vec<RunEvent>) {
    let mut events = Vec::new();
    let outcome = run(spec, &Stop::new(), |event| events.push(event)).unwrap();
    (outcome, events)
}

fn results(events: &[RunEvent]) -> Vec<&TestResult> {
    fn result(event: &RunEvent) -> Option<&TestResult> {
        if let RunEvent::TestEnded { result, .. } = event { Some(result) } else { None }
    }
    events.iter().filter_map(result).collect()
}

fn found(events: &[RunEvent]) -> Vec<&TestInfo> {
    fn test(event: &RunEvent) -> Option<&TestInfo> {
        if let RunEvent::Discovered { test, .. } = event { Some(test) } else { None }
    }
    events.iter().filter_map(test).collect()
}

fn failures(events: &[RunEvent]) -> Vec<ModuleFailure> {
    fn of(event: &RunEvent) -> &[ModuleFailure] {
        if let RunEvent::LaunchEnded { end, .. } = event { &end.failures } else { &[] }
    }
    events.iter().flat_map(of).cloned().collect()
}

/// Reports why it is skipped.
fn or_skip(test: impl FnOnce() -> Result<(), Skip>) {
    if let Err(skip) = test() {
        skip.report();
    }
}

#[test]
fn requests_carry_what_the_pipe_does() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        for (application, file, folder, name) in APPLICATIONS {
            if !["orchard-2.5.2", "library-mstest-4.5.2", "library-nunit-5.0.0"].contains(&application) {
                continue;
            }
            let mut spec = spec(&runtime, application, file, &[])?;
            spec.transport = Transport::Http;
            let (outcome, events) = events(&spec);
            let seen = tables::outcomes(&events, folder);
            assert_eq!(seen, tables::expected(folder, name)?, "{application}");
            assert_eq!(outcome.exit_code, code::TESTS_FAILED);
            assert_eq!(failures(&events), tables::failures_of(application), "{application}");
            let begun = events.iter().filter(|event| matches!(event, RunEvent::TestStarted { .. })).count();
            assert!(begun >= seen.len() - 5, "{application}: {begun} have begun");
        }
        Ok(())
    });
}

#[test]
fn all_processes_of_an_application_send_requests() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let again = ["--suite", "flaky:1", "--again", "2", "--watch"];
        let mut spec = spec(&runtime, "orchard-2.5.2", "orchard.dll", &again)?;
        spec.transport = Transport::Http;
        let (outcome, seen) = events(&spec);
        let expected = Totals { passed: 2, failed: 1, flaky: 1, retried: 3, ..Totals::default() };
        assert_eq!((outcome.totals, outcome.exit_code), (expected, 2));
        assert_eq!(failures(&seen), Vec::<ModuleFailure>::new());
        let introduced = |event: &&RunEvent| matches!(event, RunEvent::Introduced { .. });
        assert_eq!(
            seen.iter().filter(introduced).count(),
            7,
            "an orchestrator, thrice a controller and a host"
        );
        for mode in [Mode::Discover, Mode::Help] {
            let mut spec = orchard("core")?;
            (spec.mode, spec.transport) = (mode, Transport::Http);
            let (outcome, events) = events(&spec);
            let options = events.iter().filter(|event| matches!(event, RunEvent::Option { .. })).count();
            let counts = (outcome.exit_code, found(&events).len(), options > 30);
            assert_eq!(counts, if mode == Mode::Help { (0, 0, true) } else { (0, 28, false) });
        }
        Ok(())
    });
}

#[test]
fn an_application_that_sends_requests_is_ended_by_a_signal() {
    or_skip(|| {
        let mut spec = orchard("slow:1000:50")?;
        spec.transport = Transport::Http;
        let (stop, mut ended) = (Stop::new(), 0);
        let outcome = run(&spec, &stop, |event| {
            if let RunEvent::TestEnded { .. } = event {
                ended += 1;
                if ended == 3 {
                    stop.stop(StopLevel::Graceful);
                }
            }
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.totals.total(), ended);
        assert!((3..1000).contains(&ended) && outcome.exit_code != 0, "{outcome:?}");
        Ok(())
    });
}

#[test]
fn older_applications_do_not_know_of_requests() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        for (application, file, ..) in [APPLICATIONS[0], APPLICATIONS[1], APPLICATIONS[5]] {
            let mut spec = spec(&runtime, application, file, &[])?;
            spec.transport = Transport::Http;
            let (outcome, events) = events(&spec);
            assert_eq!(outcome.exit_code, code::USAGE, "{application}");
            let told = |event: &RunEvent| matches!(event, RunEvent::Message { text, .. } if text.contains("2.4 or later"));
            assert!(events.iter().any(told), "{application}");
        }
        Ok(())
    });
}

#[test]
fn tests_are_chosen_by_id_also_by_many() {
    or_skip(|| {
        let mut spec = orchard("fast:3000")?;
        let uids: Vec<_> = (0..3000).step_by(2).map(|n| format!("fast-{n:06}")).collect();
        spec.jobs[0].uids = Some(uids.clone());
        let (outcome, events) = events(&spec);
        let mut seen: Vec<_> = results(&events).iter().map(|result| result.uid.clone()).collect();
        seen.sort();
        assert_eq!(seen, uids);
        assert_eq!(
            outcome,
            RunOutcome { totals: Totals { passed: 1500, ..Totals::default() }, exit_code: 0, missing: None }
        );
        Ok(())
    });
}

#[test]
fn failed_tests_are_run_again_and_are_flaky_when_they_pass() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let mut spec = spec(&runtime, "orchard-2.5.2", "orchard.dll", &["--suite", "flaky:1"])?;
        spec.retries = 3;
        let (outcome, events) = events(&spec);
        let expected = Totals { passed: 2, failed: 1, flaky: 1, retried: 4, ..Totals::default() };
        assert_eq!((outcome.totals, outcome.exit_code), (expected, 2));
        let results = results(&events);
        let flaky: Vec<_> = results.iter().filter(|it| it.flaky).map(|result| result.attempt).collect();
        assert_eq!(flaky, [2]);
        assert_eq!(results.iter().map(|result| result.attempt).max(), Some(4));
        Ok(())
    });
}

#[test]
fn an_application_may_repeat_its_tests_itself() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let again = ["--suite", "flaky:1", "--again", "2", "--watch"];
        for arguments in [&again[..4], &again[..]] {
            let (outcome, events) = events(&spec(&runtime, "orchard-2.5.2", "orchard.dll", arguments)?);
            let expected = Totals { passed: 2, failed: 1, flaky: 1, retried: 3, ..Totals::default() };
            assert_eq!((outcome.totals, outcome.exit_code), (expected, 2), "{arguments:?}");
            assert_eq!(failures(&events), Vec::<ModuleFailure>::new());
        }
        // In one process, too.
        let (outcome, _) = events(&orchard("attempts")?);
        assert!(outcome.totals.retried > 0, "{outcome:?}");
        Ok(())
    });
}

#[test]
fn a_test_that_takes_too_long_is_named_and_its_process_ended() {
    or_skip(|| {
        let mut spec = orchard("fast:3+hangsync")?;
        spec.timeouts.test = Some(Duration::from_secs(3));
        spec.timeouts.grace = Duration::from_millis(500);
        let (outcome, events) = events(&spec);
        assert_eq!(outcome.totals, Totals { passed: 3, timeout: 1, ..Totals::default() });
        assert_eq!(outcome.exit_code, code::TESTS_FAILED);
        let results = results(&events);
        let stuck = results.iter().find(|result| result.execution.state == TestOutcome::Timeout).unwrap();
        assert!(stuck.execution.exceptions[0].message.contains("longer than 3 s"));
        Ok(())
    });
}

#[test]
fn whatever_kills_a_process_is_told_and_its_results_are_kept() {
    or_skip(|| {
        for (suite, exit) in [("failfast", 134), ("exit:42", 42), ("overflow", 134)] {
            let (outcome, events) = events(&orchard(&format!("slow:5:100+{suite}"))?);
            // The last ones may not have been sent yet.
            assert!((3..=5).contains(&outcome.totals.passed), "{suite}: {outcome:?}");
            let died =
                |it: &ModuleFailure| matches!(it, ModuleFailure::Died { exit: code, .. } if *code == exit);
            assert!(failures(&events).iter().any(died), "{suite}: {:?}", failures(&events));
            assert_ne!(outcome.exit_code, 0);
        }
        let (outcome, early) = events(&orchard("early:3")?);
        assert_eq!((outcome.exit_code, failures(&early)), (3, vec![ModuleFailure::NoHandshake(Some(3))]));
        assert_eq!(events(&orchard("zero")?).0.exit_code, code::ZERO_TESTS);
        assert_eq!(events(&orchard("badsession")?).0.exit_code, code::ADAPTER);
        let unknown =
            spec(&RealRuntime::available(10)?, "orchard-2.5.2", "orchard.dll", &["--no-such-option"])?;
        assert_eq!(events(&unknown).0.exit_code, code::USAGE);
        Ok(())
    });
}

/// The processes with this variable in their environment.
#[cfg(target_os = "linux")]
fn marked(variable: &str) -> Vec<rustix::process::Pid> {
    let is_marked = |process: &std::fs::DirEntry| {
        let file = std::fs::read(process.path().join("environ"));
        file.is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()))
    };
    let marked = std::fs::read_dir("/proc").unwrap().flatten().filter(is_marked);
    // Names that are not numbers (`self`) are links to processes that are listed too.
    marked.filter_map(|it| rustix::process::Pid::from_raw(it.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn who_holds_the_output_does_not_hold_up_the_run() {
    or_skip(|| {
        // The child processes hold the output open for an hour.
        let mut spec = orchard("children:3600:2")?;
        let value = format!("{}", std::process::id());
        spec.application.environment.push(("RUNTAP_HOLDS".into(), value.clone().into()));
        spec.timeouts.linger = Duration::from_millis(100);
        let (outcome, events) = events(&spec);
        let holders = marked(&format!("RUNTAP_HOLDS={value}"));
        for holder in &holders {
            let _ = rustix::process::kill_process(*holder, rustix::process::Signal::KILL);
        }
        assert_eq!((outcome.exit_code, holders.len()), (0, 2), "the run is over before they are");
        let warned = |event: &RunEvent| matches!(event, RunEvent::Message { text, .. } if text.contains("holds its output"));
        assert!(events.iter().any(warned));
        Ok(())
    });
}

#[test]
fn a_run_is_stopped_once_in_good_order_and_twice_at_once() {
    or_skip(|| {
        for level in [StopLevel::Graceful, StopLevel::Hard] {
            let spec = orchard("slow:1000:50")?;
            let (stop, mut ended) = (Stop::new(), 0);
            let outcome = run(&spec, &stop, |event| {
                if let RunEvent::TestEnded { .. } = event {
                    ended += 1;
                    if ended == 3 {
                        stop.stop(level);
                    }
                }
            });
            let outcome = outcome.unwrap();
            assert_eq!(outcome.totals.total(), ended, "{level:?}");
            assert!((3..1000).contains(&ended) && outcome.totals.passed >= 3, "{level:?}: {outcome:?}");
            assert_ne!(outcome.exit_code, 0);
        }
        Ok(())
    });
}

#[test]
fn six_applications_side_by_side() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let folder = test_application("six")?;
        let names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
        let modules = names.map(|name| Module::new(folder.join(format!("{name}.dll"))));
        let mut spec = RunSpec::new(modules.into());
        spec.application.dotnet = Some(runtime.root().join("dotnet"));
        spec.application.environment.push(("BARE_SCALE".into(), "10".into()));
        spec.parallel = 3;
        let (outcome, events) = events(&spec);
        // In echo, two of five fail at the first attempt.
        let expected = Totals { passed: 4 + 23 + 4 + 8 + 3 + 16, failed: 2, ..Totals::default() };
        assert_eq!((outcome.totals, outcome.exit_code), (expected, 2));
        let ended = |event: &&RunEvent| matches!(event, RunEvent::ModuleEnded { .. });
        assert_eq!(events.iter().filter(ended).count(), 6);
        Ok(())
    });
}
