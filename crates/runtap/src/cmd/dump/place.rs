//! Where the target writes a dump, and how the file gets to where the user wants it.
//!
//! The target opens the file itself: in its own mount namespace, as its own user, by its path, and follows every link.
//! So it is never told a name that somebody else may know before, or exchange. Where it can reach the user's folder, and
//! nobody else can exchange what lies there, a new file of ours is there, is lent to it, and gets its name when it is
//! whole; else the target writes into a new folder in its own temporary one, which only its user may enter, and the file is
//! copied from there.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use runtap_diag::core_file::{CoreFile, CoreFileError};
use runtap_transport::discover::FileView;
use rustix::fs::{Mode, Uid};
use rustix::process::geteuid;

use crate::exit::{self, expected, usage};
use crate::files::{Draft, copy, numbered, same, unforeseen, with_extension};
use crate::output::acts_unseen;
use crate::units::Bytes;

/// What `createdump` writes beside the dump.
const CRASH_REPORT: &str = ".crashreport.json";
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
    draft: Draft,
    /// The crash report, if one is asked for; where `createdump` puts it, if that writes into the draft.
    report: Option<Draft>,
}

/// The way of a dump.
#[derive(Debug)]
pub(super) struct Place {
    files: Files,
    /// Where the target writes it, as the target sees it.
    pub(super) theirs: PathBuf,
    /// What the target is told: a percent sign begins something that the runtime fills in, two are one.
    pub(super) told: String,
    /// Why it has to be fetched from there; `None` where the target writes into the draft.
    pub(super) fetched: Option<String>,
    /// The folder that was made for it there.
    private: Option<PathBuf>,
    /// The user as whom the target makes files.
    owner: u32,
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
        let ours = std::path::absolute(wanted.path())?;
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

    fn all(&self) -> impl Iterator<Item = &Draft> {
        std::iter::once(&self.draft).chain(&self.report)
    }
}

impl Place {
    /// Finds a way to the files for a target of the user `owner`.
    ///
    /// # Errors
    /// There is no folder that the target may write to.
    pub(super) fn find(view: &FileView, owner: u32, files: Files) -> anyhow::Result<Self> {
        let mut place =
            Self { theirs: PathBuf::new(), told: String::new(), fetched: None, private: None, owner, files };
        match place.lend(view) {
            Ok((theirs, told)) => (place.theirs, place.told) = (theirs, told),
            Err(why) => {
                place.take_back()?;
                let temp = view.temp_dir().unwrap_or_else(|_unreadable| PathBuf::from("/tmp"));
                place.theirs = foreign_name(&temp, &place.files.ours);
                place.told =
                    told(&place.theirs).ok_or_else(|| usage(format!("{} is no UTF-8", temp.display())))?;
                usable(view, &place.theirs).map_err(|reason| {
                    let ours = place.files.ours.parent().unwrap_or_else(|| Path::new("/"));
                    let (folder, temp) = (ours.display(), temp.display());
                    expected(
                        exit::FAILED,
                        format!("the target can't write to {folder}: {why}; nor to {temp}: {reason}"),
                        "choose a folder with -o that the target's user may write to".to_owned(),
                    )
                })?;
                place.fetched = Some(why);
            }
        }
        Ok(place)
    }

    /// Makes the folder from which the file is going to be fetched: the names in it are seen by nobody who could lay a link
    /// there before the target opens them. Where none can be made, that is left to the random name.
    pub(super) fn prepare(&mut self, view: &FileView) {
        if self.fetched.is_none() {
            return;
        }
        let (Some(temp), Some(name)) = (self.theirs.parent(), self.theirs.file_name()) else { return };
        let folder = temp.join(unforeseen());
        let place = folder.join(name);
        if let Some(told) = told(&place)
            && view.make_private_folder(&folder, self.owner).is_ok()
        {
            (self.theirs, self.told, self.private) = (place, told, Some(folder));
        }
    }

