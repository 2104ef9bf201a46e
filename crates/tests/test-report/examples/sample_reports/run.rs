//! A sample run with everything that a report can show: every state, attempts, quarantine, hostile text, a broken
//! module. Also a large run.

use std::io::{self, Read, Seek, Write};
use std::time::{Duration, SystemTime};

use runtap_test_report::{
    Artifact, Attempt, Exception, Level, Location, Memory, Message, Module, Run, Spool, TestOutcome,
    TestResult, Trait,
};

const MS: i64 = 1_000_000;
/// The number of modules of a large run.
const MODULES: usize = 8;

pub(crate) fn sample() -> Memory {
    Memory::new(run(2), [(orchard(), orchard_tests()), (press(), press_tests()), (cellar(), Vec::new())])
}

fn run(exit_code: i32) -> Run {
    Run {
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_429_467_123),
        duration_ns: 4_321_000_000,
        command: ["runtap", "test", "bin/*.dll", "--retries", "2"].map(str::to_owned).to_vec(),
        runner: "runtap".to_owned(),
        version: "0.0.0".to_owned(),
        exit_code,
        interrupted: None,
        error: None,
        machine: "builder-7".to_owned(),
    }
}

fn module(path: &str, framework: &str, millis: u64) -> Module {
    Module {
        framework: framework.to_owned(),
        architecture: "x64".to_owned(),
        started: Some(run(0).started + Duration::from_millis(20)),
        duration_ns: millis * 1_000_000,
        exit_code: Some(0),
        ..Module::new(path)
    }
}

fn orchard() -> Module {
    let mut module = module("/src/orchard/bin/Orchard.Tests.dll", "net10.0", 3_200);
    module.exit_code = Some(2);
    module.artifacts.push(artifact("/src/orchard/out/coverage.xml", "coverage"));
    let text = "[MSTEST0001] a warning of the framework & its <detail>".to_owned();
    module.messages.push(Message { level: Level::Warning, text });
    module
}

fn press() -> Module {
    module("/src/press/bin/Press.Tests.dll", "net8.0", 900)
}

fn cellar() -> Module {
    Module {
        error: Some("the test application ended with 134 before the handshake".to_owned()),
        exit_code: Some(134),
        stderr: "Process terminated.\n   at Cellar.Boot() in /src/cellar/Boot.cs:line 4\n".to_owned(),
        ..module("/src/cellar/bin/Cellar.Tests.dll", "net10.0", 80)
    }
}

fn artifact(path: &str, name: &str) -> Artifact {
    Artifact { path: path.to_owned(), name: name.to_owned(), description: String::new() }
}

fn attempt(state: TestOutcome, millis: i64) -> Attempt {
    Attempt { state, duration_ns: Some(millis * MS), ..Attempt::default() }
}

fn thrown(type_name: &str, message: &str, stack: &str) -> Exception {
    Exception { message: message.to_owned(), type_name: type_name.to_owned(), stack: stack.to_owned() }
}

fn test(uid: &str, name: &str, type_name: &str, last: Attempt) -> TestResult {
    let method = name.split(['(', ' ']).next().unwrap_or_default().to_owned();
    TestResult {
        uid: uid.to_owned(),
        name: name.to_owned(),
        namespace: Some("Orchard.Tests".to_owned()),
        type_name: Some(type_name.to_owned()),
        method: Some(method),
        last,
        ..TestResult::default()
    }
}

fn orchard_tests() -> Vec<TestResult> {
    let mut picks = test("p1", "PicksApples", "PickingTests", attempt(TestOutcome::Passed, 12));
    picks.last.started = Some(run(0).started + Duration::from_millis(120));
    "picked 3\r\npicked 4\r\n".clone_into(&mut picks.last.stdout);
    picks.traits = [("Fast", ""), ("Owner", "fruit"), ("Owner", "team <b>")]
        .map(|(key, value)| Trait { key: key.to_owned(), value: value.to_owned() })
        .to_vec();

    let mut colour = test("f1", "ColourIs(\"red\")", "PickingTests", attempt(TestOutcome::Failed, 34));
    colour.last.exceptions = vec![
        thrown(
            "Orchard.AssertException",
            "colour differs",
            "   at Orchard.Assert.Equal(String e, String a) in /_/lib/Assert.cs:line 30\n   \
                at Orchard.Tests.PickingTests.ColourIs(String c) in /src/orchard/PickingTests.cs:line 41\n",
        ),
        thrown("System.FormatException", "inner: no such colour", ""),
    ];
    colour.last.expected = Some("a red apple & a leaf".to_owned());
    colour.last.actual = Some("a green apple & a leaf".to_owned());
    "\x1b[31mwarning:\x1b[0m unripe\n".clone_into(&mut colour.last.stderr);
    colour.location = Some(Location { file: "/src/orchard/PickingTests.cs".to_owned(), line: Some(38) });
    colour.artifacts.push(artifact("/src/orchard/out/apple.png", ""));

    let mut season = test(
        "s1",
        "WaitsForSpring",
        "SeasonTests",
        Attempt { duration_ns: None, ..attempt(TestOutcome::Skipped, 0) },
    );
    season.last.reason = Some("not the season".to_owned());

    let mut broken = test("e1", "OpensGate", "GateTests", attempt(TestOutcome::Error, 3));
    broken.last.exceptions =
        vec![thrown("System.IO.IOException", "the gate is stuck", "   at Orchard.Gate.Open()")];
    let timeout = test("t1", "RipensInTime", "SeasonTests", attempt(TestOutcome::Timeout, 3_000));
    let cancelled = test("c1", "RipensLater", "SeasonTests", attempt(TestOutcome::Cancelled, 3_001));

    let mut flaky = test("fl1", "LadderHolds", "GateTests", attempt(TestOutcome::Passed, 5));
    let slipped = Attempt {
        exceptions: vec![thrown("Orchard.AssertException", "slipped", "   at Orchard.Ladder.Hold()")],
        stdout: "climbing\n".to_owned(),
        ..attempt(TestOutcome::Failed, 7)
    };
    flaky.earlier = vec![slipped.clone(), attempt(TestOutcome::Timeout, 900)];
    let mut never = test("n1", "LadderFolds", "GateTests", slipped.clone());
    never.earlier = vec![slipped, attempt(TestOutcome::Error, 2)];

    let mut quarantined = test("q1", "CountsWasps", "PickingTests", attempt(TestOutcome::Failed, 8));
    quarantined.last.exceptions = vec![thrown("Orchard.AssertException", "7 wasps, not 6", "")];
    quarantined.quarantined = true;
    vec![picks, colour, season, broken, timeout, cancelled, flaky, never, quarantined]
}

