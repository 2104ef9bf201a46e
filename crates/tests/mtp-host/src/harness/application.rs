//! The Microsoft.Testing.Platform side of the harness: runs the tests on several threads and reports them to a server.

use std::env;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::{
    Application, CommandOption, Exit, HostError, Launch, LaunchError, Outcome, Session, TestResult, panics,
};

use crate::harness::{Context, Test};

/// The options of the harness, named like those of libtest.
pub(crate) fn options() -> Vec<CommandOption> {
    vec![
        CommandOption::new("filter", "Run only tests whose names contain one of these texts.")
            .values(1, usize::MAX),
        CommandOption::new("skip", "Skip tests whose names contain one of these texts.")
            .values(1, usize::MAX),
        CommandOption::new("exact", "Match --filter and --skip against complete names."),
        CommandOption::new("ignored", "Run only ignored tests."),
        CommandOption::new("include-ignored", "Run ignored tests as well."),
        CommandOption::new("test-threads", "The number of tests that run in parallel.").values(1, 1),
    ]
}

/// Reports an invalid command line.
pub(crate) fn reject(error: &LaunchError) -> ExitCode {
    print_error(error);
    Exit::USAGE.into()
}

fn print_error(text: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

pub(crate) fn run(tests: Vec<Test>, launch: &Launch) -> ExitCode {
    let threads = match threads(launch) {
        Ok(threads) => threads,
        Err(text) => {
            print_error(&format!("--test-threads {text:?}: expected a positive number"));
            return Exit::USAGE.into();
        }
    };
    let application = options().into_iter().fold(Application::new(), Application::option);
    let selection = TestSelection::of(launch);
    let tests = tests.into_iter().filter(|test| selection.matches(test));
    let exit = application.run::<HostError>(launch, |session, _| {
        let tests = Mutex::new(tests);
        let workers = if session.is_discovery() { 1 } else { threads };
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..workers).map(|_| scope.spawn(|| work(session, &tests, selection.runs_ignored))).collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                // A bug of the harness: panics of tests are caught.
                Err(payload) => std::panic::resume_unwind(payload),
            })
        })
    });
    exit.into()
}

fn threads(launch: &Launch) -> Result<usize, String> {
    let given = launch.values("test-threads").and_then(<[_]>::first).cloned();
    match given.or_else(|| env::var("RUST_TEST_THREADS").ok()) {
        Some(text) => text.parse().map(NonZeroUsize::get).map_err(|_no_number| text),
        None => Ok(thread::available_parallelism().map_or(1, NonZeroUsize::get)),
    }
}

fn work(
    session: &Session<'_>,
    tests: &Mutex<impl Iterator<Item = Test>>,
    runs_ignored: bool,
) -> Result<(), HostError> {
    loop {
        let next = tests.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(test) = next.filter(|_| session.cancelled().is_none()) else { return Ok(()) };
        run_test(session, test, runs_ignored)?;
    }
}

fn run_test(session: &Session<'_>, test: Test, runs_ignored: bool) -> Result<(), HostError> {
    let node = test.node();
    if let Some(why) = test.ignored.as_ref().filter(|_| !runs_ignored) {
        return session.skip(node, if why.is_empty() { "ignored" } else { why });
    }
    if !session.wants(node.uid()) {
        return Ok(());
    }
    if session.is_discovery() {
        return session.discovered(&node);
    }
    session.begin(&node)?;
    let context = Context::of(session.host().cancel());
    let started = Instant::now();
    let returned = panics::catch(|| test.run(&context));
    let duration = started.elapsed();
    let outcome = returned.unwrap_or_else(|panicked| Outcome::Failed(panicked.failure(node.name())));
    for artifact in context.take_artifacts() {
        session.test_artifact(&node, &artifact)?;
    }
    session.report(&node, TestResult::new(outcome).duration(duration).stdout(context.take_output()))
}

/// The selection of tests by the options of the harness.
#[derive(Debug)]
struct TestSelection<'a> {
    filters: &'a [String],
    skips: &'a [String],
    is_exact: bool,
    only_ignored: bool,
    runs_ignored: bool,
}

impl<'a> TestSelection<'a> {
    fn of(launch: &'a Launch) -> Self {
        let has = |name| launch.values(name).is_some();
        Self {
            filters: launch.values("filter").unwrap_or_default(),
            skips: launch.values("skip").unwrap_or_default(),
            is_exact: has("exact"),
            only_ignored: has("ignored") && !has("include-ignored"),
            runs_ignored: has("ignored") || has("include-ignored"),
        }
    }

    fn matches(&self, test: &Test) -> bool {
        let fits = |text: &String| if self.is_exact { test.name == *text } else { test.name.contains(text) };
        (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skips.iter().any(fits)
            && (test.ignored.is_some() || !self.only_ignored)
    }
}
