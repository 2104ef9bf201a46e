//! Translates paths between this process and one with other mounts or another root directory, such as a container.
//!
//! Paths of the target are resolved in its own root, by descriptors ([`Root`](runtap_transport::linux::Root)), so no symbolic link
//! and no replaced directory leads out of it. A directory that both sides see may have different paths, so what exists at the paths
//! is compared. A view stays with its process even if the process id is reused. The only change that it can make is
//! [`FileView::make_private_folder`].
//! Source: `proc(5)`, `path_resolution(7)`, `openat2(2)`.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runtap_transport::linux::{Capabilities, Location, POINT, ProcDir, Root, Status, open_beneath};
use runtap_transport::naming::temp_dir;
use runtap_transport::{Folder, PathCheck};
use rustix::fs::{FileType, Gid, Mode, OFlags, StatVfsMountFlags, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::gather::permits;
use super::mounts;
use super::proc_files::ProcFiles as _;

/// The file system as seen by a process. A *path of the target* is one that the process itself would use, and that can be sent to
/// its runtime; a *local path* is one that this process would use.
#[derive(Debug, Clone)]
pub struct FileView {
    dir: ProcDir,
    me: ProcDir,
    root: Root,
    foreign: bool,
}

impl FileView {
    pub(super) fn new(dir: ProcDir, me: ProcDir) -> io::Result<Self> {
        let namespace = |of: &ProcDir| of.link("ns/mnt");
        // A `chroot` shows in the link's text, which is the path of the root below this process's.
        let foreign = namespace(&dir)? != namespace(&me)? || dir.link("root")? != Path::new("/");
        let root = if foreign { dir.root()? } else { Root::own()? };
        Ok(Self { dir, me, root, foreign })
    }

    /// Whether its paths differ from this process's.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Returns the temporary directory of its runtime, as seen by the target: TMPDIR, or else `/tmp`. A relative TMPDIR is relative
    /// to the target's working directory.
    ///
    /// # Errors
    /// Returns an error if its environment can't be read.
    pub fn temp_dir(&self) -> io::Result<PathBuf> {
        let mut alone = u64::MAX;
        let path = temp_dir(self.dir.environment(&mut alone)?.tmpdir.as_deref());
        Ok(if path.is_relative() { self.working_directory()?.join(path) } else { path })
    }

    /// Returns a path of the target as seen from here, for messages and other tools. Symbolic links in it are not resolved, so this
    /// process must not open it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        match self.absolute(path) {
            Some(path) => Location::of(&path, self.foreign).shown(&self.dir),
            None => Location::of(path, self.foreign).shown(&self.dir),
        }
    }

    /// Converts a local path to a path of the target. Returns `None` if the target can't see what is there. The file need not exist, but
    /// its directory must. A relative path is relative to this process's working directory.
    ///
    /// # Errors
    /// Returns an error if the directory does not exist or access is denied.
    pub fn to_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let absolute = std::path::absolute(path)?;
        if !self.foreign {
            return Ok(Some(absolute));
        }
        if let Ok(below) = absolute.strip_prefix(self.dir.shown("root")) {
            return Ok(Some(Path::new("/").join(below)));
        }
        let there = fs::metadata(&absolute);
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Ok(self.place_of(Path::new("/")));
        };
        if let Some(parent) = self.place_of(&fs::canonicalize(parent)?) {
            let place = parent.join(name);
            // A symbolic link in a shared directory may lead elsewhere for the target.
            if there.as_ref().map_or(true, |there| self.is_same(&place, there)) {
                return Ok(Some(place));
            }
        }
        // A file that exists may itself be a mount point, or a link to another directory.
        Ok(match there {
            Ok(_) => self.place_of(&fs::canonicalize(&absolute)?),
            Err(_) => None,
        })
    }

    /// Opens a file of the target for reading. Never leaves the target's root, whatever symbolic links there are.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        // A pipe must not block.
        self.open_with(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    /// Returns the metadata of a path of the target, following symbolic links.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open_with(path, OFlags::PATH)?).metadata()
    }

    /// Whether the target may execute a file, according to its mode, its owner and its mount options. Access control lists are
    /// ignored.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(super) fn is_executable(&self, path: &Path) -> io::Result<bool> {
        let file = self.open_with(path, OFlags::PATH)?;
        let stat = rustix::fs::fstat(&file)?;
        let allowed = match self.rights() {
            Some(rights) => permits(&stat, &rights, 0o1),
            None => stat.st_mode & 0o111 != 0,
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file && allowed && !is_mounted(&file, StatVfsMountFlags::NOEXEC))
    }

    /// Whether the target may write to a file, or create one in a directory, according to modes, owners and mount options, including
    /// those of the parent directories. Access control lists and quotas are ignored.
    ///
    /// Returns the error of the system call.
    /// As opening has.
    pub fn is_writable(&self, path: &Path) -> io::Result<bool> {
        let file = self.open_with(path, OFlags::PATH)?;
        let stat = rustix::fs::fstat(&file)?;
        let status = self.rights().ok_or(io::ErrorKind::NotFound)?;
        let passable = |folder: &Path| {
            let folder = self.open_with(folder, OFlags::PATH).and_then(|it| Ok(rustix::fs::fstat(it)?));
            folder.is_ok_and(|folder| permits(&folder, &status, 0o1))
        };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let rights = if is_folder { 0o3 } else { 0o2 };
        Ok(!is_mounted(&file, StatVfsMountFlags::RDONLY)
            && permits(&stat, &status, rights)
            && path.ancestors().skip(1).all(passable))
    }

    /// Creates a directory at an unused path of the target that only `user` can access. It is created as that user, so it can only
    /// be created where that user may, and nothing that was put in its place is given to the user. Returns its parent directory and
    /// the new directory.
    ///
    /// # Errors
    /// Returns the error of the system call. `PermissionDenied` also if this process can't act as that user, or if the path was
    /// replaced meanwhile.
    pub fn make_private_folder(&self, path: &Path, user: u32) -> io::Result<(Folder, Folder)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let group = self.dir.status().ok_or(io::ErrorKind::NotFound)?.effective_gid;
        let (parent, writable) = self.passable_folder(path)?;
        if !writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        as_user(user, group, || Ok(rustix::fs::mkdirat(&parent, name, Mode::RWXU)?))?;
        let made = parent.folder(name)?;
        if made.owner()? != user {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok((parent, made))
    }

    /// Opens the parent directory of a path of the target, to create something in it.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        let folder = folder_of(path);
        let opened = self.open_with(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Folder::opened(opened, self.shown(folder)))
    }

    /// Opens the parent directory of a path if the target itself can reach it, and returns whether the target may create files
    /// there. `PermissionDenied` if the target can't reach it.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn passable_folder(&self, path: &Path) -> io::Result<(Folder, bool)> {
        let status = self.rights().ok_or(io::ErrorKind::NotFound)?;
        let folder = folder_of(path);
        let absolute = self.absolute(folder).ok_or(io::ErrorKind::NotFound)?;
        let mut way = PathCheck::start();
        let opened = self.root.folder_by(&absolute, &mut |entry| {
            way.pass(entry);
            // A symbolic link has no permissions of its own.
            let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
            let passes = is_link || permits(entry, &status, 0o1);
            passes.then_some(()).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
        })?;
        let writable = permits(&rustix::fs::fstat(&opened)?, &status, 0o3);
        Ok((Folder::opened(opened, self.shown(folder)).with_exposure_of(&way)?, writable))
    }

    /// Returns the rights of the target in this process's user namespace. Any user has all capabilities in a user namespace of their own, but
    /// these do not apply to files of others.
    pub(super) fn rights(&self) -> Option<Status> {
        let mut status = self.dir.status()?;
        let theirs = self.dir.namespace("user");
        if theirs.is_none() || theirs != self.me.namespace("user") {
            status.capabilities = Capabilities::default();
        }
        Some(status)
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        match self.absolute(path) {
            Some(absolute) => self.root.open(&absolute, flags),
            // If the working directory is outside its root, paths stay below the working directory.
            None => open_beneath(self.dir.working_directory()?.as_fd(), path, flags),
        }
    }

    /// Returns the absolute path of the target. `None` for a relative path if the working directory is unknown.
    pub(super) fn absolute(&self, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        Some(self.working_directory().ok()?.join(path))
    }

    /// Returns the target's working directory, as seen by the target. The link's text is relative to the root of its mount namespace
    /// or of runtap's, so each candidate is checked.
    fn working_directory(&self) -> io::Result<PathBuf> {
        let text = self.dir.link("cwd")?;
        let there = File::from(self.dir.working_directory()?).metadata()?;
        let root = self.dir.link("root").unwrap_or_default();
        let below_root = text.strip_prefix(&root).map(|below| Path::new("/").join(below));
        let mut candidates = below_root.into_iter().chain([text]);
        candidates.find(|path| self.is_same(path, &there)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the path at which the target sees a local directory or file. `path` must not contain symbolic links.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let there = fs::metadata(path).ok()?;
        if self.is_same(path, &there) {
            return Some(path.to_owned());
        }
        let read = |of: &ProcDir| of.read("mountinfo").map(|text| mounts::parse(&text)).unwrap_or_default();
        let places = mounts::visible_paths(&read(&self.me), &read(&self.dir), path);
        places.into_iter().find(|place| self.is_same(place, &there))
    }

    /// Whether a path of the target leads to this file.
    fn is_same(&self, path: &Path, there: &Metadata) -> bool {
        let found = self.root.open(path, POINT).and_then(|file| File::from(file).metadata());
        found.is_ok_and(|meta| same(&meta, there))
    }
}

/// Runs `act` as another user. Since credentials belong to a thread on Linux, a new thread is started for it.
fn as_user(user: u32, group: u32, act: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    if user == rustix::process::geteuid().as_raw() {
        return act();
    }
    let acting = || {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        set_thread_groups(&[])?;
        set_thread_res_gid(None, group, None)?;
        set_thread_res_uid(None, user, None)?;
        act()
    };
    std::thread::scope(|scope| {
        scope.spawn(acting).join().unwrap_or_else(|_panicked| Err(io::ErrorKind::Other.into()))
    })
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

fn is_mounted(file: &OwnedFd, how: StatVfsMountFlags) -> bool {
    rustix::fs::fstatvfs(file).is_ok_and(|stat| stat.f_flag.contains(how))
}

/// Returns the parent directory, or the working directory for a path without one.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}
