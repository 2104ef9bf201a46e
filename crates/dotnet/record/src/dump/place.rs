//! Where the user wants a dump, and how the file gets there.
//!
//! Where the target can reach the user's folder, and nobody else can exchange what lies there, it writes into a new file of
//! that folder, else into one of its own ([`Way`]). What is there gets its name when it is whole.

use std::fs;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use runtap_diag::core_file::{self, CoreFile, CoreFileError};
use runtap_discover::{FileView, Memory};
use runtap_os::output::{PendingFile, with_extension};

use crate::dump::spec::nth;
use crate::dump::way::{RequestedPath, Way, Which};
use crate::dump::{Error, Kind, Wanted};

/// What `createdump` writes beside the dump.
pub(crate) const CRASH_REPORT: &str = ".crashreport.json";
/// What a dump takes beside the memory in it, and what one without the heap takes altogether.
const BASE: u64 = 8 << 20;
/// The longest crash report that is taken: 10,000 threads with deep stacks have less.
const MOST_REPORT: u64 = 64 << 20;

/// The files that are going to be there, open before anything is asked of the target.
#[derive(Debug)]
pub(crate) struct Files {
    /// Where the user wants the dump; absolute.
    pub(crate) ours: PathBuf,
    wanted: Wanted,
    pub(crate) draft: PendingFile,
    /// The crash report, if one is asked for; where `createdump` puts it, if that writes into the draft.
    pub(crate) report: Option<PendingFile>,
}

/// The way of a dump.
#[derive(Debug)]
pub(crate) struct Place {
    view: FileView,
    files: Files,
    way: Way,
    told: RequestedPath,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Where the target wrote it, or sees it now.
    pub(crate) target_path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) core: Result<CoreFile, CoreFileError>,
    /// The path of the crash report, if there is one.
    pub(crate) crash_report: Result<Option<PathBuf>, Error>,
}

impl Files {
    /// Makes them.
    ///
    /// # Errors
    /// We can't write there.
    pub(crate) fn make(wanted: &Wanted, crash_report: bool) -> Result<Self, Error> {
        let mut ours = std::path::absolute(wanted.path())?;
        // A dot at the end means a folder, and is dropped there. A slash stays.
        if wanted.path().as_os_str().as_encoded_bytes().ends_with(b"/.") {
            ours.push("");
        }
        let Some(folder) = ours.parent().filter(|_| ours.file_name().is_some()) else {
            return Err(Error::NoName(ours));
        };
        // Nothing of that kind is opened: a pipe would wait for a reader.
        if fs::metadata(&ours).is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::NotOrdinary(ours));
        }
        let draft = match wanted {
            Wanted::Given(_) => PendingFile::of(&ours)?,
            Wanted::Fresh(_) => PendingFile::within(folder)?,
        };
        if !draft.is_file() {
            return Err(Error::NotReplaceable(ours));
        }
        let report = if crash_report { Some(draft.companion(CRASH_REPORT)?) } else { None };
        Ok(Self { ours, wanted: wanted.clone(), draft, report })
    }

    pub(crate) fn draft_of(&self, which: Which) -> Option<&PendingFile> {
        match which {
            Which::Dump => Some(&self.draft),
            Which::Report => self.report.as_ref(),
        }
    }
}

impl Kind {
    /// About how large it becomes. Measured: full is all that can be read, heap is all that can be written.
    pub(crate) fn estimate(self, memory: Memory) -> u64 {
        match self {
            Self::Full => memory.readable,
            Self::Heap => memory.writable.saturating_add(BASE),
            Self::Mini | Self::Triage => BASE,
        }
    }
}

impl Place {
    /// Finds a way to the files for this process, and makes what is to be there before it is asked.
    ///
    /// # Errors
    /// There is no folder that the target may write to, or none with enough room.
    pub(crate) fn of(pid: u32, files: Files, kind: Kind) -> Result<Self, Error> {
        let view = runtap_discover::file_view(pid).map_err(|error| Error::Unseen { pid, error })?;
        let owner = runtap_discover::facts(pid).file_uid;
        let lent = Way::lend(&view, owner, &files);
        let (way, told) = lent.or_else(|why| Way::fetch(&view, owner, &files.ours, why))?;
        let mut place = Self { view, files, way, told };
        if let Ok(memory) = runtap_discover::memory(pid) {
            place.check_space(kind.estimate(memory))?;
        }
        place.way.prepare(&place.view, &mut place.told);
        Ok(place)
    }

    /// Where the target writes it, as the target sees it.
    pub(crate) fn theirs(&self) -> &Path {
        &self.told.theirs
    }

    /// What the runtime is told of that.
    pub(crate) fn told(&self) -> &str {
        &self.told.text
    }

