//! The destination of a dump, and how the file gets there.
//!
//! If the target can write to the destination's directory and no other user can replace files there, it writes to a new file in that
//! directory, otherwise to one in its own temporary directory ([`WriteStrategy`]). The file gets its final name when it is complete.

use std::fs;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use runtap_diag::core_file::{self, CoreFile, CoreFileError};
use runtap_discover::{FileView, Memory};
use runtap_os::output::{PendingFile, with_extension};

use crate::dump::spec::nth;
use crate::dump::way::{DumpFile, RequestedPath, WriteStrategy};
use crate::dump::{Destination, DumpKind, Error};

/// The suffix of the file that `createdump` writes beside the dump.
pub(crate) const CRASH_REPORT: &str = ".crashreport.json";
/// The size of a dump in addition to its memory, and the estimated total size of one without the heap.
const BASE: u64 = 8 << 20;
/// The maximum size of a crash report. 10,000 threads with deep stacks need less.
const MAX_REPORT_BYTES: u64 = 64 << 20;

/// The output files, which are opened before any request is sent to the target.
#[derive(Debug)]
pub(crate) struct Files {
    /// The absolute path of the dump's destination.
    pub(crate) ours: PathBuf,
    wanted: Destination,
    pub(crate) draft: PendingFile,
    /// The crash report, if requested. Its path is where `createdump` writes it if that writes to the draft.
    pub(crate) report: Option<PendingFile>,
}

/// A prepared dump.
#[derive(Debug)]
pub(crate) struct DumpPlan {
    view: FileView,
    files: Files,
    way: WriteStrategy,
    told: RequestedPath,
}

/// A dump that was written.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    pub(crate) path: PathBuf,
    /// The path at which the target wrote it or sees it now.
    pub(crate) target_path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) core: Result<CoreFile, CoreFileError>,
    /// The path of the crash report, if there is one.
    pub(crate) crash_report: Result<Option<PathBuf>, Error>,
}

impl Files {
    /// Opens the files.
    ///
    /// # Errors
    /// Returns an error if the destination is not writable.
    pub(crate) fn make(wanted: &Destination, crash_report: bool) -> Result<Self, Error> {
        let mut ours = std::path::absolute(wanted.path())?;
        // A dot at the end denotes a directory and is removed by `absolute`. A slash is not.
        if wanted.path().as_os_str().as_encoded_bytes().ends_with(b"/.") {
            ours.push("");
        }
        let Some(folder) = ours.parent().filter(|_| ours.file_name().is_some()) else {
            return Err(Error::NoName(ours));
        };
        // Do not open pipes, which would wait for a reader.
        if fs::metadata(&ours).is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::NotOrdinary(ours));
        }
        let draft = match wanted {
            Destination::Exact(_) => PendingFile::of(&ours)?,
            Destination::Unused(_) => PendingFile::within(folder)?,
        };
        if !draft.is_file() {
            return Err(Error::NotReplaceable(ours));
        }
        let report = if crash_report { Some(draft.companion(CRASH_REPORT)?) } else { None };
        Ok(Self { ours, wanted: wanted.clone(), draft, report })
    }

    pub(crate) fn draft_of(&self, which: DumpFile) -> Option<&PendingFile> {
        match which {
            DumpFile::Dump => Some(&self.draft),
            DumpFile::Report => self.report.as_ref(),
        }
    }
}

impl DumpKind {
    /// Estimates the size. As measured, a full dump has all readable memory, and a heap dump all writable memory.
    pub(crate) fn estimate(self, memory: Memory) -> u64 {
        match self {
            Self::Full => memory.readable,
            Self::Heap => memory.writable.saturating_add(BASE),
            Self::Mini | Self::Triage => BASE,
        }
    }
}

impl DumpPlan {
    /// Chooses where this process writes, and prepares its directory.
    ///
    /// # Errors
    /// Returns an error if there is no directory to which the target may write, or not enough space.
    pub(crate) fn of(pid: u32, files: Files, kind: DumpKind) -> Result<Self, Error> {
        let view = runtap_discover::file_view(pid).map_err(|error| Error::Unseen { pid, error })?;
        let owner = runtap_discover::facts(pid).file_uid;
        let lent = WriteStrategy::lend(&view, owner, &files);
        let (way, told) = lent.or_else(|why| WriteStrategy::fetch(&view, owner, &files.ours, why))?;
        let mut place = Self { view, files, way, told };
        if let Ok(memory) = runtap_discover::memory(pid) {
            place.check_space(kind.estimate(memory))?;
        }
        place.way.prepare(&place.view, &mut place.told);
        Ok(place)
    }

