//! Where the target writes its dump and the crash report, and how both are moved from there to the output files.
//!
//! The target opens the file itself: in its own mount namespace, as its own user, by path, following all symbolic links. So it is
//! never sent a path that another user can know in advance or replace. The owner of a file can keep it open, change it later and
//! create further links to it, so a file that another user wrote is copied and never kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runtap_discover::FileView;
use runtap_model::text::acts_unseen;
use runtap_os::output::{PendingFile, copy, is_same_file, temporary_name};
use runtap_transport::Folder;
use rustix::fs::{Mode, Uid};
use rustix::process::geteuid;

use crate::dump::Error;
use crate::dump::place::{CRASH_REPORT, Files};

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DumpFile {
    Dump,
    Report,
}

#[derive(Debug)]
pub(crate) enum WriteStrategy {
    /// The target writes to the output files: it runs as the current user and not in a container.
    Direct,
    /// The target writes to files beside the output files that belong to the target's user, in a directory where that user may
    /// create files.
    BorrowedDescriptor { dump: PendingFile, report: Option<PendingFile> },
    /// The target writes to its own directory.
    Fetched(Fetched),
}

/// Files of the target, accessed through a descriptor of their directory, so that a replaced path has no effect.
#[derive(Debug)]
pub(crate) struct Fetched {
    folder: Folder,
    /// The name of the dump.
    name: OsString,
    /// The user that owns files created by the target.
    owner: u32,
    /// The parent of a directory that was created for the dump.
    around: Option<Folder>,
    /// Why the dump can't be written to its destination.
    pub(crate) why: String,
}

/// A path as seen by the target, and as sent to the runtime.
#[derive(Debug)]
pub(crate) struct RequestedPath {
    pub(crate) theirs: PathBuf,
    /// The runtime expands percent signs; two stand for one.
    pub(crate) text: String,
}

impl RequestedPath {
    /// Returns `None` if the path can't be sent because it is not UTF-8.
    fn of(theirs: PathBuf) -> Option<Self> {
        let text = theirs.to_str()?.replace('%', "%%");
        Some(Self { theirs, text })
    }
}

impl WriteStrategy {
    /// Lets the target write to the output file, or to one beside it.
    ///
    /// # Errors
    /// Returns the reason why the target can't write there.
    pub(crate) fn lend(view: &FileView, owner: u32, files: &Files) -> Result<(Self, RequestedPath), String> {
        let text = |error: io::Error| error.to_string();
        // The target would follow a symbolic link in its place, with the rights of its user.
        if files.draft.can_be_replaced(owner) {
            return Err("other users can replace files in that directory".to_owned());
        }
        let place = view.to_target(&files.draft.place()).map_err(text)?;
        let mut theirs = place.ok_or("the target cannot see that directory")?;
        let mut way = Self::Direct;
        if owner != geteuid().as_raw() || view.is_foreign() {
            // A file owned by another user bypasses quotas and may remain, so create it only where that user could.
            if !view.is_writable(theirs.parent().unwrap_or(&theirs)).map_err(text)? {
                return Err("its user is not permitted to write to that directory".to_owned());
            }
            way = files.lend(owner).map_err(|why| format!("a file for it can't be created there: {why}"))?;
        }
        let mut dump = &files.draft;
        if let Self::BorrowedDescriptor { dump: beside, .. } = &way {
            theirs.set_file_name(beside.place().file_name().unwrap_or_default());
            dump = beside;
        }
        let told = RequestedPath::of(theirs).ok_or("its path is not UTF-8, which the protocol requires")?;
        let ours = dump.file().metadata().map_err(text)?;
        let seen = view
            .metadata(&told.theirs)
            .map_err(|_unseen| "its user is not permitted to write to that directory")?;
        if !is_same_file(&seen, &ours) {
            return Err("the target sees a different directory at that path".to_owned());
        }
        usable(view, &told.theirs)?;
        Ok((way, told))
    }

    /// Lets the target write to its own temporary directory.
    ///
    /// # Errors
    /// Returns an error if the target can't write there.
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

    /// Creates the private directory from which the file will be copied: no other user can create links in it before the target
    /// opens the file. If it can't be created, the random name must suffice.
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