    /// Gives the target our file to write to: its path as the target sees it, and as the runtime is told it.
    fn lend(&self, view: &FileView) -> std::result::Result<(PathBuf, String), String> {
        let text = |error: std::io::Error| error.to_string();
        let theirs = view.to_target(&self.files.draft.place()).map_err(text)?;
        let theirs = theirs.ok_or("the target does not see that folder")?;
        let told = told(&theirs).ok_or("its path is no UTF-8, which the protocol can't carry")?;
        // The target would follow a link that is laid there, with the rights of its user.
        if self.files.draft.can_be_exchanged(self.owner) {
            return Err("others can exchange files in that folder".to_owned());
        }
        if self.owner != geteuid().as_raw() {
            for draft in self.files.all() {
                rustix::fs::fchown(draft.file(), Some(Uid::from_raw(self.owner)), None)
                    .map_err(|error| format!("it can't be given a file there: {error}"))?;
            }
        }
        let ours = self.files.draft.file().metadata().map_err(text)?;
        let seen = view.metadata(&theirs).map_err(|_unseen| "its user may not write to that folder")?;
        if !same(&seen, &ours) {
            return Err("the target sees another folder there".to_owned());
        }
        usable(view, &theirs)?;
        Ok((theirs, told))
    }

    /// Our files are ours again, and nobody else's.
    fn take_back(&self) -> anyhow::Result<()> {
        let us = geteuid();
        for file in self.files.all().map(Draft::file) {
            if file.metadata()?.uid() != us.as_raw() {
                rustix::fs::fchown(file, Some(us), None)?;
            }
            // Whoever it was lent to may have let others in. Not every file system has such lists.
            let _ = rustix::fs::fremovexattr(file, "system.posix_acl_access");
            rustix::fs::fchmod(file, Mode::RUSR | Mode::WUSR)?;
        }
        Ok(())
    }

