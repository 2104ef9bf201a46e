//! Where the user wants a dump, and how the file gets there.
//!
//! Where the target can reach the user's folder, and nobody else can exchange what lies there, it writes into a new file of
//! that folder, else into one of its own ([`Way`]). What is there gets its name when it is whole.

use std::fs;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::Context;
use runtap_diag::core_file::{self, CoreFile, CoreFileError};
use runtap_discover::FileView;

use super::way::{Told, Way, Which};
use crate::exit::{self, expected, usage};
use crate::units::Bytes;
use runtap_outputs::{Draft, numbered, with_extension};

/// What `createdump` writes beside the dump.
pub(super) const CRASH_REPORT: &str = ".crashreport.json";
/// The longest crash report that is taken: 10,000 threads with deep stacks have less.
const MOST_REPORT: u64 = 64 << 20;

/// The file that the user wants.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    Given(PathBuf),
    /// This name or one behind it, the first that is free.
    Fresh(PathBuf),
}

/// The files that are going to be there, open before anything is asked of the target.
#[derive(Debug)]
pub(super) struct Files {
    /// Where the user wants the dump; absolute.
    pub(super) ours: PathBuf,
    wanted: Wanted,
    pub(super) draft: Draft,
    /// The crash report, if one is asked for; where `createdump` puts it, if that writes into the draft.
    pub(super) report: Option<Draft>,
}

/// The way of a dump.
#[derive(Debug)]
pub(super) struct Place {
    files: Files,
    way: Way,
    told: Told,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Result {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) core: std::result::Result<CoreFile, CoreFileError>,
    /// The path of the crash report, if there is one.
    pub(super) crash_report: anyhow::Result<Option<PathBuf>>,
}

impl Wanted {
    fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::Fresh(path) => path,
        }
    }
}

impl Files {
    /// Makes them.
    ///
    /// # Errors
    /// We can't write there.
    pub(super) fn make(wanted: Wanted, crash_report: bool) -> anyhow::Result<Self> {
        let mut ours = std::path::absolute(wanted.path())?;
        // A dot at the end means a folder, and is dropped there. A slash stays.
        if wanted.path().as_os_str().as_encoded_bytes().ends_with(b"/.") {
            ours.push("");
        }
        let Some(folder) = ours.parent().filter(|_| ours.file_name().is_some()) else {
            return Err(usage(format!("{} is no name for a file", ours.display())));
        };
        // Nothing of that kind is opened: a pipe would wait for a reader.
        if fs::metadata(&ours).is_ok_and(|meta| !meta.is_file()) {
            return Err(usage(format!("{} is no ordinary file", ours.display())));
        }
        let draft = match &wanted {
            Wanted::Given(_) => Draft::of(&ours)?,
            Wanted::Fresh(_) => Draft::within(folder)?,
        };
        if !draft.is_file() {
            return Err(usage(format!("{} can't be replaced by a dump", ours.display())));
        }
        let report = if crash_report { Some(draft.companion(CRASH_REPORT)?) } else { None };
        Ok(Self { ours, wanted, draft, report })
    }

    pub(super) fn draft_of(&self, which: Which) -> Option<&Draft> {
        match which {
            Which::Dump => Some(&self.draft),
            Which::Report => self.report.as_ref(),
        }
    }
}

impl Place {
    /// Finds a way to the files for a target of the user `owner`.
    ///
    /// # Errors
    /// There is no folder that the target may write to.
    pub(super) fn find(view: &FileView, owner: u32, files: Files) -> anyhow::Result<Self> {
        let lent = Way::lend(view, owner, &files);
        let (way, told) = lent.or_else(|why| Way::fetch(view, owner, &files.ours, why)).map_err(|error| {
            if exit::code_of(&error) == exit::USAGE {
                return error;
            }
            let folder = files.ours.parent().unwrap_or_else(|| Path::new("/")).display();
            expected(
                exit::FAILED,
                format!("the target can't write to {folder}: {error}"),
                "choose a folder with -o that the target's user may write to".to_owned(),
            )
        })?;
        Ok(Self { files, way, told })
    }

    /// Makes what is to be there before the target is asked.
    pub(super) fn prepare(&mut self, view: &FileView) {
        self.way.prepare(view, &mut self.told);
    }

    /// Where the target writes it, as the target sees it.
    pub(super) fn theirs(&self) -> &Path {
        &self.told.theirs
    }

    /// What the runtime is told of that.
    pub(super) fn told(&self) -> &str {
        &self.told.text
    }

    /// Why it has to be fetched from a folder of the target's own; `None` where it is not.
    pub(super) fn fetched(&self) -> Option<&str> {
        match &self.way {
            Way::Fetched(fetched) => Some(&fetched.why),
            Way::Direct | Way::Lent { .. } => None,
        }
    }

