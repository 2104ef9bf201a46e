//! Where the target writes its dump, and the crash report beside it, and how both get from there into files of ours.
//!
//! The target opens the file itself: in its own mount namespace, as its own user, by its path, and follows every link.
//! So it is never told a name that somebody else may know before, or exchange. And whatever a user has written stays a file
//! that he can keep open, change later and give further names: what another user than ours wrote is copied, never kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runtap_discover::FileView;
use runtap_model::text::acts_unseen;
use runtap_os::output::{PendingFile, copy, same, temporary_name};
use runtap_transport::Folder;
use rustix::fs::{Mode, Uid};
use rustix::process::geteuid;

use crate::dump::Error;
use crate::dump::place::{CRASH_REPORT, Files};

/// Which of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Dump,
    Report,
}

#[derive(Debug)]
pub(crate) enum Way {
    /// Into the files that the user gets: the target is our own user's, and in no container.
    Direct,
    /// Into files beside those, which are the target's user's, in a folder where he can make files.
    Lent { dump: PendingFile, report: Option<PendingFile> },
    /// Into a folder of the target's own.
    Fetched(Fetched),
}

/// Files of the target, held by their folder: whatever becomes of the path, they are taken and removed there.
#[derive(Debug)]
pub(crate) struct Fetched {
    folder: Folder,
    /// Of the dump.
    name: OsString,
    /// The user as whom the target makes files.
    owner: u32,
    /// The folder around one that was made for this.
    around: Option<Folder>,
    /// Why it has to be like that.
    pub(crate) why: String,
}

/// A path as the target sees it, and as the runtime is told it.
#[derive(Debug)]
pub(crate) struct RequestedPath {
    pub(crate) theirs: PathBuf,
    /// A percent sign begins something that the runtime fills in, two are one.
    pub(crate) text: String,
}

impl RequestedPath {
    /// `None` if the protocol can't carry it.
    fn of(theirs: PathBuf) -> Option<Self> {
        let text = theirs.to_str()?.replace('%', "%%");
        Some(Self { theirs, text })
    }
}

impl Way {
    /// Gives the target a file of ours to write to, or one beside it.
    ///
    /// # Errors
    /// Why it can't have one there.
    pub(crate) fn lend(view: &FileView, owner: u32, files: &Files) -> Result<(Self, RequestedPath), String> {
        let text = |error: io::Error| error.to_string();
        // The target would follow a link that is laid there, with the rights of its user.
        if files.draft.can_be_replaced(owner) {
            return Err("others can exchange files in that folder".to_owned());
        }
        let place = view.to_target(&files.draft.place()).map_err(text)?;
        let mut theirs = place.ok_or("the target does not see that folder")?;
        let mut way = Self::Direct;
        if owner != geteuid().as_raw() || view.is_foreign() {
            // A file of his would give him room where he has none, and may stay: only where he could make one himself.
            if !view.is_writable(theirs.parent().unwrap_or(&theirs)).map_err(text)? {
                return Err("its user may not write to that folder".to_owned());
            }
            way = files.lend(owner).map_err(|why| format!("it can't be given a file there: {why}"))?;
        }
        let mut dump = &files.draft;
        if let Self::Lent { dump: beside, .. } = &way {
            theirs.set_file_name(beside.place().file_name().unwrap_or_default());
            dump = beside;
        }
        let told = RequestedPath::of(theirs).ok_or("its path is no UTF-8, which the protocol can't carry")?;
        let ours = dump.file().metadata().map_err(text)?;
        let seen = view.metadata(&told.theirs).map_err(|_unseen| "its user may not write to that folder")?;
        if !same(&seen, &ours) {
            return Err("the target sees another folder there".to_owned());
        }
        usable(view, &told.theirs)?;
        Ok((way, told))
    }

    /// Has the target write into its own temporary folder.
    ///
    /// # Errors
    /// It has none in which it can; with its path.
    pub(crate) fn fetch(
        view: &FileView,
        owner: u32,
        ours: &Path,
        why: String,
    ) -> Result<(Self, RequestedPath), Error> {
        let temp = view.temp_dir().unwrap_or_else(|_unreadable| PathBuf::from("/tmp"));
        let name = foreign_name(ours);
        let told = RequestedPath::of(temp.join(&name)).ok_or_else(|| Error::NoText(temp.clone()))?;
        let failed = |not_there| Error::NoPlace {
            folder: ours.parent().unwrap_or_else(|| Path::new("/")).to_owned(),
            why: why.clone(),
            temp: temp.clone(),
            not_there,
        };
        let folder = view.folder(&told.theirs).map_err(|error| failed(error.to_string()))?;
        usable(view, &told.theirs).map_err(failed)?;
        Ok((Self::Fetched(Fetched { folder, name, owner, around: None, why }), told))
    }

    /// Makes the folder from which the file is going to be fetched, if it is: the names in it are seen by nobody who could
    /// lay a link there before the target opens them. Where none can be made, that is left to the random name.
    pub(crate) fn prepare(&mut self, view: &FileView, told: &mut RequestedPath) {
        let Self::Fetched(fetched) = self else { return };
        let Some(temp) = told.theirs.parent() else { return };
        let folder = temp.join(temporary_name());
        if let Some(inside) = RequestedPath::of(folder.join(&fetched.name))
            && let Ok((around, made)) = view.make_private_folder(&folder, fetched.owner)
        {
            *told = inside;
            (fetched.folder, fetched.around) = (made, Some(around));
        }
    }