/// Texts that could be interpreted as markup or commands.
fn press_tests() -> Vec<TestResult> {
    let hostile = "</script><img src=x onerror=alert(1)> ]]> <!-- & \"quoted\" 'too' `code` | **bold** @team %0A ::error::";
    let mut markup = test("m1", hostile, "Markup<T>", attempt(TestOutcome::Failed, 1));
    markup.last.exceptions = vec![thrown("Bad<T>", hostile, hostile)];
    markup.last.stdout = format!("{hostile}\n");
    let mut controls = test(
        "m2",
        "Controls\0\x1b[31mred\x1b[0m\r\nline\u{ffff}",
        "Markup<T>",
        attempt(TestOutcome::Passed, 1),
    );
    let output = "bell\x07 null\0 half \u{fffd} link \x1b]8;;https://x.example\x1b\\here\x1b]8;;\x1b\\\n";
    output.clone_into(&mut controls.last.stdout);
    let mut bare =
        TestResult { uid: "m3".to_owned(), last: attempt(TestOutcome::Passed, -5), ..TestResult::default() };
    "a test without a name".clone_into(&mut bare.last.stdout);
    let long = test("m4", &"long name ".repeat(40), "Markup<T>", attempt(TestOutcome::Passed, 2));
    let rows =
        ["Row(1)", "Row(2)"].map(|name| test("row", name, "Markup<T>", attempt(TestOutcome::Passed, 1)));
    [markup, controls, bare, long].into_iter().chain(rows).collect()
}

/// A run that was stopped: no test failed, and one module was not run.
#[allow(dead_code, reason = "the snapshots have no use for it")]
pub(crate) fn cut_off() -> Memory {
    let run = Run { interrupted: Some("it was stopped by a signal".to_owned()), ..run(3) };
    let stopped =
        Module { error: Some("was stopped before it had run all of its tests".to_owned()), ..press() };
    let not_run = Module {
        error: Some("was not run: the run was stopped before".to_owned()),
        ..Module::new("/src/cellar/bin/Cellar.Tests.dll")
    };
    let passed = test("p1", "PicksApples", "PickingTests", attempt(TestOutcome::Passed, 12));
    Memory::new(run, [(stopped, vec![passed]), (not_run, Vec::new())])
}

/// A run of `count` tests with 1 KB of output each, kept in `file`; one of 500 tests failed.
#[allow(dead_code, reason = "the snapshots have no use for it")]
pub(crate) fn large<F: Read + Write + Seek>(count: usize, file: F) -> io::Result<Spool<F>> {
    let mut spool = Spool::new(run(2), file);
    for number in 0..MODULES {
        spool.add_module(module(&format!("/src/big/bin/Big{number}.Tests.dll"), "net10.0", 2_000));
    }
    for i in 0..count {
        let state = if i % 500 == 499 { TestOutcome::Failed } else { TestOutcome::Passed };
        let millis = i64::try_from(i * 7919 % 997).unwrap_or_default();
        let class = format!("Part{}Tests", i / 40);
        let name = format!("Works_{i}(row: {})", i % 7);
        let mut result = test(&format!("u{i}"), &name, &class, attempt(state, millis));
        result.last.stdout = format!("line of output of test {i}\n").repeat(36);
        if state == TestOutcome::Failed {
            let stack = format!("   at Big.{class}.Works() in /src/big/{class}.cs:line {i}");
            result.last.exceptions = vec![thrown("Big.AssertException", "it did not work", &stack)];
        }
        spool.push(i / 40 % MODULES, &result)?;
    }
    Ok(spool)
}
