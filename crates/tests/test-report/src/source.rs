//! Sources of runs for reports.
//!
//! A report requests results by their number, several times and in any order, because formats group results by class,
//! put failures first, or list results repeatedly.

use std::borrow::Cow;
use std::io;
use std::time::SystemTime;

use crate::{Module, Run, TestResult, Totals, text};

/// A run that can be reported.
pub trait Source {
    /// Returns the run.
    fn run(&self) -> &Run;

    /// Returns the modules of the run.
    fn modules(&self) -> &[Module];

    /// Returns the number of results of a module; 0 if the module does not exist.
    fn count(&self, module: usize) -> usize;

    /// Returns a result by the number of its module and its index in the module, both starting at 0.
    ///
    /// Returns an error if the result cannot be read or does not exist.
    fn result(&self, module: usize, index: usize) -> io::Result<Cow<'_, TestResult>>;

    /// Returns the totals of one module. Reads all of its results, unless a source knows the totals.
    fn totals(&self, module: usize) -> io::Result<Totals> {
        let mut totals = Totals::default();
        for index in 0..self.count(module) {
            totals.add(&*self.result(module, index)?);
        }
        Ok(totals)
    }

    /// Returns the totals of all modules together.
    fn all_totals(&self) -> io::Result<Totals> {
        (0..self.modules().len())
            .try_fold(Totals::default(), |sum, module| Ok(sum.plus(&self.totals(module)?)))
    }
}

/// Returns the problem of a run that neither a test nor a module shows: it was interrupted, or its exit code has
/// another cause. Readers that look only at tests would consider such a run successful.
///
/// Returns errors of the source.
pub fn trouble(source: &impl Source) -> io::Result<Option<String>> {
    let run = source.run();
    if source.modules().iter().any(|module| module.error.is_some()) {
        return Ok(None);
    }
    if let Some(why) = &run.interrupted {
        return Ok(Some(format!("the run was interrupted: {why}")));
    }
    if let Some(error) = &run.error {
        return Ok(Some(error.clone()));
    }
    let totals = source.all_totals()?;
    if run.exit_code == 0 || totals.failures() > 0 {
        return Ok(None);
    }
    // The exit codes of the platform.
    let why = match run.exit_code {
        2 if totals.flaky > 0 => ": flaky tests count as failures",
        3 => ": the run was stopped",
        8 => ": no test was run",
        9 => ": fewer tests than expected",
        13 => ": stopped, as too many tests failed",
        _ => "",
    };
    Ok(Some(format!("the run ended with exit code {}{why}", run.exit_code)))
}

/// A broken module or run, for formats that support only tests.
#[derive(Debug)]
pub(crate) struct Broken<'a> {
    /// The number of the module; `None` for the run itself.
    pub(crate) number: Option<usize>,
    /// The module, or a placeholder for the run.
    pub(crate) module: Cow<'a, Module>,
    /// The name of the test that represents it.
    pub(crate) name: String,
    /// The reason.
    pub(crate) error: String,
}

impl Broken<'_> {
    /// Returns the start, which is the start of the run if the module has none.
    pub(crate) fn started(&self, run: &Run) -> SystemTime {
        self.module.started.unwrap_or(run.started)
    }
}

/// Returns the run if [`trouble`] reports a problem, and each module with an error. JUnit, TRX and CTRF show and count
/// one failed test for each.
pub(crate) fn broken(source: &impl Source) -> io::Result<Vec<Broken<'_>>> {
    let run = source.run();
    let of_run = trouble(source)?.map(|error| {
        let name = if run.runner.is_empty() { text::UNNAMED } else { &run.runner };
        let module = Module {
            path: String::new(),
            started: Some(run.started),
            duration_ns: run.duration_ns,
            ..Module::new(name)
        };
        Broken { number: None, module: Cow::Owned(module), name: "test run".to_owned(), error }
    });
    let of_modules = source.modules().iter().enumerate().filter_map(|(number, module)| {
        let name = format!("test application {}", module.title());
        let error = module.error.clone()?;
        Some(Broken { number: Some(number), module: Cow::Borrowed(module), name, error })
    });
    Ok(of_run.into_iter().chain(of_modules).collect())
}

/// Returns the error of a source for a result that does not exist.
pub(crate) fn no_result(module: usize, index: usize) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no result {index} of module {module}"))
}

/// A run in memory.
#[derive(Debug, Clone)]
pub struct Memory {
    run: Run,
    modules: Vec<Module>,
    results: Vec<Vec<TestResult>>,
}

impl Memory {
    /// Creates a run with modules and their results.
    pub fn new(run: Run, modules: impl IntoIterator<Item = (Module, Vec<TestResult>)>) -> Self {
        let (modules, results) = modules.into_iter().unzip();
        Self { run, modules, results }
    }
}

impl Source for Memory {
    fn run(&self) -> &Run {
        &self.run
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn count(&self, module: usize) -> usize {
        self.results.get(module).map_or(0, Vec::len)
    }

    fn result(&self, module: usize, index: usize) -> io::Result<Cow<'_, TestResult>> {
        let result = self.results.get(module).and_then(|results| results.get(index));
        result.map(Cow::Borrowed).ok_or_else(|| no_result(module, index))
    }
}
