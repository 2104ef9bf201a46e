//! The history of runs: durations and outcomes of tests. A directory has one file per module, so that a run reads and
//! writes only the files of its modules.
//!
//! Determines the paths of the files and checks who may have written them. The content is handled by
//! [`runtap_test::plan::History`].

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _};
use std::path::{Path, PathBuf};

use crate::{Module, ModuleId};
use runtap_model::order;
use runtap_os::output::PendingFile;
use runtap_test::plan::{AddError, History, HistoryError, Limits, ModuleHistory, ModuleKey, add_run};
use runtap_test_report::Source;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::suite::fingerprint::hex;
use crate::suite::own_file::{self, OpenedFile};
pub use crate::suite::recorder::Recorder;
use crate::suite::recorder::{ModuleFacts, Results};
use crate::suite::run_marks;

/// The maximum size of a file in bytes. A file with the maximum of 200,000 tests of a module has about 60 MB.
const MAX_FILE_SIZE: u64 = 256 << 20;

/// A directory with the history of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
    /// Whether the user specified the directory.
    named: bool,
}

/// The earlier runs of the modules of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The outcomes and durations of their tests.
    pub history: History,
    /// The modules with a run whose end is not recorded: it was killed, or could not write its history.
    pub unfinished: BTreeSet<ModuleId>,
}

/// An error of reading or writing the history. Tests can run without a history.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read.
    #[error("the test history {} can't be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user may have written the file.
    #[error("the test history {} is not used: user {user} may have written it", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The user who owns the file.
        user: u32,
    },
    /// The file is not a history.
    #[error("{}: {source}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: HistoryError,
    },
    /// The history cannot be written.
    #[error("the test history can't be written: {0}")]
    Unwritable(String),
    /// The environment does not specify a directory for the history.
    #[error(
        "no test history is kept: neither XDG_STATE_HOME nor HOME (on Windows: LOCALAPPDATA) is an absolute path"
    )]
    NoHome,
    /// The home directory does not exist. It is not created for the history.
    #[error("no test history is kept: the home directory {} does not exist", .0.display())]
    MissingHome(PathBuf),
    /// The history would be in another user's directory.
    #[error("no test history is kept: {} belongs to user {user}", .path.display())]
    ForeignHome {
        /// The state directory, or its nearest existing ancestor.
        path: PathBuf,
        /// The user who owns the directory.
        user: u32,
    },
}

