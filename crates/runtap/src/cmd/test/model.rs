//! From what happens in a run to what reports are made of: each test once, with all its attempts.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use runtap_mtp as mtp;
use runtap_mtp::{ModuleFailure, ModuleId, RunEvent, TestInfo};
use runtap_test_report::{
    Artifact, Attempt, Exception, Level, Location, Message, Module, Run, Spool, State, TestResult, Trait,
};

/// Gathers a run. Results that may have another attempt are held in memory, all others go to the file at once.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) spool: Spool<std::fs::File>,
    /// Tests that have failed and may be repeated, and their attempts so far.
    open: HashMap<(ModuleId, String), Vec<TestResult>>,
    /// What was discovered of tests.
    known: HashMap<(ModuleId, String), TestInfo>,
    retries: bool,
}

impl Gathered {
    /// For a run that begins now.
    pub(super) fn new(modules: &[mtp::Module], retries: bool) -> io::Result<Self> {
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let run = Run {
            started: SystemTime::now(),
            duration_ns: 0,
            command,
            runner: "runtap".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            exit_code: 0,
            interrupted: None,
            machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        let mut spool = Spool::new(run, unnamed_file()?);
        for module in modules {
            spool.add_module(Module::new(module.path().to_string_lossy()));
        }
        Ok(Self { spool, open: HashMap::new(), known: HashMap::new(), retries })
    }

    /// Takes in what has happened. Returns the result in the report's words, if it is one.
    pub(super) fn take(&mut self, event: &RunEvent) -> io::Result<Option<TestResult>> {
        match event {
            RunEvent::LaunchStarted { module, .. } => {
                self.module(*module, |it| it.started = it.started.or_else(|| Some(SystemTime::now())));
            }
            RunEvent::Introduced { module, introduction, .. } => self.module(*module, |it| {
                it.framework = short_framework(&introduction.framework);
                it.architecture = introduction.architecture.to_lowercase();
            }),
            RunEvent::Discovered { module, test } => {
                self.known.insert((*module, test.uid.clone()), test.clone());
            }
            RunEvent::TestEnded { module, result, .. } => return self.result(*module, result).map(Some),
            RunEvent::Artifact { module, artifact } => {
                let artifact = shown_artifact(artifact);
                self.module(*module, |it| it.artifacts.push(artifact));
            }
            RunEvent::Message { module, severity, text } => {
                let message = Message { level: level(*severity), text: text.clone() };
                self.module(*module, |it| it.messages.push(message));
            }
            RunEvent::LaunchEnded { module, end, .. } => {
                let explains = end.exit.map(mtp::Exit::code) != Some(0) || !end.failures.is_empty();
                self.module(*module, |it| {
                    it.exit_code = end.exit.map(mtp::Exit::code);
                    if explains {
                        (it.stdout, it.stderr) = (end.stdout.clone(), end.stderr.clone());
                    }
                    if let Some(failure) = end.failures.first() {
                        it.error = Some(describe(failure));
                    }
                });
            }
            RunEvent::ModuleEnded { module, exit_code, duration, .. } => {
                self.finish(*module)?;
                self.module(*module, |it| {
                    it.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                    it.exit_code = Some(*exit_code);
                });
            }
            RunEvent::RunEnded { exit_code, duration, .. } => {
                let run = self.spool.run_mut();
                run.exit_code = *exit_code;
                run.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            }
            _ => {}
        }
        Ok(None)
    }

    fn module(&mut self, module: ModuleId, change: impl FnOnce(&mut Module)) {
        if let Some(module) = self.spool.module_mut(module.0) {
            change(module);
        }
    }

    fn result(&mut self, module: ModuleId, result: &mtp::TestResult) -> io::Result<TestResult> {
        let mut shown = self.described(module, result);
        let key = (module, result.uid.clone());
        let may_be_repeated = result.state.is_failure() && self.retries || result.superseded;
        match self.open.get_mut(&key) {
            // Another attempt at the first that is still open; of several results of one attempt, each for itself.
            Some(open) if result.attempt > 1 => {
                if let Some(before) = open.pop() {
                    shown.earlier = before.earlier;
                    shown.earlier.push(before.last);
                }
                if open.is_empty() {
                    self.open.remove(&key);
                }
            }
            _ => {}
        }
        if may_be_repeated {
            self.open.entry(key).or_default().push(shown.clone());
        } else {
            self.spool.push(module.0, &shown)?;
        }
        Ok(shown)
    }

    /// What is still open has had its last attempt.
    fn finish(&mut self, module: ModuleId) -> io::Result<()> {
        let mut left: Vec<_> = self.open.extract_if(|(of, _), _| *of == module).collect();
        left.sort_by(|(one, _), (other, _)| one.1.cmp(&other.1));
        for result in left.into_iter().flat_map(|(_, results)| results) {
            self.spool.push(module.0, &result)?;
        }
        self.known.retain(|(of, _), _| *of != module);
        Ok(())
    }

    fn described(&self, module: ModuleId, result: &mtp::TestResult) -> TestResult {
        let known = self.known.get(&(module, result.uid.clone()));
        let location = known.and_then(|known| {
            let line = known.line.and_then(|line| u32::try_from(line).ok());
            Some(Location { file: known.file.clone()?, line })
        });
        let traits = known.into_iter().flat_map(|known| &known.traits);
        TestResult {
            uid: result.uid.clone(),
            name: result.name.clone(),
            namespace: known.and_then(|known| known.namespace.clone()),
            type_name: known.and_then(|known| known.type_name.clone()),
            method: known.and_then(|known| known.method.clone()),
            location,
            traits: traits.map(|(key, value)| Trait { key: key.clone(), value: value.clone() }).collect(),
            last: attempt(result),
            ..TestResult::default()
        }
    }
}

fn attempt(result: &mtp::TestResult) -> Attempt {
    let exceptions = result.exceptions.iter().map(|exception| Exception {
        message: exception.message.clone().unwrap_or_default(),
        type_name: exception.type_name.clone().unwrap_or_default(),
        stack: exception.stack.clone().unwrap_or_default(),
    });
    Attempt {
        state: match result.state {
            mtp::State::Passed => State::Passed,
            mtp::State::Failed => State::Failed,
            mtp::State::Skipped => State::Skipped,
            mtp::State::Error => State::Error,
            mtp::State::Timeout => State::Timeout,
            mtp::State::Cancelled => State::Cancelled,
        },
        started: None,
        duration_ns: result.duration.map(|it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX)),
        reason: result.reason.clone(),
        exceptions: exceptions.collect(),
        expected: result.expected.clone(),
        actual: result.actual.clone(),
        stdout: result.stdout.clone(),
        stderr: result.stderr.clone(),
    }
}

