//! From what happens in a run to what reports are made of: each test once, with all its attempts.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::mem::take;
use std::time::SystemTime;

use runtap_mtp as mtp;
use runtap_mtp::{ModuleFailure, ModuleId, RunEvent, TestInfo};
use runtap_os::output::PendingFile;
use runtap_test_report::{Facts, Level, Message, Module, Run, Source as _, Spool, TestResult, facts_from_id};

use super::module_failure::explain;
use super::reported::{attempt, counted, facts, level, shown_artifact};

/// Gathers a run. Which results are attempts at the same row of a test, the run says.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) spool: Spool<File>,
    /// Why the results are not all there.
    pub(super) lost: Option<io::Error>,
    /// What was discovered of tests.
    known: HashMap<(ModuleId, String), Facts>,
    courses: Vec<Course>,
    sources: Room,
    messages: Room,
    artifacts: Room,
}

/// How much may be kept of what an application says beside its results, which are in a file.
#[derive(Debug)]
struct Room {
    left: usize,
    /// What there was no room for, since the last module has ended.
    refused: u64,
}

/// Bytes of ids and places of tests: a million have room. Those of a module are forgotten when it has ended.
const MOST_SOURCES: usize = 256 << 20;
const MOST_MESSAGES: usize = 16 << 20;
const MOST_ARTIFACTS: usize = 64 << 20;

impl Room {
    fn of(bytes: usize) -> Self {
        Self { left: bytes, refused: 0 }
    }

    fn has(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        self.refused += u64::from(left.is_none());
        left.is_some()
    }
}

/// How it goes with a module.
#[derive(Debug, Clone, Default)]
struct Course {
    /// First processes of its parts that were started, and of how many.
    begun: usize,
    parts: usize,
    /// A process of it was told to end.
    stopped: bool,
    /// It has listed its tests before the run.
    listed: bool,
    /// There are results.
    ran: bool,
}

impl Course {
    /// What is missing of a module when its run was told to end.
    fn missing(&self) -> Option<&'static str> {
        if self.begun == 0 {
            return Some("was not run: the run was stopped before");
        }
        let is_cut = self.stopped || self.begun < self.parts;
        is_cut.then_some("was stopped before it had run all of its tests")
    }
}

