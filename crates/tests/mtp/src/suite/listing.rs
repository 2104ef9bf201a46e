//! Listing of tests after a run, because results have neither classes nor traits.
//!
//! The listing has a time limit and never fails a run; properties that an application does not report stay unknown.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Job, Mode, ModuleFailure, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, run};

/// The interval at which the end of the run is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Lists the tests of these modules, and passes each test to `found`. Ends at the time limit, or when `stop` is stopped
/// again. Returns the modules that did not list their tests completely.
///
/// # Errors
/// Returns an error if the applications cannot be run at all.
pub fn list(
    spec: &RunSpec,
    modules: &BTreeSet<ModuleId>,
    limit: Duration,
    stop: &Stop,
    mut found: impl FnMut(ModuleId, TestInfo),
) -> io::Result<BTreeSet<ModuleId>> {
    let asking = RunSpec {
        mode: Mode::Discover,
        jobs: modules.iter().map(|&module| Job::whole(module)).collect(),
        max_failed: None,
        minimum_expected: 0,
        application: spec.application.only_known_lists(),
        ..spec.clone()
    };
    // Tests can be listed even after the run was stopped.
    let (before, until, own) = (stop.level(), Instant::now() + limit, &Stop::new());
    let (over, is_over) = mpsc::channel::<()>();
    let (mut told, mut silent) = (BTreeSet::new(), BTreeSet::new());
    thread::scope(|scope| {
        let watch = move || {
            while is_over.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if stop.level() > before || Instant::now() >= until {
                    own.stop(StopLevel::Hard);
                    break;
                }
            }
        };
        let watching = thread::Builder::new().spawn_scoped(scope, watch);
        let asked = watching.and_then(|_| {
            run(&asking, own, |event| match event {
                RunEvent::Discovered { module, test } => {
                    told.insert(module);
                    found(module, test);
                }
                RunEvent::LaunchEnded { module, end, .. } => {
                    // The list may be complete regardless of the exit code.
                    let is_code = |failure: &ModuleFailure| {
                        matches!(failure, ModuleFailure::ExitCode(_) | ModuleFailure::Died { .. })
                    };
                    let whole = end.failures.iter().all(is_code) && !end.stopped;
                    if !whole || !end.failures.is_empty() && !told.contains(&module) {
                        silent.insert(module);
                    }
                }
                _ => {}
            })
        });
        drop(over);
        asked
    })?;
    if own.level().is_some() {
        // Some modules may not have started.
        silent.clone_from(modules);
    }
    Ok(silent)
}
