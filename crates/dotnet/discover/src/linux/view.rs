//! How paths translate between us and a process that may have other mounts or another root directory (a container).
//!
//! Paths of the target are resolved in its own root, by descriptors ([`Root`](runtap_transport::linux::Root)): no link and no exchange
//! of folders leads out of it. A folder that both sides see may have another path over there: paths are compared by what
//! lies there. All of it is of the process that was there when the view was made, whoever has its number later. Refuses to
//! write: the only change that it makes is [`FileView::make_private_folder`].
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

/// The file system as one process sees it. Paths *of the target* are those that the process itself would use, and
/// the ones to send to its runtime; paths *of ours* are those that we would use.
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
        // A `chroot` shows in the link's text: it is where the root lies below ours.
        let foreign = namespace(&dir)? != namespace(&me)? || dir.link("root")? != Path::new("/");
        let root = if foreign { dir.root()? } else { Root::ours()? };
        Ok(Self { dir, me, root, foreign })
    }

    /// Whether its paths are other ones than ours.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The temporary directory of its runtime, as the target sees it: TMPDIR, else `/tmp`. A relative TMPDIR
    /// counts from its working directory.
    ///
    /// # Errors
    /// When its environment can't be read.
    pub fn temp_dir(&self) -> io::Result<PathBuf> {
        let mut alone = u64::MAX;
        let path = temp_dir(self.dir.environment(&mut alone)?.tmpdir.as_deref());
        Ok(if path.is_relative() { self.working_directory()?.join(path) } else { path })
    }

    /// What a path of the target is called from here: for people, and for tools that they start. Links in it are not
    /// resolved, so nothing of ours opens it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        match self.absolute(path) {
            Some(path) => Location::of(&path, self.foreign).shown(&self.dir),
            None => Location::of(path, self.foreign).shown(&self.dir),
        }
    }

    /// A path of ours in the form in which the target needs it; `None` if what lies there can't be seen by the target. The
    /// file itself need not exist, its folder must. A relative path is taken from our working directory.
    ///
    /// # Errors
    /// When the folder does not exist, or we may not look there.
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
            // A link in a folder that both see may lead elsewhere for the target.
            if there.as_ref().map_or(true, |there| self.is_same(&place, there)) {
                return Ok(Some(place));
            }
        }
        // A file that exists may be mounted by itself, or lie elsewhere than its link.
        Ok(match there {
            Ok(_) => self.place_of(&fs::canonicalize(&absolute)?),
            Err(_) => None,
        })
    }

    /// Opens a file of the target for reading. Never leaves the target's root, whatever links say.
    ///
    /// # Errors
    /// As opening has.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        // A pipe must not hold us up.
        self.open_with(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    /// What lies at a path of the target; links are followed.
    ///
    /// # Errors
    /// As opening has.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open_with(path, OFlags::PATH)?).metadata()
    }

    /// Whether the target could execute a file: by its mode, its owner and how its file system is mounted. Access lists
    /// are not looked at.
    ///
    /// # Errors
    /// As opening has.
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

    /// Whether the target could write to a file, or make one in a folder: by modes and owners, also of the folders on the
    /// way there, and by how its file system is mounted. Access lists and quotas are not looked at.
    ///
    /// # Errors
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

    /// Makes a folder at a path of the target where nothing is yet, which this user alone may enter: as that user, so that
    /// it is made only where he could make one, and nothing is ever given to him that somebody has put in its place. Gives
    /// the folder that it is in, too.
    ///
    /// # Errors
    /// As making a folder has; `PermissionDenied` also where we may not act as that user, and where something else has its
    /// name by then.
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

    /// The folder of a path of the target, to make something in it.
    ///
    /// # Errors
    /// As opening has.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        let folder = folder_of(path);
        let opened = self.open_with(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Folder::opened(opened, self.shown(folder)))
    }

    /// The same where the target itself can get to, and whether it may make something there. `PermissionDenied` for a
    /// folder that is out of its reach: that it names one gives it no rights.
    ///
    /// # Errors
    /// As opening has.
    pub fn passable_folder(&self, path: &Path) -> io::Result<(Folder, bool)> {
        let status = self.rights().ok_or(io::ErrorKind::NotFound)?;
        let folder = folder_of(path);
        let absolute = self.absolute(folder).ok_or(io::ErrorKind::NotFound)?;
        let mut way = PathCheck::start();
        let opened = self.root.folder_by(&absolute, &mut |entry| {
            way.pass(entry);
            // A link has no rights of its own.
            let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
            let passes = is_link || permits(entry, &status, 0o1);
            passes.then_some(()).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
        })?;
        let writable = permits(&rustix::fs::fstat(&opened)?, &status, 0o3);
        Ok((Folder::opened(opened, self.shown(folder)).with_exposure_of(&way)?, writable))
    }

    /// What the target may do here. Anybody has all capabilities in a user namespace of his own, over nothing but what is
    /// his: they count in our namespace only.
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
            // From a working directory that is outside its root nothing leads back.
            None => open_beneath(self.dir.working_directory()?.as_fd(), path, flags),
        }
    }

    /// The target's absolute path; `None` for a relative one whose base is not known.
    pub(super) fn absolute(&self, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        Some(self.working_directory().ok()?.join(path))
    }

    /// The target's working directory as it sees it. The link's text is its path below the root of its mount
    /// namespace, or of ours: only a look can tell whether that is the target's path too.
    fn working_directory(&self) -> io::Result<PathBuf> {
        let text = self.dir.link("cwd")?;
        let there = File::from(self.dir.working_directory()?).metadata()?;
        let root = self.dir.link("root").unwrap_or_default();
        let below_root = text.strip_prefix(&root).map(|below| Path::new("/").join(below));
        let mut candidates = below_root.into_iter().chain([text]);
        candidates.find(|path| self.is_same(path, &there)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Where the target sees a folder or file of ours; `path` has no links.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let there = fs::metadata(path).ok()?;
        if self.is_same(path, &there) {
            return Some(path.to_owned());
        }
        let read = |of: &ProcDir| of.read("mountinfo").map(|text| mounts::parse(&text)).unwrap_or_default();
        let places = mounts::places(&read(&self.me), &read(&self.dir), path);
        places.into_iter().find(|place| self.is_same(place, &there))
    }

    /// Whether a path of the target leads to what we know.
    fn is_same(&self, path: &Path, there: &Metadata) -> bool {
        let found = self.root.open(path, POINT).and_then(|file| File::from(file).metadata());
        found.is_ok_and(|meta| same(&meta, there))
    }
}

/// Does something as another user. To the kernel that is a matter of a thread, so one is started for it.
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

/// Without a folder in it a path is of the working directory.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}
