//! What a run is asked to do.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runtap_mtp_proto::server::Mode;

use crate::command::ApplicationOptions;
use crate::event::{ModuleId, TestInfo};
use crate::listen::Transport;
use crate::module::Module;

/// A run: which programs, what of them, how.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The modules, by their [`ModuleId`].
    pub modules: Vec<Module>,
    /// What is to be done with them, in the order in which it is begun.
    pub jobs: Vec<Job>,
    /// Run, discover, or ask for options.
    pub mode: Mode,
    /// What all programs are given.
    pub application: ApplicationOptions,
    /// How the programs reach us.
    pub transport: Transport,
    /// As many programs at a time.
    pub parallel: usize,
    /// How often a test that has failed is run again.
    pub retries: u32,
    /// The run is stopped after so many tests have failed for good.
    pub max_failed: Option<u64>,
    /// Fewer tests are a failure.
    pub minimum_expected: u64,
    /// A run without a test is no failure: that was said, or this is one of several parts, and others have the tests.
    pub may_be_empty: bool,
    /// Exit codes, of applications and of the run, that are no failure.
    pub ignored_codes: Vec<i32>,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// What holds for single tests; `None`: the same for all.
    pub rules: Option<Arc<dyn TestRules>>,
    /// Whether a test that has passed only when it was run again fails the run.
    pub flaky_fails: bool,
    /// Whether what programs print is wanted as it comes.
    pub live_output: bool,
    /// Keeps the files that programs name; `None`: they stay where they are.
    pub keeper: Option<Arc<dyn ArtifactKeeper>>,
    /// The arguments with which this program, started once more, calls `runtap_os::reaper::keep` with the words that follow them:
    /// a keeper ends what a test application has started, even if this process is killed. Empty: applications run without a
    /// keeper. Not used on Windows, where a job object does that.
    pub process_keeper: Vec<OsString>,
}

/// A part of the work: one module, or some of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which module.
    pub module: ModuleId,
    /// Only these tests; `None`: all.
    pub uids: Option<Vec<String>>,
    /// Whether the module may lack some of these tests, as their ids were given for all modules. Otherwise each of them
    /// must have a result, or the module has failed.
    pub may_lack_uids: bool,
    /// Tests that are chosen beside `uids` and that the application may leave out for that
    /// ([`TestInfo::is_explicit`](crate::TestInfo::is_explicit)): those without a result are skipped.
    pub explicit: Vec<TestInfo>,
    /// Which part of how many, from 1 on.
    pub part: (usize, usize),
}

impl Job {
    /// A whole module.
    pub fn whole(module: ModuleId) -> Self {
        Self { module, uids: None, may_lack_uids: false, explicit: Vec::new(), part: (1, 1) }
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A test that runs longer is told of.
    pub slow: Option<Duration>,
    /// A test that runs longer is ended with its process.
    pub test: Option<Duration>,
    /// A program must introduce itself within this time.
    pub start: Duration,
    /// A program that runs longer in all is killed.
    pub whole: Option<Duration>,
    /// A program that was asked to end is killed after this time.
    pub grace: Duration,
    /// A program that has not ended so long after its last session and the last that it has said is killed.
    pub exit: Option<Duration>,
    /// After a program has ended, what it has started may hold its output and connections for this time.
    pub linger: Duration,
}

/// What holds for one test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestRule {
    /// How often it is run again when it has failed.
    pub retries: u32,
    /// If it runs longer, it is told of.
    pub slow: Option<Duration>,
    /// If it runs longer, it is ended with its process.
    pub limit: Option<Duration>,
    /// Whether its failures are reported and do not count.
    pub quarantined: bool,
}

/// Says what holds for a test. It is asked by several threads, when a test begins and when it has failed.
pub trait TestRules: fmt::Debug + Send + Sync {
    /// The rule for the test with this id and display name; `usual` is what holds for all others.
    fn rule(&self, module: ModuleId, uid: &str, name: &str, usual: TestRule) -> TestRule;
}

/// Keeps files. It is asked by several threads, each before the program that has named a file gets its answer: the program may
/// remove the file then.
pub trait ArtifactKeeper: fmt::Debug + Send + Sync {
    /// Keeps the file with this path, and returns where it is to be found from now on; `None`: where it was.
    fn keep(&self, module: ModuleId, path: &Path) -> Option<PathBuf>;
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            slow: None,
            test: None,
            start: Duration::from_mins(2),
            whole: None,
            grace: Duration::from_secs(10),
            exit: Some(Duration::from_mins(2)),
            linger: Duration::from_secs(2),
        }
    }
}

impl RunSpec {
    /// All tests of these modules, one module at a time for each processor.
    pub fn new(modules: Vec<Module>) -> Self {
        let jobs = (0..modules.len()).map(|number| Job::whole(ModuleId(number))).collect();
        Self {
            modules,
            jobs,
            mode: Mode::Run,
            application: ApplicationOptions::default(),
            transport: Transport::default(),
            parallel: std::thread::available_parallelism().map_or(1, usize::from),
            retries: 0,
            max_failed: None,
            minimum_expected: 0,
            may_be_empty: false,
            ignored_codes: Vec::new(),
            timeouts: Timeouts::default(),
            rules: None,
            flaky_fails: false,
            live_output: false,
            keeper: None,
            process_keeper: Vec::new(),
        }
    }

    /// What holds for a test.
    pub(crate) fn rule(&self, module: ModuleId, uid: &str, name: &str) -> TestRule {
        let usual = TestRule {
            retries: self.retries,
            slow: self.timeouts.slow,
            limit: self.timeouts.test,
            quarantined: false,
        };
        self.rules.as_ref().map_or(usual, |rules| rules.rule(module, uid, name, usual))
    }
}