    /// Returns the number of bytes that the target has written.
    pub(crate) fn written(&self, files: &Files) -> u64 {
        match self {
            Self::Direct => files.draft.file().metadata().map_or(0, |meta| meta.len()),
            Self::BorrowedDescriptor { dump, .. } => dump.file().metadata().map_or(0, |meta| meta.len()),
            Self::Fetched(fetched) => fetched
                .folder
                .stat(&fetched.name)
                .map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default()),
        }
    }

    /// Makes sure that a file is an output file that only the current user can access, by copying it if necessary. A file longer
    /// than `most` bytes is not copied. Returns the length.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is not acceptable, or there is not enough space.
    pub(crate) fn take(&self, files: &Files, which: DumpFile, most: Option<u64>) -> io::Result<u64> {
        let Some(ours) = files.draft_of(which) else { return Ok(0) };
        let opened;
        let theirs = match self {
            Self::Direct => ours.file(),
            Self::BorrowedDescriptor { dump, report } => match which {
                DumpFile::Dump => dump.file(),
                DumpFile::Report => {
                    report.as_ref().ok_or_else(|| io::Error::other("it is not there"))?.file()
                }
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
            // A process of the current user may have granted access to others. Not every file system has access control lists.
            let _ = rustix::fs::fremovexattr(theirs, "system.posix_acl_access");
            rustix::fs::fchmod(theirs, Mode::RUSR | Mode::WUSR)?;
        } else {
            copy(theirs, ours.file())?;
        }
        Ok(ours.file().metadata()?.len())
    }

    /// Removes what the target has written to its own directory.
    pub(crate) fn clean(&self) {
        // Drafts remove themselves.
        if let Self::Fetched(fetched) = self {
            fetched.clean();
        }
    }

    /// Leaves what the target writes in place.
    pub(crate) fn keep(self) {
        if let Self::BorrowedDescriptor { dump, report } = self {
            dump.keep();
            report.map(PendingFile::keep);
        }
    }
}

impl Files {
    /// Creates files beside the output files that belong to another user.
    ///
    /// # Errors
    /// Returns the reason why that is not possible.
    fn lend(&self, owner: u32) -> Result<WriteStrategy, String> {
        let dump = self.draft.sibling().map_err(|error| chain(&error))?.ok_or("it is not a file")?;
        let report = self.report.as_ref().map(|_ours| dump.companion(CRASH_REPORT)).transpose();
        let report = report.map_err(|error| chain(&error))?;
        for draft in std::iter::once(&dump).chain(&report) {
            rustix::fs::fchown(draft.file(), Some(Uid::from_raw(owner)), None)
                .map_err(|error| error.to_string())?;
        }
        Ok(WriteStrategy::BorrowedDescriptor { dump, report })
    }
}

impl Fetched {
    fn name(&self, which: DumpFile) -> OsString {
        let mut name = self.name.clone();
        if which == DumpFile::Report {
            name.push(CRASH_REPORT);
        }
        name
    }

    /// Opens a file that the target has created. Does not follow links, and rejects files of other owners and with several links:
    /// any user who can write to the directory could have linked another file.
    fn open(&self, which: DumpFile) -> io::Result<File> {
        let file = self.folder.open_itself(&self.name(which)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("a process of its user holds a lease on it"),
            _ => error,
        })?;
        let meta = file.metadata()?;
        if meta.uid() != self.owner {
            let (theirs, owner) = (meta.uid(), self.owner);
            return Err(io::Error::other(format!(
                "it belongs to user {theirs}, not to the target's user {owner}"
            )));
        }
        if meta.nlink() != 1 {
            let names = meta.nlink();
            return Err(io::Error::other(format!("it has {names} links, but a new file has one link")));
        }
        Ok(file)
    }

    /// Removes the files. Errors are ignored; temporary directories are cleaned eventually.
    fn clean(&self) {
        for which in [DumpFile::Dump, DumpFile::Report] {
            let _ = self.folder.remove(&self.name(which));
        }
        if let (Some(around), Some(name)) = (&self.around, self.folder.path().file_name()) {
            let _ = around.remove_folder(name);
        }
    }

    /// Returns the directory and the number of free bytes. `None` if unknown.
    pub(crate) fn free_space(&self) -> Option<(PathBuf, u64)> {
        let free = self.folder.free_space().ok()?;
        Some((self.folder.path().to_owned(), free))
    }
}

/// Formats an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Checks whether the target's user can write a file there. Returns the reason if not.
fn usable(view: &FileView, theirs: &Path) -> Result<(), String> {
    let folder = theirs.parent().unwrap_or_else(|| Path::new("/"));
    let (what, path) = match view.metadata(theirs) {
        Ok(_ours) => ("a file in ", theirs),
        Err(_not_there) => ("", folder),
    };
    match view.is_writable(path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("its user is not permitted to write to {what}that directory")),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns an unpredictable name for a file in the target's directory.
fn foreign_name(ours: &Path) -> OsString {
    /// In bytes, which leaves room for prefixes and suffixes within the limit of file names.
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
