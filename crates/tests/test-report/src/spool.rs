//! Results in a file, so that a large run needs no memory for its texts.
//!
//! Results are appended to a file, and their locations are kept in memory (16 bytes per result). Facts that an
//! application lists (in the file too, about 60 bytes of memory each) and files that tests produce are merged with
//! results when they are read. The caller provides the file, and the data is lost when the process exits, because
//! locations are only in memory.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::source::no_result;
use crate::{Artifact, Attempt, Facts, Module, Run, Source, TestResult, Totals};

/// The size of the write buffer, in bytes.
const BUFFER_SIZE: usize = 64 * 1024;

/// The location of a result in the file.
#[derive(Debug, Clone, Copy)]
struct FilePosition {
    offset: u64,
    length: usize,
}

/// A run whose results are in `F`, usually a temporary file without a name.
#[derive(Debug)]
pub struct Spool<F: Read + Write + Seek> {
    run: Run,
    modules: Vec<Module>,
    places: Vec<Vec<FilePosition>>,
    totals: Vec<Totals>,
    /// The offset after the last result.
    end: u64,
    /// Whether the file position is known to be at the end.
    at_end: Cell<bool>,
    file: RefCell<BufWriter<F>>,
    /// The listed facts of tests, by module and hash of the uid.
    facts: HashMap<(usize, u64), FilePosition>,
    hasher: RandomState,
    /// The files that tests produced, by the test's module and uid.
    left: BTreeMap<(usize, String), Vec<TestArtifact>>,
}

/// A file that a test produced.
#[derive(Debug)]
struct TestArtifact {
    /// The name of the test, because several tests may have one uid.
    name: Option<String>,
    artifact: Artifact,
}

impl TestArtifact {
    fn is_of(&self, result: &TestResult) -> bool {
        self.name.as_ref().is_none_or(|name| *name == result.name)
    }
}

/// A writer that counts bytes, and keeps errors, which postcard does not return.
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
    /// Creates a run without modules. `file` is written from its start.
    pub fn new(run: Run, file: F) -> Self {
        let file = RefCell::new(BufWriter::with_capacity(BUFFER_SIZE, file));
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

    /// Adds a module and returns its number.
    pub fn add_module(&mut self, module: Module) -> usize {
        self.modules.push(module);
        self.places.push(Vec::new());
        self.totals.push(Totals::default());
        self.modules.len() - 1
    }

    /// Adds a result to a module.
    ///
    /// Returns an error if the module does not exist, or the file cannot be written.
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

    /// Adds a later attempt to a result and replaces it: the previous result becomes an earlier attempt. Returns the
    /// combined result.
    ///
    /// Returns an error if the result does not exist, or the file cannot be read or written.
    pub fn follow(&mut self, module: usize, index: usize, mut later: TestResult) -> io::Result<TestResult> {
        let before = self.stored(module, index)?;
        later.earlier.clone_from(&before.earlier);
        later.earlier.push(before.last.clone());
        self.replace(module, index, &before, &later)?;
        Ok(later)
    }

    /// Adds an attempt that is later than the one that counts, but does not count itself. Returns the result.
    ///
    /// Returns an error if the result does not exist, or the file cannot be read or written.
    pub fn precede(&mut self, module: usize, index: usize, earlier: Attempt) -> io::Result<TestResult> {
        let before = self.stored(module, index)?;
        let mut whole = before.clone();
        whole.earlier.push(earlier);
        self.replace(module, index, &before, &whole)?;
        Ok(whole)
    }

    /// Removes results from a module: the attempts of each become earlier attempts of the result that is paired with
    /// it. The indexes of later results change.
    ///
    /// Returns an error if the results do not exist, or the file cannot be read or written.
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

    /// Sets the totals of a module, because not all of its results could be added.
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

    /// Adds listed facts about a test, which apply to all of its results, including later ones.
    ///
    /// Returns an error if the file cannot be written.
    pub fn know(&mut self, module: usize, uid: &str, facts: &Facts) -> io::Result<()> {
        let place = self.append(&(uid, facts))?;
        self.facts.insert((module, self.hasher.hash_one(uid)), place);
        Ok(())
    }

    /// Adds a file that a test produced. `name` is the name of the test, if known.
    pub fn attach(&mut self, module: usize, uid: &str, name: Option<&str>, artifact: Artifact) {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.left.entry((module, uid.to_owned())).or_default().push(TestArtifact { name, artifact });
    }

    /// Assigns files of tests without results to their modules. Must be called after all data has been added.
    ///
    /// Returns an error if a result cannot be read.
    pub fn settle(&mut self) -> io::Result<()> {
        let mut lonely = std::mem::take(&mut self.left);
        let mut theirs: BTreeMap<_, Vec<TestArtifact>> = BTreeMap::new();
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

    /// Appends a value.
    fn append(&mut self, value: &impl Serialize) -> io::Result<FilePosition> {
        let file = self.file.get_mut();
        // Seek only after reading or a failed write, because a buffered writer flushes before it seeks.
        if !self.at_end.replace(false) {
            file.seek(SeekFrom::Start(self.end))?;
        }
        let mut counting = Counting { w: file, bytes: 0, error: None };
        if let Err(error) = postcard::to_io(value, &mut counting) {
            return Err(counting.error.unwrap_or_else(|| io::Error::other(error)));
        }
        let place = FilePosition { offset: self.end, length: counting.bytes };
        self.at_end.set(true);
        self.end += place.length as u64;
        Ok(place)
    }

    /// Reads a result from the file.
    fn stored(&self, module: usize, index: usize) -> io::Result<TestResult> {
        let place = self.places.get(module).and_then(|places| places.get(index)).copied();
        self.read(place.ok_or_else(|| no_result(module, index))?)
    }

    fn read<T: DeserializeOwned>(&self, place: FilePosition) -> io::Result<T> {
        let mut file = self.file.borrow_mut();
        // Flush the buffer.
        self.at_end.set(false);
        file.seek(SeekFrom::Start(place.offset))?;
        let mut bytes = vec![0; place.length];
        file.get_mut().read_exact(&mut bytes)?;
        postcard::from_bytes(&bytes).map_err(io::Error::other)
    }

    /// Returns the run, to set its final properties.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Returns a module, to set its final properties.
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
            // Two uids may have equal hashes.
            if uid == result.uid {
                result.apply_facts(facts);
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
