//! Which tests are run: those that a filter and a partition choose of what the applications say they have.

use std::borrow::Cow;

use runtap_mtp::{Job, Mode, ModuleId, RunEvent, RunSpec, Stop, TestInfo, code, run};
use runtap_test_plan::{Filter, Partition, Test as Facts, TestKey};
use runtap_text::Clean;

use super::model::describe;
use super::usage;
use crate::cli::Test;
use crate::exit::expected;

/// What the options choose by.
#[derive(Debug)]
pub(super) struct Choice {
    filter: Option<Filter>,
    partition: Option<Partition>,
}

impl Choice {
    /// `None`: everything is run.
    pub(super) fn of(options: &Test) -> anyhow::Result<Option<Self>> {
        let filter = options.filter.as_deref().map(|text| {
            let wrong = |error: runtap_test_plan::FilterError| {
                usage(format!("--filter: {error}\n{}", error.caret()), None)
            };
            text.parse::<Filter>().map_err(wrong)
        });
        let partition = options.partition.as_deref().map(|text| {
            text.parse::<Partition>().map_err(|error| usage(format!("--partition: {error}"), None))
        });
        let (filter, partition) = (filter.transpose()?, partition.transpose()?);
        if partition.as_ref().is_some_and(Partition::needs_durations) {
            let hint = "count, hash and slice need none".to_owned();
            return Err(usage("--partition timing: durations of earlier runs are not recorded yet", hint));
        }
        Ok((filter.is_some() || partition.is_some()).then_some(Self { filter, partition }))
    }

    /// Asks the applications for their tests and makes the jobs of those that are chosen. A filter that names ids and
    /// nothing else needs not ask.
    pub(super) fn apply(&self, spec: &mut RunSpec, stop: &Stop) -> anyhow::Result<()> {
        if let (Some(uids), None) = (self.filter.as_ref().and_then(Filter::uids), &self.partition) {
            let uids: Vec<_> = uids.into_iter().map(str::to_owned).collect();
            for job in &mut spec.jobs {
                job.uids = Some(uids.clone());
            }
            return Ok(());
        }
        let found = discover(spec, stop)?;
        let names: Vec<_> =
            spec.modules.iter().map(|module| (module.name(), module.path().to_string_lossy())).collect();
        let chosen = found.iter().filter(|(module, test)| {
            let name = names.get(module.0).map(|(_, path)| &**path).unwrap_or_default();
            self.filter.as_ref().is_none_or(|filter| filter.matches(&facts(test, name)))
        });
        let mut chosen: Vec<_> = chosen.collect();
        if let Some(partition) = &self.partition {
            let mut keys = Vec::new();
            for (module, test) in &chosen {
                let name = names.get(module.0).map(|(name, _)| name.as_str()).unwrap_or_default();
                keys.push(TestKey::new(name, &test.uid));
            }
            let selected = partition.select(&keys);
            chosen = selected.into_iter().filter_map(|at| chosen.get(at).copied()).collect();
        }
        spec.jobs = (0..spec.modules.len()).map(ModuleId).filter_map(|module| job(module, &chosen)).collect();
        Ok(())
    }
}

/// The tests of one module, each id once; `None` if there is none.
fn job(module: ModuleId, chosen: &[&(ModuleId, TestInfo)]) -> Option<Job> {
    let mut uids: Vec<_> =
        chosen.iter().filter(|(of, _)| *of == module).map(|(_, test)| test.uid.clone()).collect();
    uids.dedup();
    (!uids.is_empty()).then(|| Job { uids: Some(uids), ..Job::whole(module) })
}

fn facts<'a>(test: &'a TestInfo, module: &'a str) -> Facts<'a> {
    let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    Facts {
        namespace: text(&test.namespace),
        class: text(&test.type_name),
        method: text(&test.method),
        traits: test.traits.iter().map(|(key, value)| (key.into(), value.into())).collect(),
        file: text(&test.file),
        line: test.line.and_then(|line| u32::try_from(line).ok()),
        module: Some(module.into()),
        ..Facts::new(test.uid.as_str(), test.name.as_str())
    }
}

/// All tests, in the order of their modules.
fn discover(spec: &RunSpec, stop: &Stop) -> anyhow::Result<Vec<(ModuleId, TestInfo)>> {
    let asking = RunSpec { mode: Mode::Discover, max_failed: None, minimum_expected: 0, ..spec.clone() };
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let outcome = run(&asking, stop, |event| match event {
        RunEvent::Discovered { module, test } => found.push((module, test)),
        RunEvent::LaunchEnded { module, end, .. } => {
            failed.extend(end.failures.into_iter().map(|failure| (module, failure)));
        }
        _ => {}
    })?;
    if let Some((module, failure)) = failed.first() {
        let path = spec.modules.get(module.0).map(ToString::to_string).unwrap_or_default();
        let message =
            format!("the tests of {} can't be listed: it {}", Clean(&path), Clean(&describe(failure)));
        let code = u8::try_from(outcome.exit_code).unwrap_or(u8::MAX);
        return Err(expected(code, message, None));
    }
    if stop.level().is_some() {
        return Err(expected(u8::try_from(code::ABORTED).unwrap_or(u8::MAX), "stopped", None));
    }
    found.sort_by_key(|(module, _)| *module);
    Ok(found)
}
