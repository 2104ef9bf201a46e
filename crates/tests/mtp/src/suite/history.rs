//! Earlier runs: how long tests take and how they ended. A directory with a file for each module, so that a run reads and
//! writes what it has to do with, however much there is.
//!
//! Owns: where the files are, and who may have written them. Refuses to: know their bytes; [`runtap_test::plan::History`]
//! does.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _};
use std::path::{Path, PathBuf};

use crate::{Module, ModuleId};
use runtap_os::output::PendingFile;
use runtap_test::plan::{AddError, History, HistoryError, Limits, ModuleHistory, ModuleKey, add_run};
use runtap_test_report::Source;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::suite::begun;
use crate::suite::fingerprint::hex;
use crate::suite::own_file::{self, Found};
pub use crate::suite::recorder::Recorder;
use crate::suite::recorder::{Results, Told};

/// A file of the 200,000 tests that are kept of a module at most has about 60 MB.
const LARGEST: u64 = 256 << 20;

/// A directory of earlier runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
    /// The user has named it.
    named: bool,
}

/// What is known of earlier runs of the modules of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// How their tests ended and how long they took.
    pub history: History,
    /// Those with a run whose end is not recorded: it was killed, or could not write its history.
    pub unfinished: BTreeSet<ModuleId>,
}

/// Why earlier runs are not known, or this one can't be kept. The tests can run all the same.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file can't be read.
    #[error("the test history {} can't be read: {source}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else may have written it.
    #[error("the test history {} is not used: user {user} may have written it", .path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// The user who owns it.
        user: u32,
    },
    /// It is none.
    #[error("{}: {source}", .path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: HistoryError,
    },
    /// It can't be written.
    #[error("the test history can't be kept: {0}")]
    Unwritable(String),
    /// Nobody has said where.
    #[error(
        "no test history is kept: neither XDG_STATE_HOME nor HOME (on Windows: LOCALAPPDATA) is an absolute path"
    )]
    NoHome,
    /// The home directory does not exist. It is not made for this.
    #[error("no test history is kept: the home directory {} does not exist", .0.display())]
    MissingHome(PathBuf),
    /// It would be in another user's directory.
    #[error("no test history is kept: {} belongs to user {user}", .path.display())]
    ForeignHome {
        /// The directory of the state, or the nearest one above it that there is.
        path: PathBuf,
        /// The user who owns it.
        user: u32,
    },
}

