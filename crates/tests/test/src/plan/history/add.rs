//! Adding of a run to a file test by test, so that neither the file nor the result is kept in memory.
//!
//! Merges the tests of a file with those of a run, both sorted by id. Unsorted files, and files from which entries must
//! be removed by age, are left to [`History`](super::History), which works in memory.

use std::io::{self, BufRead, Write};
use std::iter::Peekable;

use thiserror::Error;

use super::file::{Line, Lined, Lines};
use super::{Finished, HistoryError, Limits, ModuleHistory, ModuleKey, ModuleRun, TestHistory};

/// An error that occurs when adding a run. The output written so far is unusable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddError {
    /// The run can only be added in memory, by [`History::record`](super::History::record): modules or tests are not
    /// sorted, or entries must be removed because of limits.
    #[error("the run can't be added to the test history test by test")]
    InMemoryOnly,
    /// The file cannot be read or is damaged.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The result cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Copies a file of earlier runs (`None` if there is none) and adds a run of a module. Writes the same bytes as
/// [`History::record`](super::History::record) and [`History::prune`](super::History::prune). `tests` must be sorted by
/// id.
///
/// # Errors
/// Returns an error if the file is damaged, if the run cannot be added this way, or if the result cannot be written.
pub fn add_run<'t>(
    earlier: Option<impl BufRead>,
    key: &ModuleKey,
    run: &ModuleRun<'_>,
    tests: impl Iterator<Item = Finished<'t>>,
    limits: &Limits,
    out: impl Write,
) -> Result<(), AddError> {
    let tests = Ascending { tests: tests.peekable(), last: None };
    let out = Lined::begin(out)?;
    let mut adding =
        Adding { out, key, run, tests, limits, added: false, modules: 0, oldest: 0, current: None };
    if let Some(earlier) = earlier {
        let mut lines = Lines::open(earlier)?;
        let mut last = None;
        while let Some(line) = lines.next()? {
            match line {
                Line::Module(key, module) => {
                    last = None;
                    adding.old_module(key, module)?;
                }
                Line::Test(uid, test) => {
                    if last.as_ref().is_some_and(|last| *last >= uid) {
                        return Err(AddError::InMemoryOnly);
                    }
                    if adding.current.is_none() {
                        return Err(lines.wrong("a test without a module").into());
                    }
                    adding.old_test(&uid, test)?;
                    last = Some(uid);
                }
            }
        }
    }
    adding.end()
}

struct Adding<'a, 't, W, I: Iterator> {
    out: Lined<W>,
    key: &'a ModuleKey,
    run: &'a ModuleRun<'a>,
    tests: Ascending<'t, I>,
    limits: &'a Limits,
    /// Whether the module of the run was written.
    added: bool,
    modules: usize,
    /// The module that is being written, and the time of the run before which its tests are forgotten.
    current: Option<ModuleKey>,
    oldest: u64,
}

impl<'t, W: Write, I: Iterator<Item = Finished<'t>>> Adding<'_, 't, W, I> {
    fn old_module(&mut self, key: ModuleKey, mut module: ModuleHistory) -> Result<(), AddError> {
        if self.current.as_ref().is_some_and(|current| *current >= key) {
            return Err(AddError::InMemoryOnly);
        }
        self.end_module()?;
        if !self.added && *self.key < key {
            self.new_module()?;
        }
        if *self.key == key {
            module.begin(self.run);
            self.added = true;
        }
        self.module(key, module)
    }

    fn new_module(&mut self) -> Result<(), AddError> {
        let mut module = ModuleHistory::default();
        module.begin(self.run);
        self.added = true;
        self.module(self.key.clone(), module)?;
        self.end_module()
    }

    fn module(&mut self, key: ModuleKey, mut module: ModuleHistory) -> Result<(), AddError> {
        self.modules += 1;
        if self.modules > self.limits.modules {
            return Err(AddError::InMemoryOnly);
        }
        self.oldest = module.forget_listing(self.limits).unwrap_or_default();
        self.out.module(&key, &module)?;
        self.current = Some(key);
        Ok(())
    }

    fn is_of_run(&self) -> bool {
        self.current.as_ref() == Some(self.key)
    }

    fn old_test(&mut self, uid: &str, mut test: TestHistory) -> Result<(), AddError> {
        if self.is_of_run() {
            self.new_tests(Some(uid))?;
            self.tests.add_to(uid, self.run.at, &mut test)?;
        }
        self.test(uid, &test)
    }

    /// Writes new tests whose ids precede `until`.
    fn new_tests(&mut self, until: Option<&str>) -> Result<(), AddError> {
        while let Some(uid) = self.tests.next_uid().filter(|uid| until.is_none_or(|until| *uid < until)) {
            let mut test = TestHistory::default();
            self.tests.add_to(uid, self.run.at, &mut test)?;
            self.test(uid, &test)?;
        }
        Ok(())
    }

    fn test(&mut self, uid: &str, test: &TestHistory) -> Result<(), AddError> {
        if test.last_seen < self.oldest {
            return Ok(());
        }
        if self.out.tests() == self.limits.tests {
            return Err(AddError::InMemoryOnly);
        }
        Ok(self.out.test(uid, test)?)
    }

    fn end_module(&mut self) -> Result<(), AddError> {
        if self.is_of_run() { self.new_tests(None) } else { Ok(()) }
    }

    fn end(mut self) -> Result<(), AddError> {
        self.end_module()?;
        if !self.added {
            self.new_module()?;
        }
        Ok(self.out.end()?)
    }
}

/// The tests of a run.
struct Ascending<'t, I: Iterator> {
    tests: Peekable<I>,
    last: Option<&'t str>,
}

impl<'t, I: Iterator<Item = Finished<'t>>> Ascending<'t, I> {
    fn next_uid(&mut self) -> Option<&'t str> {
        self.tests.peek().map(|test| test.uid)
    }

    /// Adds all results of a test.
    fn add_to(&mut self, uid: &str, at: u64, known: &mut TestHistory) -> Result<(), AddError> {
        while let Some(test) = self.tests.next_if(|test| test.uid == uid) {
            if self.last.is_some_and(|last| last > test.uid) {
                return Err(AddError::InMemoryOnly);
            }
            self.last = Some(test.uid);
            known.add(at, &test);
        }
        Ok(())
    }
}
