//! The settings of a run.

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

/// The settings of a run: which programs are run, which tests, and how.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The modules, by their [`ModuleId`].
    pub modules: Vec<Module>,
    /// The jobs, in the order in which they are started.
    pub jobs: Vec<Job>,
    /// The mode: run tests, discover tests, or list options.
    pub mode: Mode,
    /// The options of all programs.
    pub application: ApplicationOptions,
    /// The transport between runtap and the programs.
    pub transport: Transport,
    /// The maximum number of programs that run in parallel.
    pub parallel: usize,
    /// The maximum number of retries of a failed test.
    pub retries: u32,
    /// The number of final failures after which the run is stopped.
    pub max_failed: Option<u64>,
    /// The minimum number of tests; fewer tests make the run fail.
    pub minimum_expected: u64,
    /// Whether a run without tests succeeds, because the user allowed it, or because this is one of several parts and
    /// other parts have the tests.
    pub may_be_empty: bool,
    /// The exit codes of applications and of the run that count as success.
    pub ignored_codes: Vec<i32>,
    /// The time-outs.
    pub timeouts: Timeouts,
    /// The rules for single tests. `None` if all tests have the same rules.
    pub rules: Option<Arc<dyn TestRules>>,
    /// Whether a test that passed only after a retry makes the run fail.
    pub flaky_fails: bool,
    /// Whether output of programs is sent as events while they run.
    pub live_output: bool,
    /// The keeper of files that applications report. `None` if files are not copied.
    pub keeper: Option<Arc<dyn ArtifactKeeper>>,
    /// The arguments with which another instance of this program runs `runtap_os::reaper::run_reaper` on the arguments that
    /// follow. Such a reaper terminates the processes that a test application started, even if this process is killed.
    /// Empty to run applications without a reaper. Not used on Windows, where job objects are used instead.
    pub process_keeper: Vec<OsString>,
}

/// A job: one module, or some of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The module.
    pub module: ModuleId,
    /// The ids of the tests to run. `None` for all tests.
    pub uids: Option<Vec<String>>,
    /// Whether the module may lack some of these tests, because the ids were specified for all modules. Otherwise the
    /// module fails if one of them has no result.
    pub may_lack_uids: bool,
    /// Explicit tests that are selected beside `uids`, and that the application may skip for that reason
    /// ([`TestInfo::is_explicit`](crate::TestInfo::is_explicit)). Tests without a result are reported as skipped.
    pub explicit: Vec<TestInfo>,
    /// The part of the module, starting at 1, and the number of parts.
    pub part: (usize, usize),
}

impl Job {
    /// Creates a job for a whole module.
    pub fn whole(module: ModuleId) -> Self {
        Self { module, uids: None, may_lack_uids: false, explicit: Vec::new(), part: (1, 1) }
    }
}

/// The time-outs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The time after which a running test is reported as slow.
    pub slow: Option<Duration>,
    /// The time after which a running test is stopped together with its process.
    pub test: Option<Duration>,
    /// The time in which a program must complete its handshake.
    pub start: Duration,
    /// The time after which a program is killed.
    pub whole: Option<Duration>,
    /// The time after which a program that was requested to stop is killed.
    pub grace: Duration,
    /// The time after the last session and the last message of a program after which it is killed if it has not exited.
    pub exit: Option<Duration>,
    /// The time for which descendants of an exited program may hold its output and connections open.
    pub linger: Duration,
}

/// The rules for one test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestRule {
    /// The maximum number of retries after a failure.
    pub retries: u32,
    /// The time after which the running test is reported as slow.
    pub slow: Option<Duration>,
    /// The time after which the running test is stopped together with its process.
    pub limit: Option<Duration>,
    /// Whether failures of the test are reported but do not count.
    pub quarantined: bool,
}

/// A source of rules for tests. Called by several threads, when a test starts and when it has failed.
pub trait TestRules: fmt::Debug + Send + Sync {
    /// Returns the rule for the test with this id and display name. `usual` is the rule for all other tests.
    fn rule(&self, module: ModuleId, uid: &str, name: &str, usual: TestRule) -> TestRule;
}

/// A keeper of files. Called by several threads, each before the program that named a file gets its reply: the program
/// may remove the file afterwards.
pub trait ArtifactKeeper: fmt::Debug + Send + Sync {
    /// Copies the file with this path, and returns the path of the copy. `None` if the file was not copied.
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
    /// Creates settings that run all tests of these modules, with one module at a time for each processor.
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

    /// Returns the rule for a test.
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