impl Store {
    /// Creates a store for a directory that the user specified. The directory is created when needed.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, named: true }
    }

    /// Returns the store of the runs in this directory: `$XDG_STATE_HOME/runtap/tests/NAME-HASH`, by default in
    /// `~/.local/state`, on Windows in `%LOCALAPPDATA%`.
    ///
    /// # Errors
    /// Returns an error if there is no home directory, or if it belongs to another user.
    pub fn of_directory(directory: &Path) -> Result<Self, StoreError> {
        let state = state_directory(|name| std::env::var_os(name))?;
        let nearest = state.ancestors().find_map(|it| Some((it, own_file::owner_of(it)?)));
        let (path, user) = nearest.ok_or(StoreError::NoHome)?;
        if user != runtap_os::my_uid() {
            return Err(StoreError::ForeignHome { path: path.to_owned(), user });
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let name = unique_name(&name, directory.as_os_str().as_encoded_bytes());
        Ok(Self { directory: state.join("runtap/tests").join(name), named: false })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Loads the history of these modules. Modules without a file have no history.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, belongs to another user, or is not a history.
    pub fn load(&self, modules: &[Module]) -> Result<History, StoreError> {
        let names = order::to_set(modules.iter().map(Module::name));
        let mut history = History::default();
        for name in names {
            history.merge(self.load_one(&name)?);
        }
        Ok(history)
    }

    /// Loads the history of these modules, including runs that have not ended.
    ///
    /// # Errors
    /// Fails like [`load`](Self::load), or if the directory cannot be read.
    pub fn earlier(&self, modules: &[Module]) -> Result<Earlier, StoreError> {
        let mut unfinished = BTreeSet::new();
        for (number, module) in modules.iter().enumerate() {
            if !self.marks(module)?.is_empty() {
                unfinished.insert(ModuleId(number));
            }
        }
        Ok(Earlier { history: self.load(modules)?, unfinished })
    }

    fn marks(&self, module: &Module) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        run_marks::marks(&self.directory, module)
            .map_err(|source| StoreError::Unreadable { path: self.directory.clone(), source })
    }

    /// Creates the marks of a run of these modules. [`add`](Self::add) removes the marks.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn begin(
        &self,
        run: &mut Recorder,
        modules: impl IntoIterator<Item = ModuleId>,
    ) -> Result<(), StoreError> {
        self.make_folder()?;
        for id in order::to_set(modules) {
            if let Some(module) = run.module(id) {
                let mark = run_marks::mark(&self.directory, module, run.at()).map_err(|error| {
                    StoreError::Unwritable(format!("{}: {error}", self.directory.display()))
                })?;
                run.marks.push((id, mark));
            }
        }
        Ok(())
    }

    /// Removes the marks of a recorded run. After a complete run, earlier marks are removed too.
    fn unmark(&self, run: &Recorder) -> Result<(), StoreError> {
        for (id, mark) in &run.marks {
            run_marks::unmark(mark).map_err(unwritable)?;
            if let Some(module) = run.module(*id).filter(|_| run.is_complete(*id)) {
                for (_, mark) in self.marks(module)?.into_iter().filter(|(at, _)| *at < run.at()) {
                    run_marks::unmark(&mark).map_err(unwritable)?;
                }
            }
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<(), StoreError> {
        runtap_os::output::make_private_folder(&self.directory).map_err(|error| {
            StoreError::Unwritable(format!("{} can't be created: {}", self.directory.display(), error.cause))
        })
    }

    fn file_of(&self, module: &str) -> PathBuf {
        self.directory.join(unique_name(module, module.as_bytes()) + ".jsonl")
    }

    /// Opens the file of a module, if it exists.
    fn open(&self, path: &Path) -> Result<Option<impl BufRead + use<>>, StoreError> {
        let found = own_file::open(path, MAX_FILE_SIZE, self.named);
        match found.map_err(|source| StoreError::Unreadable { path: path.to_owned(), source })? {
            OpenedFile::Nothing => Ok(None),
            OpenedFile::Foreign(user) => Err(StoreError::Foreign { path: path.to_owned(), user }),
            OpenedFile::File(file) => Ok(Some(BufReader::new(file.take(MAX_FILE_SIZE)))),
        }
    }

    fn load_one(&self, module: &str) -> Result<History, StoreError> {
        let path = self.file_of(module);
        let Some(file) = self.open(&path)? else { return Ok(History::default()) };
        History::read(file).map_err(|source| StoreError::Wrong { path, source })
    }

    /// Adds a run to the history. If two runs of a module end at the same moment, one of them may be lost.
    ///
    /// # Errors
    /// Returns an error if a file has a later version, belongs to another user, or cannot be written.
    pub fn add(&self, run: &Recorder, results: &impl Source) -> Result<(), StoreError> {
        for (name, ids) in run.modules() {
            for id in ids {
                if let Some(facts) = run.facts(id) {
                    self.add_one(&name, &facts, &Results::of(id, results).map_err(unwritable)?)?;
                }
            }
        }
        self.unmark(run)
    }

    fn add_one(&self, name: &str, facts: &ModuleFacts, results: &Results) -> Result<(), StoreError> {
        self.make_folder()?;
        // Without a framework, the history must be searched for the module.
        let added = !facts.key.framework.is_empty() && self.add_by_test(name, facts, results)?;
        if added { Ok(()) } else { self.add_in_memory(name, facts, results) }
    }

    /// Adds a run with little memory. Returns whether this was possible.
    fn add_by_test(&self, name: &str, facts: &ModuleFacts, results: &Results) -> Result<bool, StoreError> {
        let path = self.file_of(name);
        let (earlier, draft) = (self.open(&path)?, draft(&path)?);
        let out = BufWriter::new(draft.file());
        match add_run(earlier, &facts.key, &facts.run(), results.finished(), &Limits::default(), out) {
            Ok(()) => appear(draft).map(|()| true),
            Err(AddError::Io(error)) => Err(unwritable(error)),
            Err(AddError::History(source)) if !is_damaged(&source) => Err(StoreError::Wrong { path, source }),
            Err(_) => Ok(false),
        }
    }

    fn add_in_memory(&self, name: &str, facts: &ModuleFacts, results: &Results) -> Result<(), StoreError> {
        let mut history = match self.load_one(name) {
            // The damaged content is lost.
            Err(StoreError::Wrong { source, .. }) if is_damaged(&source) => History::default(),
            other => other?,
        };
        let run = facts.run();
        let known = history.modules().map(|(known, _)| known).find(|known| known.name == facts.key.name);
        let key = known.filter(|_| facts.key.framework.is_empty()).unwrap_or(&facts.key).clone();
        history.record(key, &run, results.finished());
        history.prune(&Limits::default());
        let draft = draft(&self.file_of(name))?;
        history.write(BufWriter::new(draft.file())).map_err(unwritable)?;
        appear(draft)
    }
}

/// Returns the directory for data that programs keep between runs. It is created when needed, but not the home
/// directory.
fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, StoreError> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (home, below) = if cfg!(windows) {
        (absolute("LOCALAPPDATA"), "")
    } else if let Some(state) = absolute("XDG_STATE_HOME") {
        return Ok(state);
    } else {
        (absolute("HOME"), ".local/state")
    };
    let home = home.ok_or(StoreError::NoHome)?;
    if home.is_dir() { Ok(home.join(below)) } else { Err(StoreError::MissingHome(home)) }
}