    /// Why it has to be fetched from a folder of the target's own; `None` where it is not.
    pub(crate) fn fetched(&self) -> Option<&str> {
        match &self.way {
            Way::Fetched(fetched) => Some(&fetched.why),
            Way::Direct | Way::Lent { .. } => None,
        }
    }

    /// Refuses when the dump can't fit. `needed` is a guess.
    ///
    /// # Errors
    /// A file system on the way is too full.
    fn check_space(&self, needed: u64) -> Result<(), Error> {
        let folder = self.files.ours.parent().unwrap_or(&self.files.ours).to_owned();
        let ours = rustix::fs::fstatvfs(self.files.draft.file()).map_err(io::Error::from)?;
        let twice = matches!(self.way, Way::Lent { .. });
        let here = if twice { needed.saturating_mul(2) } else { needed };
        let mut ways = vec![(folder, ours.f_bavail.saturating_mul(ours.f_frsize), here)];
        if let Way::Fetched(fetched) = &self.way {
            ways.extend(fetched.free_space().map(|(folder, free)| (folder, free, needed)));
        }
        let full = ways.into_iter().find(|(_, free, needed)| free < needed);
        full.map_or(Ok(()), |(folder, free, needed)| {
            Err(Error::NoSpace { folder, free, needed, with_copy: twice })
        })
    }

    /// Where the user wants it.
    pub(crate) fn ours(&self) -> &Path {
        &self.files.ours
    }

    /// How much the target has written by now.
    pub(crate) fn written(&self) -> u64 {
        self.way.written(&self.files)
    }

    /// Brings the file to its place, and the crash report if there is to be one.
    ///
    /// # Errors
    /// It can't be read or written. What the target wrote stays where it is then.
    pub(crate) fn finish(self, crash_report: bool) -> Result<Found, Error> {
        let theirs = self.told.theirs.clone();
        let bytes = match self.way.take(&self.files, Which::Dump, None) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.leave();
                return Err(Error::NotTaken { theirs, error });
            }
        };
        if bytes == 0 {
            return Err(Error::Empty(theirs));
        }
        let core = match core_file::inspect(self.files.draft.file()) {
            // Of no use to anybody, and under that name it would be taken for one.
            Err(error) if error.is_no_core() => {
                self.clean();
                return Err(Error::NoCore { theirs, error });
            }
            core => core,
        };
        let report = crash_report.then(|| self.take_report());
        self.clean();
        let fetched = self.fetched().is_some();
        let Files { ours, wanted, draft, report: report_draft } = self.files;
        let path = match wanted {
            Wanted::Given(_) => draft.appear_whole()?,
            Wanted::Fresh(_) => draft.settle_whole(|n| nth(&ours, n))?,
        };
        let crash_report = match (report, report_draft) {
            (Some(Ok(())), Some(mut draft)) => {
                draft.name(with_extension(&path, CRASH_REPORT));
                draft.appear_whole().map(Some).map_err(Into::into)
            }
            (Some(Err(error)), _) => Err(error),
            _ => Ok(None),
        };
        // Where the target wrote into our file, that has its name by now.
        let seen = if fetched { Some(theirs) } else { self.view.to_target(&path).ok().flatten() };
        let target_path = seen.unwrap_or_else(|| path.clone());
        Ok(Found { path, target_path, bytes, core, crash_report })
    }

    /// The dump goes on, or may be there, and nobody waits for it: it stays where the target writes it.
    pub(crate) fn leave(self) {
        if matches!(self.way, Way::Direct) {
            self.files.draft.keep();
            self.files.report.map(PendingFile::keep);
        }
        self.way.keep();
    }

    /// Removes what the target has written into its own folder.
    pub(crate) fn clean(&self) {
        self.way.clean();
    }

    fn take_report(&self) -> Result<(), Error> {
        let theirs = with_extension(&self.told.theirs, CRASH_REPORT);
        let Some(report) = &self.files.report else { return Ok(()) };
        let failed = |error| Error::NoReport { theirs: theirs.clone(), error };
        let bytes = self.way.take(&self.files, Which::Report, Some(MOST_REPORT)).map_err(failed)?;
        if bytes > MOST_REPORT {
            return Err(Error::LongReport { theirs, bytes, most: MOST_REPORT });
        }
        let mut whole = report.file().try_clone().map_err(failed)?;
        whole.rewind().map_err(failed)?;
        match serde_json::from_reader::<_, serde::de::IgnoredAny>(BufReader::new(whole.take(MOST_REPORT))) {
            Ok(_whole) => Ok(()),
            Err(error) => Err(Error::BrokenReport { theirs, error: error.into() }),
        }
    }
}
