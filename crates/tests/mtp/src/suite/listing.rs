//! What applications list of their tests, when they have already run them: results have neither classes nor traits.
//!
//! Owns: asking, and for how long. Refuses to: fail; what an application does not say is not known.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Job, Mode, ModuleFailure, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, run};

/// How often it is looked whether the run is stopped.
const TICK: Duration = Duration::from_millis(20);

/// Has these modules of a run list their tests, and hands out each of them. Ends when the time is over, or when `stop` is
/// stopped once more. Returns the modules that did not list their tests to the end.
///
/// # Errors
/// The applications can't be run at all.
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
    // A run that was told to end can still be asked what it was made of.
    let (before, until, own) = (stop.level(), Instant::now() + limit, &Stop::new());
    let (over, is_over) = mpsc::channel::<()>();
    let (mut told, mut silent) = (BTreeSet::new(), BTreeSet::new());
    thread::scope(|scope| {
        let watch = move || {
            while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
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
                    // Whatever code it ends with, what it has listed may be whole.
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
        // Those that had not begun are among them.
        silent.clone_from(modules);
    }
    Ok(silent)
}