    /// How much the target has written by now.
    pub(crate) fn written(&self, files: &Files) -> u64 {
        match self {
            Self::Direct => files.draft.file().metadata().map_or(0, |meta| meta.len()),
            Self::Lent { dump, .. } => dump.file().metadata().map_or(0, |meta| meta.len()),
            Self::Fetched(fetched) => fetched
                .folder
                .stat(&fetched.name)
                .map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default()),
        }
    }

    /// Sees to it that one of the files is in ours, and nobody else's. Of a report no more than `most` bytes are taken;
    /// gives its length.
    ///
    /// # Errors
    /// It is not there, is nothing to be taken, or there is no room for it.
    pub(crate) fn take(&self, files: &Files, which: Which, most: Option<u64>) -> io::Result<u64> {
        let Some(ours) = files.draft_of(which) else { return Ok(0) };
        let opened;
        let theirs = match self {
            Self::Direct => ours.file(),
            Self::Lent { dump, report } => match which {
                Which::Dump => dump.file(),
                Which::Report => report.as_ref().ok_or_else(|| io::Error::other("it is not there"))?.file(),
            },
            Self::Fetched(fetched) => {
                opened = fetched.open(which)?;
                &opened
            }
        };
        let len = theirs.metadata()?.len();
        if most.is_some_and(|most| len > most) {
            return Ok(len);
        }
        if matches!(self, Self::Direct) {
            // Whoever writes as our user may have let others in. Not every file system has such lists.
            let _ = rustix::fs::fremovexattr(theirs, "system.posix_acl_access");
            rustix::fs::fchmod(theirs, Mode::RUSR | Mode::WUSR)?;
        } else {
            copy(theirs, ours.file())?;
        }
        Ok(ours.file().metadata()?.len())
    }

    /// Removes what the target has written for us.
    pub(crate) fn clean(&self) {
        // Drafts go of themselves.
        if let Self::Fetched(fetched) = self {
            fetched.clean();
        }
    }

    /// Leaves what the target writes.
    pub(crate) fn keep(self) {
        if let Self::Lent { dump, report } = self {
            dump.keep();
            report.map(PendingFile::keep);
        }
    }
}

impl Files {
    /// Files beside ours that belong to another user.
    ///
    /// # Errors
    /// Why there are none.
    fn lend(&self, owner: u32) -> Result<Way, String> {
        let dump = self.draft.sibling().map_err(|error| chain(&error))?.ok_or("it is no file")?;
        let report = self.report.as_ref().map(|_ours| dump.companion(CRASH_REPORT)).transpose();
        let report = report.map_err(|error| chain(&error))?;
        for draft in std::iter::once(&dump).chain(&report) {
            rustix::fs::fchown(draft.file(), Some(Uid::from_raw(owner)), None)
                .map_err(|error| error.to_string())?;
        }
        Ok(Way::Lent { dump, report })
    }
}

impl Fetched {
    fn name(&self, which: Which) -> OsString {
        let mut name = self.name.clone();
        if which == Which::Report {
            name.push(CRASH_REPORT);
        }
        name
    }

    /// Opens a file that the target has made. Nothing else is opened, nothing of somebody else, and nothing that a link
    /// leads to: whoever may write to its folder could give the name to any file of its user.
    fn open(&self, which: Which) -> io::Result<File> {
        let file = self.folder.open_itself(&self.name(which)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("a process of its user holds it (by a lease)"),
            _ => error,
        })?;
        let meta = file.metadata()?;
        if meta.uid() != self.owner {
            let (theirs, owner) = (meta.uid(), self.owner);
            return Err(io::Error::other(format!(
                "it belongs to user {theirs}, not to the target's, {owner}"
            )));
        }
        if meta.nlink() != 1 {
            let names = meta.nlink();
            return Err(io::Error::other(format!(
                "it has {names} names, and the target was to make a new file"
            )));
        }
        Ok(file)
    }

    /// What can't be removed stays, and the target's folder is cleaned some day.
    fn clean(&self) {
        for which in [Which::Dump, Which::Report] {
            let _ = self.folder.remove(&self.name(which));
        }
        if let (Some(around), Some(name)) = (&self.around, self.folder.path().file_name()) {
            let _ = around.remove_folder(name);
        }
    }

    /// Bytes that are left there. Where it can't be asked the dump itself will tell.
    pub(crate) fn free_space(&self) -> Option<(PathBuf, u64)> {
        let free = self.folder.free_space().ok()?;
        Some((self.folder.path().to_owned(), free))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Whether the target's user can write a file there, else why not.
fn usable(view: &FileView, theirs: &Path) -> Result<(), String> {
    let folder = theirs.parent().unwrap_or_else(|| Path::new("/"));
    let (what, path) = match view.metadata(theirs) {
        Ok(_ours) => ("a file in ", theirs),
        Err(_not_there) => ("", folder),
    };
    match view.is_writable(path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("its user may not write to {what}that folder")),
        Err(error) => Err(error.to_string()),
    }
}

/// A name in the target's folder that nobody can have taken.
fn foreign_name(ours: &Path) -> OsString {
    /// In bytes; the rest of a longest name is for what comes before and behind.
    const MOST: usize = 150;
    let name = ours.file_name().unwrap_or_else(|| OsStr::new("")).to_string_lossy();
    let safe = name.chars().map(|c| if acts_unseen(c) || c == '\u{fffd}' { '_' } else { c });
    let mut text = temporary_name();
    text.push('-');
    for c in safe {
        if text.len() + c.len_utf8() > MOST {
            break;
        }
        text.push(c);
    }
    text.into()
}
