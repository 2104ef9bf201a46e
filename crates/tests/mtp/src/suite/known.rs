//! The tests that applications list before a run. Owns: asking them, and what the lists say of how tests can be chosen.

use std::collections::HashSet;

use crate::{Mode, ModuleId, RunEvent, RunSpec, Stop, TestInfo, run};

use crate::suite::plan::PlanError;

/// A test of a module.
pub(crate) type Known = (ModuleId, TestInfo);

/// Explicit tests that are chosen beside others of their module, and all others.
pub(crate) fn apart(tests: Vec<&Known>) -> (Vec<&Known>, Vec<&Known>) {
    let usual = tests.iter().filter(|(_, test)| !test.is_explicit()).map(|(module, _)| *module);
    let usual: HashSet<_> = usual.collect();
    tests.into_iter().partition(|(module, test)| test.is_explicit() && usual.contains(module))
}

/// The modules that have tests and tell only names of them.
pub(crate) fn untold(known: &[Known]) -> Vec<ModuleId> {
    let is_told = |test: &TestInfo| {
        let facts = [&test.namespace, &test.type_name, &test.method, &test.file];
        facts.into_iter().any(Option::is_some) || !test.traits.is_empty()
    };
    // They are in the order of their modules.
    let of_modules = known.chunk_by(|(one, _), (other, _)| one == other);
    let silent = of_modules.filter(|tests| !tests.iter().any(|(_, test)| is_told(test)));
    silent.filter_map(|tests| tests.first()).map(|(module, _)| *module).collect()
}

/// All tests of the modules that have a job, in the order of their modules.
pub(crate) fn discover(spec: &RunSpec, stop: &Stop) -> Result<Vec<Known>, PlanError> {
    let asking = RunSpec { mode: Mode::Discover, max_failed: None, minimum_expected: 0, ..spec.clone() };
    let (mut found, mut failed) = (Vec::new(), None);
    let outcome = run(&asking, stop, |event| match event {
        RunEvent::Discovered { module, test } => found.push((module, test)),
        RunEvent::LaunchEnded { module, end, .. } => {
            failed = failed
                .take()
                .or_else(|| Some((module, end.failures.into_iter().next()?, (end.stdout, end.stderr))));
        }
        _ => {}
    })?;
    if stop.level().is_some() {
        return Err(PlanError::Stopped);
    }
    if let Some((module, failure, (stdout, stderr))) = failed {
        let module = spec.modules.get(module.0).map(ToString::to_string).unwrap_or_default();
        return Err(PlanError::NotListed {
            module,
            failure: Box::new(failure),
            stdout,
            stderr,
            exit_code: outcome.exit_code,
        });
    }
    found.sort_by_key(|(module, _)| *module);
    Ok(found)
}
