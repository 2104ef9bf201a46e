//! How paths translate between us and a process that may have other mounts or another root directory (a container).
//!
//! Three things go wrong when `/proc/PID/root` is simply put before a path, and this file is there to get them right:
//! an absolute symbolic link inside would lead to *our* file of that name; a folder that both sides see may have
//! another path over there; and whoever owns the container may exchange a folder for a link while we look. So links
//! are followed in the process's own root, paths are compared by what lies there, and files are opened by the kernel
//! within that root. Refuses to write: the only change it makes is [`FileView::remove_file`].
//! Source: `proc(5)`, `path_resolution(7)`, `openat2(2)`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::gather::permits;
use super::linux::ProcDir;
use super::mounts;
use super::naming::temp_dir;

/// As the kernel has it.
const MOST_LINKS: usize = 40;

/// The file system as one process sees it. Paths *of the target* are those that the process itself would use, and
/// the ones to send to its runtime; paths *of ours* are those that we can open.
#[derive(Debug, Clone)]
pub struct FileView {
    dir: ProcDir,
    me: ProcDir,
    foreign: bool,
}

impl FileView {
    pub(super) fn new(proc_root: &Path, pid: u32) -> io::Result<Self> {
        let dir = ProcDir::new(proc_root, pid.to_string());
        let me = ProcDir::new(proc_root, "self");
        let namespace = |of: &ProcDir| fs::read_link(of.join("ns/mnt"));
        // A `chroot` is told by the link's text: it is where the root lies below ours.
        let foreign =
            namespace(&dir)? != namespace(&me)? || fs::read_link(dir.join("root"))? != Path::new("/");
        Ok(Self { dir, me, foreign })
    }

    /// Whether its paths are other ones than ours.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The temporary directory of its runtime, as the target sees it: TMPDIR, else `/tmp`. A relative TMPDIR is told
    /// from its working directory.
    ///
    /// # Errors
    /// When its environment can't be read.
    pub fn temp_dir(&self) -> io::Result<PathBuf> {
        let path = temp_dir(self.dir.environment()?.tmpdir.as_deref());
        Ok(if path.is_relative() { self.working_directory()?.join(path) } else { path })
    }

    /// A path of the target as one that we can open. Links are followed as the target would follow them; what does
    /// not exist (a file that shall be made) is kept as it is. A relative path is taken from the target's working
    /// directory. For reading prefer [`open`](Self::open), which cannot be led astray meanwhile.
    ///
    /// # Errors
    /// When we may not look there, or links go round in a circle.
    pub fn to_host(&self, path: &Path) -> io::Result<PathBuf> {
        let absolute = self.absolute(path);
        match absolute {
            Some(path) if self.foreign => self.follow(&path),
            Some(path) => Ok(path),
            // From a working directory that is outside its root nothing can be followed.
            None => Ok(self.dir.join("cwd").join(path)),
        }
    }

    /// A path of ours as the target has to be told it; `None` if what lies there can't be seen by the target. The
    /// file itself need not exist, its folder must. A relative path is taken from our working directory.
    ///
    /// # Errors
    /// When the folder does not exist, or we may not look there.
    pub fn to_target(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let absolute = std::path::absolute(path)?;
        if !self.foreign {
            return Ok(Some(absolute));
        }
        if let Ok(below) = absolute.strip_prefix(self.dir.join("root")) {
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
        let file = File::from(self.open_with(path, OFlags::PATH)?);
        let meta = file.metadata()?;
        let allowed = match self.dir.status() {
            Some(status) => permits(&meta, &status, 0o1),
            None => meta.mode() & 0o111 != 0,
        };
        let no_exec =
            rustix::fs::fstatvfs(&file).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOEXEC));
        Ok(meta.is_file() && allowed && !no_exec)
    }

    /// Whether the target could write to a file, or make one in a folder: by modes and owners, also of the folders on the
    /// way there, and by how its file system is mounted. Access lists and quotas are not looked at.
    ///
    /// # Errors
    /// As opening has.
    pub fn is_writable(&self, path: &Path) -> io::Result<bool> {
        let file = File::from(self.open_with(path, OFlags::PATH)?);
        let meta = file.metadata()?;
        let status = self.dir.status().ok_or(io::ErrorKind::NotFound)?;
        let read_only =
            rustix::fs::fstatvfs(&file).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
        let passable = |folder: &Path| self.metadata(folder).is_ok_and(|meta| permits(&meta, &status, 0o1));
        let rights = if meta.is_dir() { 0o3 } else { 0o2 };
        Ok(!read_only && permits(&meta, &status, rights) && path.ancestors().skip(1).all(passable))
    }

    /// Bytes that are left where a file or folder of the target is.
    ///
    /// # Errors
    /// As opening has.
    pub fn free_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(self.open_with(path, OFlags::PATH)?)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Removes a file of the target, or a link itself: what it made for us and we have copied.
    ///
    /// # Errors
    /// As removing has.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = self.open_with(parent.unwrap_or_else(|| Path::new(".")), flags)?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let (true, Some(absolute)) = (self.foreign, self.absolute(path)) else {
            return Ok(rustix::fs::open(self.to_host(path)?, flags, Mode::empty())?);
        };
        let root = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.dir.join("root"), root, Mode::empty())?;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&root, &absolute, flags, Mode::empty(), within) {
            // Linux before 5.6, or a filter of system calls that does not know it: then our own steps must do.
            Err(Errno::NOSYS | Errno::PERM) => {
                Ok(rustix::fs::open(self.follow(&absolute)?, flags | OFlags::NOFOLLOW, Mode::empty())?)
            }
            opened => Ok(opened?),
        }
    }

    /// The target's absolute path; `None` for a relative one whose base can't be told.
    fn absolute(&self, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        Some(self.working_directory().ok()?.join(path))
    }

    /// The target's working directory as it sees it. The link's text is its path below the root of its mount
    /// namespace, or of ours: only a look can tell whether that is the target's path too.
    fn working_directory(&self) -> io::Result<PathBuf> {
        let link = self.dir.join("cwd");
        let text = fs::read_link(&link)?;
        let there = fs::metadata(&link)?;
        let root = fs::read_link(self.dir.join("root")).unwrap_or_default();
        let below_root = text.strip_prefix(&root).map(|below| Path::new("/").join(below));
        let mut candidates = below_root.into_iter().chain([text]);
        let seen = |path: &PathBuf| {
            let host = if self.foreign { self.follow(path).ok() } else { Some(path.clone()) };
            host.and_then(|host| fs::metadata(host).ok()).is_some_and(|meta| same(&meta, &there))
        };
        candidates.find(seen).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Follows all links of an absolute path of the target, below its root.
    fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        let root = self.dir.join("root");
        // In reverse: the next one is the last.
        let mut pending = parts(path);
        let mut followed = PathBuf::new();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            if part == ".." {
                followed.pop();
                continue;
            }
            match fs::read_link(root.join(&followed).join(&part)) {
                Ok(link) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    if link.is_absolute() {
                        followed.clear();
                    }
                    pending.extend(parts(&link));
                }
                // No link, or not there.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) =>
                {
                    followed.push(part);
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => followed.push(part),
                Err(error) => return Err(error),
            }
        }
        Ok(root.join(followed))
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
        self.metadata(path).is_ok_and(|meta| same(&meta, there))
    }
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// The names in a path, the last one first. Slashes and dots have no meaning.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
