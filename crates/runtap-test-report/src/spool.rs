//! Results in a file, so that a large run needs no memory for its texts.
//!
//! Owns: a file of results as they arrive, one after the other as JSON, and where each of them is: 16 bytes of memory a
//! result. Refuses to: open the file (the caller brings anything that reads, writes and seeks); survive the process: the
//! places are in memory only.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use crate::source::no_result;
use crate::{Module, Run, Source, TestResult, Totals};

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
        let (Some(places), Some(totals)) = (self.places.get_mut(module), self.totals.get_mut(module)) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no module {module}")));
        };
        let bytes = serde_json::to_vec(result)?;
        let file = self.file.get_mut();
        // A buffered writer writes what it holds before it seeks: only after a result was read, or a write failed.
        if !self.at_end.replace(false) {
            file.seek(SeekFrom::Start(self.end))?;
        }
        file.write_all(&bytes)?;
        self.at_end.set(true);
        places.push(Place { offset: self.end, length: bytes.len() });
        totals.add(result);
        self.end += bytes.len() as u64;
        Ok(())
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
        let place = self.places.get(module).and_then(|places| places.get(index)).copied();
        let place = place.ok_or_else(|| no_result(module, index))?;
        let mut file = self.file.borrow_mut();
        // Writes what is still in the buffer.
        self.at_end.set(false);
        file.seek(SeekFrom::Start(place.offset))?;
        let mut bytes = vec![0; place.length];
        file.get_mut().read_exact(&mut bytes)?;
        Ok(Cow::Owned(serde_json::from_slice(&bytes)?))
    }

    fn totals(&self, module: usize) -> io::Result<Totals> {
        Ok(self.totals.get(module).copied().unwrap_or_default())
    }
}