impl Store {
    /// The directory that the user has named. It is made when it is not there.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, named: true }
    }

    /// That of the runs in this directory: `$XDG_STATE_HOME/runtap/tests/NAME-HASH`, by default in `~/.local/state`,
    /// on Windows in `%LOCALAPPDATA%`.
    ///
    /// # Errors
    /// There is no home, or it is another user's.
    pub fn of_directory(directory: &Path) -> Result<Self, StoreError> {
        let state = state_directory(|name| std::env::var_os(name))?;
        let nearest = state.ancestors().find_map(|it| Some((it, own_file::owner_of(it)?)));
        let (path, user) = nearest.ok_or(StoreError::NoHome)?;
        if user != runtap_os::my_uid() {
            return Err(StoreError::ForeignHome { path: path.to_owned(), user });
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let name = unmistakable(&name, directory.as_os_str().as_encoded_bytes());
        Ok(Self { directory: state.join("runtap/tests").join(name), named: false })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is known of earlier runs of these modules; nothing of those that have no file.
    ///
    /// # Errors
    /// A file can't be read, belongs to somebody else, or is none.
    pub fn load(&self, modules: &[Module]) -> Result<History, StoreError> {
        let names: BTreeSet<_> = modules.iter().map(Module::name).collect();
        let mut history = History::default();
        for name in names {
            history.merge(self.load_one(&name)?);
        }
        Ok(history)
    }

    /// What is known of earlier runs of these modules, also of those that have not ended.
    ///
    /// # Errors
    /// Those of [`load`](Self::load), or the directory can't be read.
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
        begun::marks(&self.directory, module)
            .map_err(|source| StoreError::Unreadable { path: self.directory.clone(), source })
    }

    /// Marks that the run of these modules has begun. [`add`](Self::add) takes the marks away.
    ///
    /// # Errors
    /// The directory can't be written.
    pub fn begin(
        &self,
        run: &mut Recorder,
        modules: impl IntoIterator<Item = ModuleId>,
    ) -> Result<(), StoreError> {
        self.make_folder()?;
        for id in modules.into_iter().collect::<BTreeSet<_>>() {
            if let Some(module) = run.module(id) {
                let mark = begun::mark(&self.directory, module, run.at()).map_err(|error| {
                    StoreError::Unwritable(format!("{}: {error}", self.directory.display()))
                })?;
                run.marks.push((id, mark));
            }
        }
        Ok(())
    }

    /// The run is recorded. After a complete one, it does not matter how those before it ended.
    fn unmark(&self, run: &Recorder) -> Result<(), StoreError> {
        for (id, mark) in &run.marks {
            begun::unmark(mark).map_err(unwritable)?;
            if let Some(module) = run.module(*id).filter(|_| run.is_complete(*id)) {
                for (_, mark) in self.marks(module)?.into_iter().filter(|(at, _)| *at < run.at()) {
                    begun::unmark(&mark).map_err(unwritable)?;
                }
            }
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<(), StoreError> {
        runtap_os::output::make_private_folder(&self.directory).map_err(|error| {
            StoreError::Unwritable(format!("{} can't be made: {}", self.directory.display(), error.cause))
        })
    }

    fn file_of(&self, module: &str) -> PathBuf {
        self.directory.join(unmistakable(module, module.as_bytes()) + ".jsonl")
    }

    /// The file of a module, if there is one.
    fn open(&self, path: &Path) -> Result<Option<impl BufRead + use<>>, StoreError> {
        let found = own_file::open(path, LARGEST, self.named);
        match found.map_err(|source| StoreError::Unreadable { path: path.to_owned(), source })? {
            Found::Nothing => Ok(None),
            Found::Foreign(user) => Err(StoreError::Foreign { path: path.to_owned(), user }),
            Found::File(file) => Ok(Some(BufReader::new(file.take(LARGEST)))),
        }
    }

    fn load_one(&self, module: &str) -> Result<History, StoreError> {
        let path = self.file_of(module);
        let Some(file) = self.open(&path)? else { return Ok(History::default()) };
        History::read(file).map_err(|source| StoreError::Wrong { path, source })
    }

    /// Adds a run. Of two runs of a module that end at the same moment, one may be lost.
    ///
    /// # Errors
    /// A file is of a later version or another one's, or can't be written.
    pub fn add(&self, run: &Recorder, results: &impl Source) -> Result<(), StoreError> {
        for (name, ids) in run.modules() {
            for id in ids {
                if let Some(told) = run.told(id) {
                    self.add_one(&name, &told, &Results::of(id, results).map_err(unwritable)?)?;
                }
            }
        }
        self.unmark(run)
    }

    fn add_one(&self, name: &str, told: &Told, results: &Results) -> Result<(), StoreError> {
        self.make_folder()?;
        // Without a framework it has to be looked up whose run it is.
        let added = !told.key.framework.is_empty() && self.add_by_test(name, told, results)?;
        if added { Ok(()) } else { self.add_in_memory(name, told, results) }
    }

    /// With little memory. Returns whether that was possible.
    fn add_by_test(&self, name: &str, told: &Told, results: &Results) -> Result<bool, StoreError> {
        let path = self.file_of(name);
        let (earlier, draft) = (self.open(&path)?, draft(&path)?);
        let out = BufWriter::new(draft.file());
        match add_run(earlier, &told.key, &told.run(), results.finished(), &Limits::default(), out) {
            Ok(()) => appear(draft).map(|()| true),
            Err(AddError::Io(error)) => Err(unwritable(error)),
            Err(AddError::History(source)) if !is_damaged(&source) => Err(StoreError::Wrong { path, source }),
            Err(_) => Ok(false),
        }
    }

    fn add_in_memory(&self, name: &str, told: &Told, results: &Results) -> Result<(), StoreError> {
        let mut history = match self.load_one(name) {
            // There is nothing to keep.
            Err(StoreError::Wrong { source, .. }) if is_damaged(&source) => History::default(),
            other => other?,
        };
        let run = told.run();
        let known = history.modules().map(|(known, _)| known).find(|known| known.name == told.key.name);
        let key = known.filter(|_| told.key.framework.is_empty()).unwrap_or(&told.key).clone();
        history.record(key, &run, results.finished());
        history.prune(&Limits::default());
        let draft = draft(&self.file_of(name))?;
        history.write(BufWriter::new(draft.file())).map_err(unwritable)?;
        appear(draft)
    }
}

/// The directory for what programs keep between runs. It is made when it is not there, but not the home that it is in.
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

/// What a crash of the machine damages is made anew.
fn appear(draft: PendingFile) -> Result<(), StoreError> {
    draft.appear_soon().map(drop).map_err(|error| unwritable_output(&error))
}

fn unwritable_output(error: &runtap_os::output::Error) -> StoreError {
    StoreError::Unwritable(format!("{error}: {}", error.cause))
}

/// A name that people recognize, that no other bytes have, and that fits into a directory.
fn unmistakable(name: &str, bytes: &[u8]) -> String {
    let shown: String = runtap_os::output::plain_name(name).chars().take(60).collect();
    format!("{shown}-{}", hex(&Sha256::digest(bytes), 8))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unwritable(error: io::Error) -> StoreError {
    StoreError::Unwritable(error.to_string())
}

/// What is remembered of a module that is to run: that of the same file, else that of the same name.
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
    fn a_home_that_is_not_there_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let of = |wanted: &'static str, path: &Path| {
            let path = path.as_os_str().to_owned();
            state_directory(move |name| (name == wanted).then(|| path.clone()))
        };
        assert_eq!(of("HOME", folder.path()).unwrap(), folder.path().join(".local/state"));
        assert!(matches!(of("HOME", &none), Err(StoreError::MissingHome(path)) if path == none));
        assert_eq!(of("XDG_STATE_HOME", &none).unwrap(), none, "one that is named is made");
        assert!(matches!(of("HOME", Path::new("relative")), Err(StoreError::NoHome)));
    }
}