    /// Refuses when the dump can't fit. `needed` is a guess.
    ///
    /// # Errors
    /// A file system on the way is too full.
    pub(super) fn check_space(&self, view: &FileView, needed: u64) -> anyhow::Result<()> {
        let folder = |path: &Path| path.parent().unwrap_or(path).to_owned();
        let ours = rustix::fs::fstatvfs(self.files.draft.file())?;
        let mut ways = vec![(folder(&self.files.ours), ours.f_bavail.saturating_mul(ours.f_frsize))];
        if self.fetched.is_some() {
            let theirs = folder(&self.theirs);
            // Where it can't be asked the dump itself will tell.
            ways.extend(view.free_space(&theirs).ok().map(|free| (theirs, free)));
        }
        for (folder, free) in ways {
            if free < needed {
                let full = format!(
                    "{} has {} left, and the dump takes about {}",
                    folder.display(),
                    Bytes(free),
                    Bytes(needed)
                );
                return Err(expected(
                    exit::FAILED,
                    full,
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
    pub(super) fn written(&self, view: &FileView) -> u64 {
        let meta = match self.fetched {
            Some(_) => view.metadata(&self.theirs),
            None => self.files.draft.file().metadata(),
        };
        meta.map_or(0, |meta| meta.len())
    }

    /// Brings the file to its place, and the crash report if there is to be one.
    ///
    /// # Errors
    /// It can't be read or written. What the target wrote into its own folder stays there then.
    pub(super) fn finish(self, view: &FileView, crash_report: bool) -> anyhow::Result<Result> {
        let theirs = self.theirs.clone();
        let failed =
            || format!("the runtime says that {} is written, but it can't be taken", theirs.display());
        if self.fetched.is_some() {
            copy(&self.open_theirs(view, &self.theirs).with_context(failed)?, self.files.draft.file())
                .with_context(failed)?;
        }
        self.take_back().with_context(failed)?;
        let bytes = self.files.draft.file().metadata()?.len();
        if bytes == 0 {
            anyhow::bail!("the runtime says that the dump is written, but {} is empty", theirs.display());
        }
        let core = CoreFile::inspect(self.files.draft.file());
        if let Err(error) = &core
            && error.is_no_core()
        {
            // Of no use to anybody, and under that name it would be taken for one.
            let what =
                format!("the runtime says that the dump is written, but of {}: {error}", theirs.display());
            self.clean(view);
            return Err(expected(exit::FAILED, what, "nothing is kept of it".to_owned()));
        }
        let report = crash_report.then(|| self.take_report(view));
        self.clean(view);
        let Files { ours, wanted, draft, report: report_draft } = self.files;
        let path = match wanted {
            Wanted::Given(_) => draft.appear_whole()?,
            Wanted::Fresh(_) => draft.settle_whole(|n| numbered(&ours, n, ""))?,
        };
        let crash_report = match (report, report_draft) {
            (Some(Ok(())), Some(mut draft)) => {
                draft.name(with_extension(&path, CRASH_REPORT));
                draft.appear_whole().map(Some)
            }
            (Some(Err(error)), _) => Err(error),
            _ => Ok(None),
        };
        Ok(Result { path, bytes, core, crash_report })
    }

    /// The dump goes on, or may be there, and nobody waits for it: it stays where the target writes it.
    pub(super) fn leave(self) {
        if self.fetched.is_none() {
            self.files.draft.keep();
            self.files.report.map(Draft::keep);
        }
    }

    /// Removes what the target has written into its own folder.
    pub(super) fn clean(&self, view: &FileView) {
        if self.fetched.is_some() {
            for file in [&self.theirs, &with_extension(&self.theirs, CRASH_REPORT)] {
                // It stays then, and the target's folder is cleaned some day.
                let _ = view.remove_file(file);
            }
            if let Some(folder) = &self.private {
                let _ = view.remove_folder(folder);
            }
        }
    }

    fn take_report(&self, view: &FileView) -> anyhow::Result<()> {
        let theirs = with_extension(&self.theirs, CRASH_REPORT);
        let failed = || format!("can't take the crash report {}", theirs.display());
        let Some(report) = &self.files.report else { return Ok(()) };
        let too_long = |bytes| {
            let (most, theirs) = (Bytes(MOST_REPORT), theirs.display());
            anyhow::anyhow!("the crash report {theirs} has {}, more than {most}", Bytes(bytes))
        };
        if self.fetched.is_some() {
            let written = self.open_theirs(view, &theirs).with_context(failed)?;
            match written.metadata().with_context(failed)?.len() {
                bytes if bytes > MOST_REPORT => return Err(too_long(bytes)),
                _ => copy(&written, report.file()).with_context(failed)?,
            }
        }
        match report.file().metadata().with_context(failed)?.len() {
            bytes if bytes > MOST_REPORT => return Err(too_long(bytes)),
            _ => {}
        }
        let mut whole = report.file().try_clone().with_context(failed)?;
        whole.rewind().with_context(failed)?;
        serde_json::from_reader::<_, serde::de::IgnoredAny>(BufReader::new(whole.take(MOST_REPORT)))
            .with_context(|| format!("the crash report {} is no whole JSON", theirs.display()))?;
        Ok(())
    }

    /// Opens a file that the target has made. Nothing else is opened, nothing of somebody else, and nothing that a link
    /// leads to: whoever may write to its folder could give the name to any file of its user.
    fn open_theirs(&self, view: &FileView, path: &Path) -> anyhow::Result<File> {
        let file = view.open_itself(path)?;
        let meta = file.metadata()?;
        if meta.uid() != self.owner {
            anyhow::bail!("it belongs to user {}, not to the target's, {}", meta.uid(), self.owner);
        }
        if meta.nlink() != 1 {
            anyhow::bail!("it has {} names, and the target was to make a new file", meta.nlink());
        }
        Ok(file)
    }
}

/// Whether the target's user can write a file there, else why not.
fn usable(view: &FileView, theirs: &Path) -> std::result::Result<(), String> {
    let folder = theirs.parent().unwrap_or_else(|| Path::new("/"));
    let (what, path) = match view.metadata(theirs) {
        Ok(_ours) => ("a file in", theirs),
        Err(_not_there) => ("", folder),
    };
    match view.is_writable(path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("its user may not write to {what} that folder").replace("  ", " ")),
        Err(error) => Err(error.to_string()),
    }
}

/// The path as the runtime is told it; `None` if the protocol can't carry it.
fn told(theirs: &Path) -> Option<String> {
    theirs.to_str().map(|path| path.replace('%', "%%"))
}

/// A name in the target's folder that nobody can have taken.
fn foreign_name(folder: &Path, ours: &Path) -> PathBuf {
    /// In bytes; the rest of a longest name is for what comes before and behind.
    const MOST: usize = 150;
    let name = ours.file_name().unwrap_or_default().to_string_lossy();
    let safe = name.chars().map(|c| if acts_unseen(c) || c == '\u{fffd}' { '_' } else { c });
    let mut text = unforeseen();
    text.push('-');
    for c in safe {
        if text.len() + c.len_utf8() > MOST {
            break;
        }
        text.push(c);
    }
    folder.join(text)
}
