//! Collects the results of a run for reports: each test once, with all its attempts.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::mem::take;
use std::time::SystemTime;

use runtap_model::order;
use runtap_os::output::PendingFile;
use runtap_test_report::{
    Facts, Level, Message, Module, Run, Source as _, Spool, TestOutcome, TestResult, facts_from_id,
};

use super::convert::{facts, shown_artifact};
use super::files::WriteError;
use super::system;
use crate as mtp;
use crate::{ModuleFailure, ModuleId, RunEvent, TestInfo};

/// The results of a run so far. The runner decides which results are attempts of the same row of a test.
#[derive(Debug)]
pub(super) struct RunResults {
    pub(super) spool: Spool<File>,
    /// The error that made results incomplete; `None` if they are complete.
    pub(super) lost: Option<io::Error>,
    /// The facts discovered about tests.
    known: HashMap<(ModuleId, String), Facts>,
    progress_by_module: Vec<ModuleProgress>,
    sources: Budget,
    messages: Budget,
    artifacts: Budget,
    /// Describes the failure of a module for the reports.
    explain: fn(&ModuleFailure) -> String,
}

/// A budget for data that applications send besides their results, which are kept in a file.
#[derive(Debug)]
struct Budget {
    left: usize,
    /// The number of items that exceeded the budget since the last module ended.
    rejected: u64,
}

/// Budgets in bytes. Sources, the ids and locations of tests, suffice for a million tests; those of a module are freed at its
/// end.
const MAX_SOURCES_BYTES: usize = 256 << 20;
const MAX_MESSAGES_BYTES: usize = 16 << 20;
const MAX_ARTIFACTS_BYTES: usize = 64 << 20;

impl Budget {
    fn of(bytes: usize) -> Self {
        Self { left: bytes, rejected: 0 }
    }

    fn reserve(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        self.rejected += u64::from(left.is_none());
        left.is_some()
    }
}

/// The progress of a module.
#[derive(Debug, Clone, Default)]
struct ModuleProgress {
    /// The number of parts that were started, and the number of all parts.
    started: usize,
    parts: usize,
    /// Whether one of its processes was asked to stop.
    stopped: bool,
    /// Whether it listed its tests before the run.
    listed: bool,
    /// Whether it reported results.
    ran: bool,
}

impl ModuleProgress {
    /// Returns a description of what is missing from a module of a stopped run; `None` if it is complete.
    fn missing(&self) -> Option<&'static str> {
        if self.started == 0 {
            return Some("was not run: the run was stopped before");
        }
        let is_incomplete = self.stopped || self.started < self.parts;
        is_incomplete.then_some("was stopped before it had run all of its tests")
    }
}

impl RunResults {
    /// Creates the results of a run that starts now.
    ///
    /// # Errors
    /// Returns an error if no temporary file can be created.
    pub(super) fn new(
        modules: &[mtp::Module],
        explain: fn(&ModuleFailure) -> String,
    ) -> Result<Self, WriteError> {
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let run = Run {
            started: SystemTime::now(),
            duration_ns: 0,
            command,
            runner: "runtap".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            exit_code: 0,
            interrupted: None,
            error: None,
            machine: system::machine(),
        };
        // An anonymous temporary file.
        let mut spool = Spool::new(run, PendingFile::within(&std::env::temp_dir())?.file().try_clone()?);
        for module in modules {
            spool.add_module(Module::new(module.path().to_string_lossy()));
        }
        let progress_by_module = vec![ModuleProgress::default(); modules.len()];
        let (sources, messages) = (Budget::of(MAX_SOURCES_BYTES), Budget::of(MAX_MESSAGES_BYTES));
        Ok(Self {
            spool,
            lost: None,
            known: HashMap::new(),
            progress_by_module,
            sources,
            messages,
            artifacts: Budget::of(MAX_ARTIFACTS_BYTES),
            explain,
        })
    }

    /// Adds facts about tests that were discovered before the run.
    pub(super) fn add_known_tests(&mut self, known: impl IntoIterator<Item = (ModuleId, TestInfo)>) {
        for (module, test) in known {
            self.add_listed_test(module, &test);
        }
    }

    fn add_listed_test(&mut self, module: ModuleId, test: &TestInfo) {
        self.progress(module, |it| it.listed = true);
        let facts = facts(test);
        if self.sources.reserve(test.uid.len() + facts.bytes())
            && let Some(before) = self.known.insert((module, test.uid.clone()), facts)
        {
            self.sources.left += test.uid.len() + before.bytes();
        }
    }

