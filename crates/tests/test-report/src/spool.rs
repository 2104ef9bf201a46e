//! Results in a file, so that a large run needs no memory for its texts.
//!
//! Owns: a file of results as they arrive, one after the other, and where each of them is: 16 bytes of memory a
//! result. What is told of tests apart from their results is put together with them when they are read: facts that an
//! application lists (in the file as well, some 60 bytes of memory each), and files that tests leave. Refuses to: open the file
//! (the caller brings anything that reads, writes and seeks); survive the process: the places are in memory only.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::source::no_result;
use crate::{Artifact, Attempt, Facts, Module, Run, Source, TestResult, Totals};

/// How much is written at once.
const BUFFER: usize = 64 * 1024;

/// Where a result is in the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: usize,
}

/// A run whose results are in `F`, usually a temporary file without a name.
#[derive(Debug)]
pub struct Spool<F: Read + Write + Seek> {
    run: Run,
    modules: Vec<Module>,
    places: Vec<Vec<Place>>,
    totals: Vec<Totals>,
    /// The offset after the last result.
    end: u64,
    /// Whether the file is known to stand there.
    at_end: Cell<bool>,
    file: RefCell<BufWriter<F>>,
    /// What was listed of tests, by their module and the hash of their uid.
    facts: HashMap<(usize, u64), Place>,
    hasher: RandomState,
    /// Files that tests have left, by the test's module and uid.
    left: BTreeMap<(usize, String), Vec<Left>>,
}

/// A file that a test has left.
#[derive(Debug)]
struct Left {
    /// The name of the test: several tests can have one uid.
    name: Option<String>,
    artifact: Artifact,
}

impl Left {
    fn is_of(&self, result: &TestResult) -> bool {
        self.name.as_ref().is_none_or(|name| *name == result.name)
    }
}

/// Counts what goes into a writer, and keeps its error, which postcard does not pass on.
struct Counting<'a, W> {
    w: &'a mut W,
    bytes: usize,
    error: Option<io::Error>,
}