pub(super) fn shown_artifact(artifact: &mtp::Artifact) -> Artifact {
    Artifact {
        path: artifact.path.to_string_lossy().into_owned(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
    }
}

pub(super) fn level(severity: mtp::Severity) -> Level {
    match severity {
        mtp::Severity::Information => Level::Info,
        mtp::Severity::Warning => Level::Warning,
        mtp::Severity::Error => Level::Error,
    }
}

/// What a module has failed by, in a sentence.
pub(super) fn describe(failure: &ModuleFailure) -> String {
    match failure {
        ModuleFailure::NotStarted(why) => format!("can't be started: {why}"),
        ModuleFailure::NoHandshake(Some(code)) => {
            format!(
                "exited with {code} without connecting: no application of Microsoft.Testing.Platform, or it ended before"
            )
        }
        ModuleFailure::NoHandshake(None) => "never connected".to_owned(),
        ModuleFailure::Incompatible(why) => {
            format!("speaks no version of the protocol that is known here: {why}")
        }
        ModuleFailure::Protocol(what) => format!("broke the protocol: {what}"),
        ModuleFailure::Died { running, exit } if running.is_empty() => format!("died (exit code {exit})"),
        ModuleFailure::Died { running, exit } => {
            format!("died (exit code {exit}) while running {}", running.join(", "))
        }
        ModuleFailure::ExitCode(code) => format!("exited with {code}{}", meaning(*code)),
        ModuleFailure::Unresponsive(why) => format!("was killed: {why}"),
    }
}

/// What the platform means by a code.
fn meaning(code: i32) -> &'static str {
    match code {
        2 => ": tests failed, but none was reported",
        3 => ": its session was aborted",
        4 => ": its set-up is invalid",
        5 => ": it does not know an option",
        7 => ": its test host died",
        8 => ": it ran no test",
        9 => ": it ran fewer tests than it expects",
        10 => ": its test framework could not open or close a session",
        11 => ": the process that it depends on has ended",
        12 => ": it does not speak our version of the protocol",
        13 => ": it stopped at its own limit of failed tests",
        14 => ": its coverage is below its threshold",
        134 => ": it crashed",
        _ => "",
    }
}

/// `.NET 10.0.12` becomes `net10.0`; anything else stays.
pub(super) fn short_framework(framework: &str) -> String {
    let version = framework.strip_prefix(".NET ").map(|version| version.splitn(3, '.').take(2));
    match version.map(Iterator::collect::<Vec<_>>) {
        Some(parts) if parts.len() == 2 && parts.iter().all(|part| part.parse::<u16>().is_ok()) => {
            format!("net{}", parts.join("."))
        }
        _ => framework.to_owned(),
    }
}

/// A file without a name, for results.
fn unnamed_file() -> io::Result<std::fs::File> {
    use rustix::fs::{Mode, OFlags};

    let directory = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        Err(_) => named_and_removed(&directory),
    }
}

/// Where the file system has no such files.
fn named_and_removed(directory: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let path = directory.join(format!("runtap-results-{:016x}", runtap_transport::random_u64()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
