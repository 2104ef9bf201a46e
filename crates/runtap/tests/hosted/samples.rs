//! The test applications that this program becomes if a variable is set, and the scripts that servers start.

use std::fs;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use runtap_mtp_host::harness::{Test, Tests};
use runtap_mtp_host::{ATTEMPT_NUMBER, Application, Batching, Exit, Host, HostError, Identity, Launch, Role};

pub(crate) const SAMPLE: &str = "RUNTAP_HOSTED_SAMPLE";

/// Returns the application to run in this process; `None` runs the tests.
pub(crate) fn chosen() -> Option<String> {
    std::env::var(SAMPLE).ok()
}

pub(crate) fn run(sample: &str) -> ExitCode {
    match sample.split_once(':').unwrap_or((sample, "")) {
        ("application", _) => crate::application::main(),
        ("harness", _) => crate::harness::main(),
        ("many", count) => many(count, Batching::default()),
        ("unbatched", count) => many(count, Batching::NONE),
        ("retries", _) => retries(),
        ("aborts", _) => Tests::new()
            .with(Test::new("first", |_| ()))
            .with(Test::new("second", |_| dies()))
            .with(Test::new("third", |_| ()))
            .main(),
        ("sleeps", file) => {
            let file = PathBuf::from(file);
            let sleeps = Test::new("sleeps", move |_| {
                fs::write(file, format!("{}\n", std::process::id())).expect("the pid can be written");
                std::thread::sleep(Duration::from_mins(5));
            });
            Tests::new().with(sleeps).main()
        }
        _ => panic!("there is no {sample:?}"),
    }
}

fn dies() {
    std::process::abort();
}

fn many(count: &str, batching: Batching) -> ExitCode {
    let count: u32 = count.parse().expect("a number of tests");
    Application::new().batching(batching).main::<HostError>(|tests, _| {
        (0..count).try_for_each(|number| tests.test(format!("suite::test_{number:06}"), || ()))
    })
}

/// An orchestrator that starts this program once for each attempt; the second attempt runs the failed tests of the
/// first.
fn retries() -> ExitCode {
    let arguments = || std::env::args_os().skip(1);
    let launch = Launch::parse(arguments(), &[]).expect("a server's command line").expect("a server");
    let application = Application::new();
    if let Ok(attempt) = std::env::var(ATTEMPT_NUMBER) {
        let exit = application.run::<HostError>(&launch, |tests, _| {
            tests.test("steady", || ())?;
            tests.test("flaky", || assert_ne!(attempt, "1", "only the second attempt passes"))
        });
        return exit.into();
    }
    let identity = Identity::this_program();
    let role = Role::Orchestrator { feature: "RetryOrchestrator".to_owned() };
    let host = Host::connect(&launch, identity, &role, Batching::default()).expect("the server is there");
    let attempt = |number: u32, more: &[&str]| {
        let number = NonZeroU32::new(number).expect("above 0");
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(more).args(arguments()).envs(host.identity().for_attempt(number));
        command.status().expect("an attempt can be started").code()
    };
    if attempt(1, &[]) == Some(0) {
        return ExitCode::SUCCESS;
    }
    match attempt(2, &["--filter-uid", "flaky"]) {
        Some(0) => ExitCode::SUCCESS,
        _ => Exit::FAILED.into(),
    }
}

/// Creates a script in `folder` that runs this program as that sample.
pub(crate) fn module(folder: &Path, name: &str, sample: &str) -> PathBuf {
    let path = folder.join(name);
    let own = std::env::current_exe().expect("this program has a path");
    let text = format!("#!/bin/sh\n{SAMPLE}='{sample}' exec '{}' \"$@\"\n", own.display());
    // While other threads start programs, a file that was just written may be busy: a script is not.
    fs::write(&path, text).expect("the script can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the script can be made executable");
    path
}