    fn forget_sources(&mut self, module: ModuleId) {
        let mut forgotten = 0;
        self.known.retain(|(of, uid), facts| {
            let stays = *of != module;
            forgotten += if stays { 0 } else { uid.len() + facts.bytes() };
            stays
        });
        self.sources.left += forgotten;
    }

    /// Adds facts about a test that were discovered after the run.
    pub(super) fn add_late_facts(&mut self, module: ModuleId, test: &TestInfo) {
        self.modify(|spool| spool.know(module.0, &test.uid, &facts(test)));
    }

    /// Completes the results at the end of the run.
    pub(super) fn settle(&mut self) {
        self.modify(Spool::settle);
    }

    /// Returns all results; `None` if some are lost.
    pub(super) fn complete(&self) -> Option<&Spool<File>> {
        self.lost.is_none().then_some(&self.spool)
    }

    /// Changes the stored results. After a failure the stored data is unreliable and no longer changed.
    fn modify(&mut self, change: impl FnOnce(&mut Spool<File>) -> io::Result<()>) {
        if self.lost.is_none() {
            self.lost = change(&mut self.spool).err();
        }
    }

    /// Returns the modules with results that have not listed their tests.
    pub(super) fn not_listed(&self) -> BTreeSet<ModuleId> {
        let progress_by_module = self.progress_by_module.iter().enumerate();
        let not_listed = progress_by_module.filter(|(_, progress)| progress.ran && !progress.listed);
        order::to_set(not_listed.map(|(number, _)| ModuleId(number)))
    }

    /// Handles an event; `interrupted` is the reason why the run was stopped, if it was. Returns a test's result as it appears
    /// in reports. Its texts, which may be long, are moved out of the event.
    pub(super) fn take(
        &mut self,
        event: &mut RunEvent,
        interrupted: Option<&'static str>,
    ) -> Option<TestResult> {
        match event {
            RunEvent::LaunchStarted { module, attempt, part, .. } => {
                self.progress(*module, |it| {
                    it.started += usize::from(*attempt == 1);
                    it.parts = part.1;
                });
                self.module(*module, |it| it.started = it.started.or_else(|| Some(SystemTime::now())));
            }
            RunEvent::Introduced { module, introduction, .. } => self.module(*module, |it| {
                it.framework = introduction.target_framework();
                it.architecture = introduction.architecture.to_lowercase();
            }),
            RunEvent::Discovered { module, test } => self.add_listed_test(*module, test),
            RunEvent::TestEnded { module, result, .. } => return Some(self.result(*module, result)),
            RunEvent::Artifact { module, artifact } => {
                let shown = shown_artifact(artifact);
                let names =
                    artifact.test_uid.iter().chain(&artifact.test_name).map(String::len).sum::<usize>();
                if !self
                    .artifacts
                    .reserve(shown.path.len() + shown.name.len() + shown.description.len() + names)
                {
                    return None;
                }
                match artifact.test_uid.as_deref().filter(|uid| !uid.is_empty()) {
                    Some(uid) => self.spool.attach(module.0, uid, artifact.test_name.as_deref(), shown),
                    None => self.module(*module, |it| it.artifacts.push(shown)),
                }
            }
            RunEvent::Message { module, level, text } if self.messages.reserve(text.len()) => {
                let message = Message { level: *level, text: text.clone() };
                self.module(*module, |it| it.messages.push(message));
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                self.progress(*module, |it| it.stopped |= end.stopped);
                let explains = end.exit.map(mtp::Exit::code) != Some(0) || !end.failures.is_empty();
                self.module(*module, |it| {
                    it.exit_code = end.exit.map(mtp::Exit::code);
                    if explains && !(end.stdout.is_empty() && end.stderr.is_empty()) {
                        (it.stdout, it.stderr) = (end.stdout.clone(), end.stderr.clone());
                    }
                });
            }
            RunEvent::RowsMerged { module, rows } => self.modify(|spool| spool.merge(module.0, rows)),
            RunEvent::ModuleEnded { module, totals, failures, exit_code, duration, .. } => {
                if self.lost.is_some() {
                    self.spool.set_totals(module.0, *totals);
                }
                self.forget_sources(*module);
                self.report_rejected(*module);
                let (progress, explain) = (self.progress_by_module.get(module.0), self.explain);
                let missing =
                    interrupted.and_then(|_| progress.and_then(ModuleProgress::missing)).map(str::to_owned);
                self.module(*module, |it| {
                    for failure in failures.iter() {
                        add_failure(it, failure, explain(failure));
                    }
                    it.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                    // A module that was never started has no exit code.
                    it.exit_code = it.exit_code.and(Some(*exit_code));
                    it.error = it.error.take().or(missing);
                });
            }
            RunEvent::RunEnded { exit_code, missing, duration, .. } => {
                let run = self.spool.run_mut();
                run.exit_code = *exit_code;
                run.error.clone_from(missing);
                run.interrupted = interrupted.map(str::to_owned);
                run.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            }
            _ => {}
        }
        None
    }