impl Gathered {
    /// For a run that begins now.
    pub(super) fn new(modules: &[mtp::Module]) -> anyhow::Result<Self> {
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
            machine: super::system::machine(),
        };
        // A file of its own that never gets a name.
        let mut spool = Spool::new(run, PendingFile::within(&std::env::temp_dir())?.file().try_clone()?);
        for module in modules {
            spool.add_module(Module::new(module.path().to_string_lossy()));
        }
        let courses = vec![Course::default(); modules.len()];
        let (sources, messages) = (Room::of(MOST_SOURCES), Room::of(MOST_MESSAGES));
        Ok(Self {
            spool,
            lost: None,
            known: HashMap::new(),
            courses,
            sources,
            messages,
            artifacts: Room::of(MOST_ARTIFACTS),
        })
    }

    /// Takes in what was found out about tests before the run.
    pub(super) fn know(&mut self, known: impl IntoIterator<Item = (ModuleId, TestInfo)>) {
        for (module, test) in known {
            self.learn_before(module, &test);
        }
    }

    fn learn_before(&mut self, module: ModuleId, test: &TestInfo) {
        self.course(module, |it| it.listed = true);
        let facts = facts(test);
        if self.sources.has(test.uid.len() + facts.bytes())
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

    /// Takes in what was found out about a test after the run.
    pub(super) fn learn(&mut self, module: ModuleId, test: &TestInfo) {
        self.keep(|spool| spool.know(module.0, &test.uid, &facts(test)));
    }

    /// Nothing comes any more.
    pub(super) fn settle(&mut self) {
        self.keep(Spool::settle);
    }

    /// All results; `None` if some are lost.
    pub(super) fn whole(&self) -> Option<&Spool<File>> {
        self.lost.is_none().then_some(&self.spool)
    }

    /// Changes what is kept. After a failure, nothing that is there can be relied on.
    fn keep(&mut self, change: impl FnOnce(&mut Spool<File>) -> io::Result<()>) {
        if self.lost.is_none() {
            self.lost = change(&mut self.spool).err();
        }
    }

    /// The modules of whose tests it was never told what a result does not say.
    pub(super) fn not_listed(&self) -> BTreeSet<ModuleId> {
        let courses = self.courses.iter().enumerate();
        courses
            .filter(|(_, course)| course.ran && !course.listed)
            .map(|(number, _)| ModuleId(number))
            .collect()
    }

    /// Takes in what has happened, and why the run was told to end, if it was. Returns the result in the report's words,
    /// if it is one: its texts are there then, as they may be long.
    pub(super) fn take(
        &mut self,
        event: &mut RunEvent,
        interrupted: Option<&'static str>,
    ) -> Option<TestResult> {
        match event {
            RunEvent::LaunchStarted { module, attempt, part, .. } => {
                self.course(*module, |it| {
                    it.begun += usize::from(*attempt == 1);
                    it.parts = part.1;
                });
                self.module(*module, |it| it.started = it.started.or_else(|| Some(SystemTime::now())));
            }
            RunEvent::Introduced { module, introduction, .. } => self.module(*module, |it| {
                it.framework = introduction.target_framework();
                it.architecture = introduction.architecture.to_lowercase();
            }),
            RunEvent::Discovered { module, test } => self.learn_before(*module, test),
            RunEvent::TestEnded { module, result, .. } => return Some(self.result(*module, result)),
            RunEvent::Artifact { module, artifact } => {
                let shown = shown_artifact(artifact);
                let names =
                    artifact.test_uid.iter().chain(&artifact.test_name).map(String::len).sum::<usize>();
                if !self.artifacts.has(shown.path.len() + shown.name.len() + shown.description.len() + names)
                {
                    return None;
                }
                match artifact.test_uid.as_deref().filter(|uid| !uid.is_empty()) {
                    Some(uid) => self.spool.attach(module.0, uid, artifact.test_name.as_deref(), shown),
                    None => self.module(*module, |it| it.artifacts.push(shown)),
                }
            }
            RunEvent::Message { module, severity, text } if self.messages.has(text.len()) => {
                let message = Message { level: level(*severity), text: text.clone() };
                self.module(*module, |it| it.messages.push(message));
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                self.course(*module, |it| it.stopped |= end.stopped);
                let explains = end.exit.map(mtp::Exit::code) != Some(0) || !end.failures.is_empty();
                self.module(*module, |it| {
                    it.exit_code = end.exit.map(mtp::Exit::code);
                    if explains && !(end.stdout.is_empty() && end.stderr.is_empty()) {
                        (it.stdout, it.stderr) = (end.stdout.clone(), end.stderr.clone());
                    }
                });
            }
            RunEvent::RowsMerged { module, rows } => self.keep(|spool| spool.merge(module.0, rows)),
            RunEvent::ModuleEnded { module, totals, failures, exit_code, duration, .. } => {
                if self.lost.is_some() {
                    self.spool.set_totals(module.0, counted(totals));
                }
                self.forget_sources(*module);
                self.tell_refused(*module);
                let course = self.courses.get(module.0);
                let missing = interrupted.and_then(|_| course.and_then(Course::missing)).map(str::to_owned);
                self.module(*module, |it| {
                    for failure in failures.iter() {
                        fail(it, failure);
                    }
                    it.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                    // One that was never begun has none.
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

    /// What the reports lack, in each module in which it began to.
    fn tell_refused(&mut self, module: ModuleId) {
        let rooms = [
            (&mut self.sources, "sources of tests"),
            (&mut self.messages, "messages"),
            (&mut self.artifacts, "artifacts"),
        ];
        let lacks = rooms.map(|(room, what)| (take(&mut room.refused), what));
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

    fn course(&mut self, module: ModuleId, change: impl FnOnce(&mut Course)) {
        if let Some(course) = self.courses.get_mut(module.0) {
            change(course);
        }
    }

    fn result(&mut self, module: ModuleId, result: &mut mtp::TestResult) -> TestResult {
        self.course(module, |it| it.ran = true);
        let mut shown = self.described(module, result);
        self.keep(|spool| {
            if result.outdated {
                let mut counts = spool.precede(module.0, result.row, shown.last.clone())?;
                if result.state == mtp::State::Skipped {
                    // It was skipped after the failure that counts.
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
            last: attempt(result),
            ..TestResult::default()
        };
        // What was listed; else what the id says.
        if let Some(facts) = known.cloned().or_else(|| facts_from_id(&result.uid, &result.name)) {
            shown.apply_facts(facts);
        }
        shown
    }
}

/// What a module has failed by. Each process may name other tests that were not run.
fn fail(module: &mut Module, failure: &ModuleFailure) {
    let others = module.error.take().filter(|_| matches!(failure, ModuleFailure::NotRun(_)));
    let text = explain(failure);
    module.error = Some(others.map_or_else(|| text.clone(), |others| format!("{others}\n{text}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted_in_the_reports() {
        let module = ModuleId(0);
        let mut gathered = Gathered::new(&[]).unwrap();
        gathered.spool.add_module(Module::new("a.dll"));
        gathered.courses.push(Course::default());
        let text = "x".repeat(1 << 20);
        let message = RunEvent::Message { module, severity: mtp::Severity::Information, text };
        for _ in 0..20 {
            gathered.take(&mut message.clone(), None);
        }
        let mut long = TestInfo { uid: "a".into(), method: Some("m".repeat(1 << 20)), ..TestInfo::default() };
        for number in 0..300 {
            long.uid = number.to_string();
            gathered.take(&mut RunEvent::Discovered { module, test: long.clone() }, None);
        }
        assert_eq!(gathered.known.len(), 255);
        gathered.forget_sources(module);
        gathered.tell_refused(module);
        assert_eq!((gathered.known.len(), gathered.sources.left), (0, MOST_SOURCES));
        let messages = &gathered.spool.modules()[0].messages;
        let last: Vec<_> = messages.iter().skip(16).map(|it| it.text.as_str()).collect();
        let lacks = ["45 sources of tests", "4 messages"]
            .map(|what| format!("{what} are not in the reports: there were too many, or too long ones"));
        assert_eq!(last, lacks);
    }
}