fn is_damaged(error: &HistoryError) -> bool {
    matches!(error, HistoryError::Damaged { .. })
}

fn draft(path: &Path) -> Result<PendingFile, StoreError> {
    PendingFile::of(path).map_err(|error| unwritable_output(&error))
}

/// No sync: a history that is damaged by a system crash is created anew.
fn appear(draft: PendingFile) -> Result<(), StoreError> {
    draft.appear_soon().map(drop).map_err(|error| unwritable_output(&error))
}

fn unwritable_output(error: &runtap_os::output::Error) -> StoreError {
    StoreError::Unwritable(format!("{error}: {}", error.cause))
}

/// Returns a readable file name that is unique for `bytes` and has a limited length.
fn unique_name(name: &str, bytes: &[u8]) -> String {
    let shown: String = runtap_os::output::plain_name(name).chars().take(60).collect();
    format!("{shown}-{}", hex(&Sha256::digest(bytes), 8))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unwritable(error: io::Error) -> StoreError {
    StoreError::Unwritable(error.to_string())
}

/// Returns the history of a module: that of the same file, or else the latest of the same name.
pub(crate) fn of_module<'a>(
    history: &'a History,
    module: &Module,
    fingerprint: Option<&str>,
) -> Option<&'a ModuleHistory> {
    let name = module.name();
    let same = |(_, it): &(&ModuleKey, &ModuleHistory)| {
        fingerprint.is_some() && it.fingerprint.as_deref() == fingerprint
    };
    let named = || history.modules().filter(|(key, _)| key.name == name);
    let found = named().find(same).or_else(|| named().max_by_key(|(_, it)| it.last_run()));
    found.map(|(_, it)| it)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_missing_home_directory_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let of = |wanted: &'static str, path: &Path| {
            let path = path.as_os_str().to_owned();
            state_directory(move |name| (name == wanted).then(|| path.clone()))
        };
        assert_eq!(of("HOME", folder.path()).unwrap(), folder.path().join(".local/state"));
        assert!(matches!(of("HOME", &none), Err(StoreError::MissingHome(path)) if path == none));
        assert_eq!(of("XDG_STATE_HOME", &none).unwrap(), none, "a specified directory is created");
        assert!(matches!(of("HOME", Path::new("relative")), Err(StoreError::NoHome)));
    }
}
