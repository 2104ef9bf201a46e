//! Discovery of tests before a run, and facts about the lists that affect selection.

use std::collections::HashSet;

use runtap_model::order;

use crate::{Mode, ModuleId, RunEvent, RunSpec, Stop, TestInfo, run};

use crate::suite::plan::PlanError;

/// A discovered test and its module.
pub(crate) type DiscoveredTest = (ModuleId, TestInfo);

/// Splits tests into explicit tests that are selected beside others of their module, and all other tests.
pub(crate) fn split_explicit(tests: Vec<&DiscoveredTest>) -> (Vec<&DiscoveredTest>, Vec<&DiscoveredTest>) {
    let usual = tests.iter().filter(|(_, test)| !test.is_explicit()).map(|(module, _)| *module);
    let usual: HashSet<_> = usual.collect();
    tests.into_iter().partition(|(module, test)| test.is_explicit() && usual.contains(module))
}

/// Returns the modules whose tests have no properties except names.
pub(crate) fn names_only(known: &[DiscoveredTest]) -> Vec<ModuleId> {
    let has_properties = |test: &TestInfo| {
        let facts = [&test.namespace, &test.type_name, &test.method, &test.file];
        facts.into_iter().any(Option::is_some) || !test.traits.is_empty()
    };
    // Tests are sorted by module.
    let of_modules = known.chunk_by(|(one, _), (other, _)| one == other);
    let silent = of_modules.filter(|tests| !tests.iter().any(|(_, test)| has_properties(test)));
    silent.filter_map(|tests| tests.first()).map(|(module, _)| *module).collect()
}

/// Discovers the tests of all modules with a job, sorted by module.
pub(crate) fn discover(spec: &RunSpec, stop: &Stop) -> Result<Vec<DiscoveredTest>, PlanError> {
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
    order::sort_by_key(&mut found, |(module, _)| *module);
    Ok(found)
}
