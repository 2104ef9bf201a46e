//! Where reports get a run from.
//!
//! Owns: the trait, and the source that is all in memory. A report asks for results by their number, several times and
//! in any order, because formats group them by class, put failures first, or list each one in three places.

use std::borrow::Cow;
use std::io;
use std::time::SystemTime;

use crate::{Module, Run, TestResult, Totals, text};

/// A run that can be reported.
pub trait Source {
    /// The run.
    fn run(&self) -> &Run;

    /// Its modules.
    fn modules(&self) -> &[Module];

    /// How many results a module has; 0 if there is no such module.
    fn count(&self, module: usize) -> usize;

    /// A result, by the number of its module and its own within that, both from 0.
    ///
    /// Fails if it can't be read, or if there is none of these numbers.
    fn result(&self, module: usize, index: usize) -> io::Result<Cow<'_, TestResult>>;

    /// The totals of one module. Reads all of its results, unless a source knows them already.
    fn totals(&self, module: usize) -> io::Result<Totals> {
        let mut totals = Totals::default();
        for index in 0..self.count(module) {
            totals.add(&*self.result(module, index)?);
        }
        Ok(totals)
    }

    /// The totals of all modules together.
    fn all_totals(&self) -> io::Result<Totals> {
        (0..self.modules().len())
            .try_fold(Totals::default(), |sum, module| Ok(sum.plus(&self.totals(module)?)))
    }
}

/// What is wrong with a run that neither a test nor a module shows: it was interrupted, or its exit code has another reason.
/// Readers that look at tests alone would take it for a good one.
///
/// Errors are those of the source.
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
    // The platform's codes.
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

/// Something that did not end well although no test says so, as formats show it that know nothing but tests.
#[derive(Debug)]
pub(crate) struct Broken<'a> {
    /// The number of the module; `None` for the run itself.
    pub(crate) number: Option<usize>,
    /// The module, or one that stands for the run.
    pub(crate) module: Cow<'a, Module>,
    /// The name of the test that is shown.
    pub(crate) name: String,
    /// Why it failed.
    pub(crate) error: String,
}

impl Broken<'_> {
    /// When it began: the start of the run if the module has none.
    pub(crate) fn started(&self, run: &Run) -> SystemTime {
        self.module.started.unwrap_or(run.started)
    }
}

/// The run if [`trouble`] says something, then each module with an error. JUnit, TRX and CTRF all show one failed test for
/// each of them, and count it.
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

/// What a source says when it is asked for a result that it does not have.
pub(crate) fn no_result(module: usize, index: usize) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no result {index} of module {module}"))
}

/// A run that is all in memory.
#[derive(Debug, Clone)]
pub struct Memory {
    run: Run,
    modules: Vec<Module>,
    results: Vec<Vec<TestResult>>,
}

impl Memory {
    /// A run with the modules and their results.
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