    /// Refuses when the dump can't fit. `needed` is a guess.
    ///
    /// # Errors
    /// A file system on the way is too full.
    pub(super) fn check_space(&self, needed: u64) -> anyhow::Result<()> {
        let folder = self.files.ours.parent().unwrap_or(&self.files.ours).to_owned();
        let ours = rustix::fs::fstatvfs(self.files.draft.file())?;
        let twice = matches!(self.way, Way::Lent { .. });
        let here = if twice { needed.saturating_mul(2) } else { needed };
        let mut ways = vec![(folder, ours.f_bavail.saturating_mul(ours.f_frsize), here)];
        if let Way::Fetched(fetched) = &self.way {
            ways.extend(fetched.free_space().map(|(folder, free)| (folder, free, needed)));
        }
        for (folder, free, needed) in ways {
            if free < needed {
                let why = if twice { " with the copy that is made of another user's file" } else { "" };
                let (folder, free) = (folder.display(), Bytes(free));
                return Err(expected(
                    exit::FAILED,
                    format!("{folder} has {free} left, and the dump takes about {}{why}", Bytes(needed)),
                    "choose another folder with -o, or a smaller --type".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Where the user wants it.
    pub(super) fn ours(&self) -> &Path {
        &self.files.ours
    }

    /// How much the target has written by now.
    pub(super) fn written(&self) -> u64 {
        self.way.written(&self.files)
    }

    /// Brings the file to its place, and the crash report if there is to be one.
    ///
    /// # Errors
    /// It can't be read or written. What the target wrote stays where it is then.
    pub(super) fn finish(self, crash_report: bool) -> anyhow::Result<Result> {
        let theirs = self.told.theirs.clone();
        let failed =
            || format!("the runtime says that {} is written, but it can't be taken", theirs.display());
        let bytes = match self.way.take(&self.files, Which::Dump, None) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.leave();
                return Err(error).with_context(failed);
            }
        };
        if bytes == 0 {
            anyhow::bail!("the runtime says that the dump is written, but {} is empty", theirs.display());
        }
        let core = core_file::inspect(self.files.draft.file());
        if let Err(error) = &core
            && error.is_no_core()
        {
            // Of no use to anybody, and under that name it would be taken for one.
            let what =
                format!("the runtime says that the dump is written, but of {}: {error}", theirs.display());
            self.clean();
            return Err(expected(exit::FAILED, what, "nothing is kept of it".to_owned()));
        }
        let report = crash_report.then(|| self.take_report());
        self.clean();
        let Files { ours, wanted, draft, report: report_draft } = self.files;
        let path = match wanted {
            Wanted::Given(_) => draft.appear_whole()?,
            Wanted::Fresh(_) => draft.settle_whole(|n| numbered(&ours, n, ""))?,
        };
        let crash_report = match (report, report_draft) {
            (Some(Ok(())), Some(mut draft)) => {
                draft.name(with_extension(&path, CRASH_REPORT));
                draft.appear_whole().map(Some).map_err(Into::into)
            }
            (Some(Err(error)), _) => Err(error),
            _ => Ok(None),
        };
        Ok(Result { path, bytes, core, crash_report })
    }

    /// The dump goes on, or may be there, and nobody waits for it: it stays where the target writes it.
    pub(super) fn leave(self) {
        if matches!(self.way, Way::Direct) {
            self.files.draft.keep();
            self.files.report.map(Draft::keep);
        }
        self.way.keep();
    }

    /// Removes what the target has written into its own folder.
    pub(super) fn clean(&self) {
        self.way.clean();
    }

    fn take_report(&self) -> anyhow::Result<()> {
        let theirs = with_extension(&self.told.theirs, CRASH_REPORT);
        let failed = || format!("can't take the crash report {}", theirs.display());
        let Some(report) = &self.files.report else { return Ok(()) };
        let bytes = self.way.take(&self.files, Which::Report, Some(MOST_REPORT)).with_context(failed)?;
        if bytes > MOST_REPORT {
            let (most, theirs) = (Bytes(MOST_REPORT), theirs.display());
            anyhow::bail!("the crash report {theirs} has {}, more than {most}", Bytes(bytes));
        }
        let mut whole = report.file().try_clone().with_context(failed)?;
        whole.rewind().with_context(failed)?;
        serde_json::from_reader::<_, serde::de::IgnoredAny>(BufReader::new(whole.take(MOST_REPORT)))
            .with_context(|| format!("the crash report {} is no whole JSON", theirs.display()))?;
        Ok(())
    }
}