impl<W> Counting<'_, W> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.error = Some(error);
        kind.into()
    }
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.w.write(bytes) {
            Ok(n) => {
                self.bytes += n;
                Ok(n)
            }
            Err(error) => Err(self.keep(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.w.flush().map_err(|error| self.keep(error))
    }
}

impl<F: Read + Write + Seek> Spool<F> {
    /// A run without modules. `file` is written from its beginning.
    pub fn new(run: Run, file: F) -> Self {
        let file = RefCell::new(BufWriter::with_capacity(BUFFER, file));
        Self {
            run,
            modules: Vec::new(),
            places: Vec::new(),
            totals: Vec::new(),
            end: 0,
            at_end: Cell::new(false),
            file,
            facts: HashMap::new(),
            hasher: RandomState::new(),
            left: BTreeMap::new(),
        }
    }

    /// Adds a module; its number is returned.
    pub fn add_module(&mut self, module: Module) -> usize {
        self.modules.push(module);
        self.places.push(Vec::new());
        self.totals.push(Totals::default());
        self.modules.len() - 1
    }

    /// Adds a result to a module.
    ///
    /// Fails if there is no such module or the file can't be written.
    pub fn push(&mut self, module: usize, result: &TestResult) -> io::Result<()> {
        if module >= self.modules.len() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no module {module}")));
        }
        let place = self.append(result)?;
        if let (Some(places), Some(totals)) = (self.places.get_mut(module), self.totals.get_mut(module)) {
            places.push(place);
            totals.add(result);
        }
        Ok(())
    }

    /// Adds a later attempt at a result, which takes its place: what was there becomes an attempt before that. Returns both
    /// together.
    ///
    /// Fails if there is no such result, or the file can't be read or written.
    pub fn follow(&mut self, module: usize, index: usize, mut later: TestResult) -> io::Result<TestResult> {
        let before = self.stored(module, index)?;
        later.earlier.clone_from(&before.earlier);
        later.earlier.push(before.last.clone());
        self.replace(module, index, &before, &later)?;
        Ok(later)
    }

    /// Adds an attempt at a result that comes later than the one that counts, and does not count itself. Returns the result.
    ///
    /// Fails if there is no such result, or the file can't be read or written.
    pub fn precede(&mut self, module: usize, index: usize, earlier: Attempt) -> io::Result<TestResult> {
        let before = self.stored(module, index)?;
        let mut whole = before.clone();
        whole.earlier.push(earlier);
        self.replace(module, index, &before, &whole)?;
        Ok(whole)
    }

    /// Takes results out of a module: the attempts of each, given with another result, are attempts before those of that
    /// one. The numbers of the results behind them change.
    ///
    /// Fails if there are no such results, or the file can't be read or written.
    pub fn merge(&mut self, module: usize, rows: &[(usize, usize)]) -> io::Result<()> {
        for &(index, into) in rows {
            let (gone, before) = (self.stored(module, index)?, self.stored(module, into)?);
            let mut whole = before.clone();
            whole.earlier.splice(0..0, gone.earlier.iter().chain([&gone.last]).cloned());
            self.replace(module, into, &before, &whole)?;
            if let Some(totals) = self.totals.get_mut(module) {
                totals.remove(&gone);
            }
        }
        let gone: HashSet<usize> = rows.iter().map(|(index, _)| *index).collect();
        let mut number = 0;
        if let Some(places) = self.places.get_mut(module) {
            places.retain(|_| {
                number += 1;
                !gone.contains(&(number - 1))
            });
        }
        Ok(())
    }

    /// Has a module counted otherwise than by its results: not all of them could be added.
    pub fn set_totals(&mut self, module: usize, totals: Totals) {
        if let Some(counted) = self.totals.get_mut(module) {
            *counted = totals;
        }
    }

    fn replace(
        &mut self,
        module: usize,
        index: usize,
        before: &TestResult,
        after: &TestResult,
    ) -> io::Result<()> {
        let new = self.append(after)?;
        let place = self.places.get_mut(module).and_then(|places| places.get_mut(index));
        if let (Some(place), Some(totals)) = (place, self.totals.get_mut(module)) {
            *place = new;
            totals.remove(before);
            totals.add(after);
        }
        Ok(())
    }

    /// Takes in what was listed of a test: its results have it, those that are there and those that come.
    ///
    /// Fails if the file can't be written.
    pub fn know(&mut self, module: usize, uid: &str, facts: &Facts) -> io::Result<()> {
        let place = self.append(&(uid, facts))?;
        self.facts.insert((module, self.hasher.hash_one(uid)), place);
        Ok(())
    }

    /// Takes in a file that a test has left; `name` is the name of the test, if that is known.
    pub fn attach(&mut self, module: usize, uid: &str, name: Option<&str>, artifact: Artifact) {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.left.entry((module, uid.to_owned())).or_default().push(Left { name, artifact });
    }

    /// Gives files of tests that have no result to their modules. Nothing comes any more.
    ///
    /// Fails if a result can't be read.
    pub fn settle(&mut self) -> io::Result<()> {
        let mut lonely = std::mem::take(&mut self.left);
        let mut theirs: BTreeMap<_, Vec<Left>> = BTreeMap::new();
        let with_files: Vec<usize> = (0..self.modules.len())
            .filter(|module| {
                lonely.range((*module, String::new())..).next().is_some_and(|((of, _), _)| of == module)
            })
            .collect();
        for module in with_files {
            for index in 0..self.count(module) {
                let result = self.result(module, index)?;
                let key = (module, result.uid.clone());
                let Some(left) = lonely.get_mut(&key) else { continue };
                let found: Vec<_> = left.extract_if(.., |left| left.is_of(&result)).collect();
                theirs.entry(key).or_default().extend(found);
            }
        }
        self.left = theirs;
        for ((module, _), left) in lonely {
            if let Some(module) = self.modules.get_mut(module) {
                module.artifacts.extend(left.into_iter().map(|left| left.artifact));
            }
        }
        Ok(())
    }

    /// Writes a value behind the last one.
    fn append(&mut self, value: &impl Serialize) -> io::Result<Place> {
        let file = self.file.get_mut();
        // A buffered writer writes what it holds before it seeks: only after something was read, or a write failed.
        if !self.at_end.replace(false) {
            file.seek(SeekFrom::Start(self.end))?;
        }
        let mut counting = Counting { w: file, bytes: 0, error: None };
        if let Err(error) = postcard::to_io(value, &mut counting) {
            return Err(counting.error.unwrap_or_else(|| io::Error::other(error)));
        }
        let place = Place { offset: self.end, length: counting.bytes };
        self.at_end.set(true);
        self.end += place.length as u64;
        Ok(place)
    }

    /// A result as it is in the file.
    fn stored(&self, module: usize, index: usize) -> io::Result<TestResult> {
        let place = self.places.get(module).and_then(|places| places.get(index)).copied();
        self.read(place.ok_or_else(|| no_result(module, index))?)
    }

    fn read<T: DeserializeOwned>(&self, place: Place) -> io::Result<T> {
        let mut file = self.file.borrow_mut();
        // Writes what is still in the buffer.
        self.at_end.set(false);
        file.seek(SeekFrom::Start(place.offset))?;
        let mut bytes = vec![0; place.length];
        file.get_mut().read_exact(&mut bytes)?;
        postcard::from_bytes(&bytes).map_err(io::Error::other)
    }

    /// The run, to say how it ended.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// A module, to say how it ended.
    pub fn module_mut(&mut self, module: usize) -> Option<&mut Module> {
        self.modules.get_mut(module)
    }
}

impl<F: Read + Write + Seek> Source for Spool<F> {
    fn run(&self) -> &Run {
        &self.run
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn count(&self, module: usize) -> usize {
        self.places.get(module).map_or(0, Vec::len)
    }

    fn result(&self, module: usize, index: usize) -> io::Result<Cow<'_, TestResult>> {
        let mut result = self.stored(module, index)?;
        if let Some(facts) = self.facts.get(&(module, self.hasher.hash_one(result.uid.as_str()))) {
            let (uid, facts): (String, Facts) = self.read(*facts)?;
            // Two uids can have one hash.
            if uid == result.uid {
                result.learn(facts);
            }
        }
        if !self.left.is_empty()
            && let Some(left) = self.left.get(&(module, result.uid.clone()))
        {
            let own = left.iter().filter(|left| left.is_of(&result)).map(|left| left.artifact.clone());
            result.artifacts.extend(own.collect::<Vec<_>>());
        }
        Ok(Cow::Owned(result))
    }

    fn totals(&self, module: usize) -> io::Result<Totals> {
        Ok(self.totals.get(module).copied().unwrap_or_default())
    }
}