    /// Returns the path to which the target writes, as the target sees it.
    pub(crate) fn theirs(&self) -> &Path {
        &self.told.theirs
    }

    /// Returns the path as it is sent to the runtime.
    pub(crate) fn told(&self) -> &str {
        &self.told.text
    }

    /// Returns why the file must be copied from a directory of the target. `None` if it need not be.
    pub(crate) fn fetched(&self) -> Option<&str> {
        match &self.way {
            WriteStrategy::Fetched(fetched) => Some(&fetched.why),
            WriteStrategy::Direct | WriteStrategy::BorrowedDescriptor { .. } => None,
        }
    }

    /// Returns an error if there is not enough space. `needed` is an estimate.
    ///
    /// # Errors
    /// Returns an error if a file system has too little free space.
    fn check_space(&self, needed: u64) -> Result<(), Error> {
        let folder = self.files.ours.parent().unwrap_or(&self.files.ours).to_owned();
        let ours = rustix::fs::fstatvfs(self.files.draft.file()).map_err(io::Error::from)?;
        let twice = matches!(self.way, WriteStrategy::BorrowedDescriptor { .. });
        let here = if twice { needed.saturating_mul(2) } else { needed };
        let mut ways = vec![(folder, ours.f_bavail.saturating_mul(ours.f_frsize), here)];
        if let WriteStrategy::Fetched(fetched) = &self.way {
            ways.extend(fetched.free_space().map(|(folder, free)| (folder, free, needed)));
        }
        let full = ways.into_iter().find(|(_, free, needed)| free < needed);
        full.map_or(Ok(()), |(folder, free, needed)| {
            Err(Error::NoSpace { folder, free, needed, with_copy: twice })
        })
    }

    /// Returns the path of the destination.
    pub(crate) fn ours(&self) -> &Path {
        &self.files.ours
    }

    /// Returns the number of bytes that the target has written.
    pub(crate) fn written(&self) -> u64 {
        self.way.written(&self.files)
    }

    /// Moves the file to its destination, and the crash report if requested.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or written. The target's file is left in place then.
    pub(crate) fn finish(self, crash_report: bool) -> Result<WrittenFile, Error> {
        let theirs = self.told.theirs.clone();
        let bytes = match self.way.take(&self.files, DumpFile::Dump, None) {
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
            // A file that is not a core file is useless, and its name would be misleading.
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
            Destination::Exact(_) => draft.appear_whole()?,
            Destination::Unused(_) => draft.settle_whole(|n| nth(&ours, n))?,
        };
        let crash_report = match (report, report_draft) {
            (Some(Ok(())), Some(mut draft)) => {
                draft.name(with_extension(&path, CRASH_REPORT));
                draft.appear_whole().map(Some).map_err(Into::into)
            }
            (Some(Err(error)), _) => Err(error),
            _ => Ok(None),
        };
        // If the target wrote to the destination, the file has its final name by now.
        let seen = if fetched { Some(theirs) } else { self.view.to_target(&path).ok().flatten() };
        let target_path = seen.unwrap_or_else(|| path.clone());
        Ok(WrittenFile { path, target_path, bytes, core, crash_report })
    }

    /// Leaves the file in place, because the target may still write to it.
    pub(crate) fn leave(self) {
        if matches!(self.way, WriteStrategy::Direct) {
            self.files.draft.keep();
            self.files.report.map(PendingFile::keep);
        }
        self.way.keep();
    }

    /// Removes what the target has written to its own directory.
    pub(crate) fn clean(&self) {
        self.way.clean();
    }

    fn take_report(&self) -> Result<(), Error> {
        let theirs = with_extension(&self.told.theirs, CRASH_REPORT);
        let Some(report) = &self.files.report else { return Ok(()) };
        let failed = |error| Error::NoReport { theirs: theirs.clone(), error };
        let bytes = self.way.take(&self.files, DumpFile::Report, Some(MAX_REPORT_BYTES)).map_err(failed)?;
        if bytes > MAX_REPORT_BYTES {
            return Err(Error::LongReport { theirs, bytes, most: MAX_REPORT_BYTES });
        }
        let mut whole = report.file().try_clone().map_err(failed)?;
        whole.rewind().map_err(failed)?;
        match serde_json::from_reader::<_, serde::de::IgnoredAny>(BufReader::new(
            whole.take(MAX_REPORT_BYTES),
        )) {
            Ok(_whole) => Ok(()),
            Err(error) => Err(Error::BrokenReport { theirs, error: error.into() }),
        }
    }
}