    /// Adds messages about data of a module that is not in the reports.
    fn report_rejected(&mut self, module: ModuleId) {
        let budgets = [
            (&mut self.sources, "sources of tests"),
            (&mut self.messages, "messages"),
            (&mut self.artifacts, "artifacts"),
        ];
        let lacks = budgets.map(|(budget, what)| (take(&mut budget.rejected), what));
        for (count, what) in lacks.into_iter().filter(|(count, _)| *count > 0) {
            let text =
                format!("{count} {what} are not in the reports: there were too many, or too long ones");
            self.module(module, |it| it.messages.push(Message { level: Level::Warning, text }));
        }
    }

    fn module(&mut self, module: ModuleId, change: impl FnOnce(&mut Module)) {
        if let Some(module) = self.spool.module_mut(module.0) {
            change(module);
        }
    }

    fn progress(&mut self, module: ModuleId, change: impl FnOnce(&mut ModuleProgress)) {
        if let Some(progress) = self.progress_by_module.get_mut(module.0) {
            change(progress);
        }
    }

    fn result(&mut self, module: ModuleId, result: &mut mtp::TestResult) -> TestResult {
        self.progress(module, |it| it.ran = true);
        let mut shown = self.described(module, result);
        self.modify(|spool| {
            if result.outdated {
                let mut counts = spool.precede(module.0, result.row, shown.last.clone())?;
                if result.execution.state == TestOutcome::Skipped {
                    // The test was skipped after the failure that counts.
                    counts.earlier.pop();
                    shown.earlier = counts.earlier;
                    shown.earlier.push(counts.last);
                }
            } else if result.row < spool.count(module.0) {
                shown = spool.follow(module.0, result.row, shown.clone())?;
            } else {
                spool.push(module.0, &shown)?;
            }
            Ok(())
        });
        shown
    }

    fn described(&self, module: ModuleId, result: &mut mtp::TestResult) -> TestResult {
        let known = (!self.known.is_empty()).then(|| self.known.get(&(module, result.uid.clone()))).flatten();
        let mut shown = TestResult {
            uid: result.uid.clone(),
            name: result.name.clone(),
            quarantined: result.quarantined,
            last: result.execution.take(),
            ..TestResult::default()
        };
        // Prefer listed facts; otherwise derive them from the id.
        if let Some(facts) = known.cloned().or_else(|| facts_from_id(&result.uid, &result.name)) {
            shown.apply_facts(facts);
        }
        shown
    }
}

/// Adds a module's failure. Each process may name other tests that were not run.
fn add_failure(module: &mut Module, failure: &ModuleFailure, text: String) {
    let others = module.error.take().filter(|_| matches!(failure, ModuleFailure::NotRun(_)));
    module.error = Some(match others {
        Some(others) => format!("{others}\n{text}"),
        None => text,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_count_the_data_that_exceeds_a_budget() {
        let module = ModuleId(0);
        let mut results = RunResults::new(&[], |_| String::new()).unwrap();
        results.spool.add_module(Module::new("a.dll"));
        results.progress_by_module.push(ModuleProgress::default());
        let text = "x".repeat(1 << 20);
        let message = RunEvent::Message { module, level: Level::Info, text };
        for _ in 0..20 {
            results.take(&mut message.clone(), None);
        }
        let mut long = TestInfo { uid: "a".into(), method: Some("m".repeat(1 << 20)), ..TestInfo::default() };
        for number in 0..300 {
            long.uid = number.to_string();
            results.take(&mut RunEvent::Discovered { module, test: long.clone() }, None);
        }
        assert_eq!(results.known.len(), 255);
        results.forget_sources(module);
        results.report_rejected(module);
        assert_eq!((results.known.len(), results.sources.left), (0, MAX_SOURCES_BYTES));
        let messages = &results.spool.modules()[0].messages;
        let last: Vec<_> = messages.iter().skip(16).map(|it| it.text.as_str()).collect();
        let lacks = ["45 sources of tests", "4 messages"]
            .map(|what| format!("{what} are not in the reports: there were too many, or too long ones"));
        assert_eq!(last, lacks);
    }
}
