//! Conversion of a command's parsed output to reports for the server.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::{Artifact, Failure, HostError, Outcome, Session, TestNode, TestResult};
use runtap_test::TestOutcome;
use runtap_test::formats::{Case, Event, without_number};

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(crate) struct ResultReporter<'a> {
    session: &'a Session<'a>,
    /// The names of the requested tests, without the numbers that distinguish tests with equal names. `None` for all
    /// tests.
    wanted: Option<HashSet<String>>,
    /// The working directory of the command. `None` for the current directory.
    directory: Option<PathBuf>,
    /// The canonical working directory. Artifacts must be below it.
    real_directory: Option<PathBuf>,
    /// Whether the command cannot list its tests, so that details that results lack are sent before each result.
    introduces: bool,
    problems: Vec<String>,
    /// Whether a problem says that tests did not finish.
    has_incomplete_tests: bool,
    has_failures: bool,
    /// Whether tests failed that were not requested. They explain the exit code of the command.
    has_other_failures: bool,
}

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 20;

impl<'a> ResultReporter<'a> {
    pub(crate) fn new(
        session: &'a Session<'a>,
        wanted: Option<&[String]>,
        directory: Option<PathBuf>,
        introduces: bool,
    ) -> Self {
        let real_directory = directory.as_deref().unwrap_or_else(|| Path::new(".")).canonicalize().ok();
        Self {
            session,
            wanted: wanted.map(|uids| uids.iter().map(|uid| without_number(uid).to_owned()).collect()),
            directory,
            real_directory,
            introduces,
            problems: Vec::new(),
            has_incomplete_tests: false,
            has_failures: false,
            has_other_failures: false,
        }
    }

    pub(crate) fn report_events(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), HostError> {
        for event in events {
            match event {
                Event::Started { uid, .. } if !self.session.is_discovery() && self.wants(&uid) => {
                    self.session.begin(&TestNode::new(uid))?;
                }
                Event::Listed(case) if self.session.is_discovery() && self.wants(&case.uid) => {
                    self.session.discovered(&node(&case))?;
                }
                Event::Ended(mut case) => {
                    let is_wanted = self.wants(&case.uid);
                    let node = node(&case);
                    let artifacts = std::mem::take(&mut case.artifacts);
                    let is_group = case.is_group;
                    let (name, detail) =
                        if is_group { (case.uid.clone(), case.detail.clone()) } else { Default::default() };
                    let result = result(*case);
                    if !is_wanted && is_group {
                        // The group may contain requested tests.
                        let why = detail.map(|detail| format!(": {}", detail.message)).unwrap_or_default();
                        self.problem(format!("{name} failed{why}"));
                        continue;
                    }
                    if !is_wanted {
                        self.has_other_failures |= result.is_failure();
                        continue;
                    }
                    // Also in discovery: a command that is run for its list fails because of failed tests.
                    self.has_failures |= result.is_failure();
                    if self.session.is_discovery() {
                        self.session.discovered(&node)?;
                    } else {
                        if self.introduces {
                            self.session.discovered(&node)?;
                        }
                        for path in artifacts {
                            self.artifact(&node, Path::new(&path))?;
                        }
                        self.session.report(&node, result)?;
                    }
                }
                Event::Problem(text) => {
                    self.has_incomplete_tests = true;
                    self.problem(text);
                }
                Event::Unreadable(text) => self.problem(text),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether a test was requested. The order of tests with equal names can differ between runs, so a request
    /// for one of them selects all.
    fn wants(&self, uid: &str) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(without_number(uid)))
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(text);
        }
    }

    /// Reports a file of a test. Missing files are ignored.
    fn artifact(&self, node: &TestNode, path: &Path) -> Result<(), HostError> {
        let path = match &self.directory {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        };
        if !self.is_below(&path) {
            return Ok(());
        }
        self.session.test_artifact(node, &named(path))
    }

    /// Returns whether the file exists below the working directory, after links are resolved. The tests control the
    /// report: it must not name other files of the user, which servers copy.
    fn is_below(&self, path: &Path) -> bool {
        match (path.canonicalize(), &self.real_directory) {
            (Ok(path), Some(directory)) => path.starts_with(directory),
            _ => false,
        }
    }

    /// Reports the file with the command's results.
    pub(crate) fn report_file(&self, path: &Path) -> Result<(), HostError> {
        if self.session.is_discovery() {
            return Ok(());
        }
        self.session.artifact(&named(path.to_owned()).description("the report of the command"))
    }

    /// Returns the problems of the run.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns whether tests did not finish.
    pub(crate) fn has_incomplete_tests(&self) -> bool {
        self.has_incomplete_tests
    }

    /// Returns whether a requested test failed.
    pub(crate) fn has_failures(&self) -> bool {
        self.has_failures
    }

    /// Returns whether a test failed that was not requested.
    pub(crate) fn has_other_failures(&self) -> bool {
        self.has_other_failures
    }
}

fn named(path: PathBuf) -> Artifact {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Artifact::new(path).display_name(name)
}

/// Splits `tests.test_shop.TestCart` into namespace and class. `None` for Go packages, binaries and titles, which are
/// used unchanged as the class.
fn namespace_of(suite: &str) -> Option<(&str, &str)> {
    let is_path = suite.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    suite.rsplit_once('.').filter(|(namespace, name)| is_path && !namespace.is_empty() && !name.is_empty())
}

fn node(case: &Case) -> TestNode {
    let node = TestNode::new(case.uid.as_str()).method(case.name.as_str());
    let node = match namespace_of(&case.suite) {
        _ if case.suite.is_empty() => node,
        Some((namespace, name)) => node.namespace(namespace).type_name(name),
        None => node.type_name(&*case.suite),
    };
    match &case.place {
        Some((file, line)) => node.at(file.as_str(), *line),
        None => node,
    }
}

fn result(case: Case) -> TestResult {
    let failure = || {
        let detail = case.detail.clone().unwrap_or_default();
        let mut failure = Failure::new(detail.message);
        if !detail.kind.is_empty() {
            failure = failure.type_name(detail.kind);
        }
        let mut stack = detail.stack;
        if let Some((file, line)) = &case.place {
            // Results have no field for a location, and servers parse this form.
            let end = if stack.is_empty() { "" } else { "\n" };
            stack = format!("   at {} in {file}:line {line}{end}{stack}", case.name);
        }
        if stack.is_empty() { failure } else { failure.stack(stack) }
    };
    let outcome = match case.outcome {
        TestOutcome::Passed => Outcome::Passed,
        TestOutcome::Skipped => Outcome::Skipped(case.reason.clone()),
        TestOutcome::Failed => Outcome::Failed(failure()),
        TestOutcome::Error => Outcome::Error(failure()),
        TestOutcome::Timeout => Outcome::TimedOut(failure()),
        TestOutcome::Cancelled => Outcome::Cancelled(failure()),
    };
    let result = TestResult::new(outcome).stdout(case.stdout).stderr(case.stderr);
    match case.duration {
        Some(duration) => result.duration(duration),
        None => result,
    }
}
