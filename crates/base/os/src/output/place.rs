//! Resolves the path of an output to an open directory and a name in it. Symbolic links are followed explicitly, so
//! that another user's link cannot make root overwrite a file.
//!
//! The kernel has a similar rule, `fs.protected_symlinks`, but it may be disabled and applies only to directories with
//! the sticky bit. The rule here: in directories that users other than the current one and root can write to
//! ([`is_shared`]), no link is followed and no pipe or device is opened, whatever user owns it. In other directories root
//! follows only its own links. This module changes no files.
//! Source: `path_resolution(7)`, `proc(5)`, `proc_sys_fs(5)`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::output::error::Cause;
use crate::output::shared::is_shared;
use crate::output::system::{self, Examined, FOLDER, OtherFile};

/// The kernel's limit.
const MAX_LINKS: usize = 40;

/// The object that a path resolves to.
#[derive(Debug)]
pub(crate) enum ResolvedPath {
    /// A name in a directory, either unused or of a regular file.
    Name(NameInFolder),
    /// An object that is written to directly: a device, a pipe, an open file of this process, or a file that is a mount
    /// point.
    Direct(File),
}

/// A name in an open directory.
#[derive(Debug)]
pub(crate) struct NameInFolder {
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
    /// Mode of the existing regular file, if no other user can have created it.
    pub(crate) mode: Option<Mode>,
}

/// An open directory, which stays valid if it is renamed.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) fd: Arc<OwnedFd>,
    /// Path by which it was reached, for messages.
    pub(crate) path: PathBuf,
}

impl ResolvedPath {
    /// Resolves a path. All components but the last must exist.
    ///
    /// # Errors
    /// If a directory is missing, or the path is a directory, is not writable, or contains a link that is not followed.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        Walk::new(path)?.resolve()
    }
}

impl Folder {
    /// Opens a directory. The empty path is the working directory.
    ///
    /// # Errors
    /// If the path does not exist, is not a directory, or contains a link that is not followed.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        let mut walk = Walk::new(path)?;
        while let Some(name) = walk.pending.pop() {
            walk.step(&name)?;
        }
        walk.into_current_folder()
    }
}

impl Folder {
    /// Opens a directory and creates missing ones, either for the current user only or subject to the umask.
    ///
    /// # Errors
    /// See [`of`](Self::of); also if a directory cannot be created.
    pub(crate) fn made(path: &Path, is_private: bool) -> Result<Self, Cause> {
        let mode = if is_private { Mode::RWXU } else { Mode::RWXU | Mode::RWXG | Mode::RWXO };
        let mut walk = Walk::new(path)?;
        while let Some(name) = walk.pending.pop() {
            if name != ".." && matches!(walk.look(&name)?, Examined::Nothing) {
                match rustix::fs::mkdirat(&walk.at()?.fd, &name, mode) {
                    // Created by another process meanwhile; the next step checks it.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            walk.step(&name)?;
        }
        walk.into_current_folder()
    }
}

/// The state of resolving a path.
struct Walk {
    /// The directory that absolute links are relative to: the root of this process, or of the process whose
    /// `/proc/PID/root` was passed. `None` behind `/proc/PID/cwd` and the like, where it is unknown.
    root: Option<Folder>,
    /// Whether the path is in another process's file system, whose `/proc` must not be trusted.
    is_elsewhere: bool,
    /// Owner of the root directory. In a user namespace this may be the overflow id, which stands for all users
    /// outside.
    system: u32,
    /// The directories passed so far. `..` in the first one is resolved by the kernel, unless it is the root.
    stack: Vec<Folder>,
    begins_at_root: bool,
    /// The remaining components in reverse order.
    pending: Vec<OsString>,
    /// Whether the path, or the link that its last component is, ends with a slash: it must be a directory.
    means_folder: bool,
    links: usize,
}

impl Walk {
    fn new(path: &Path) -> io::Result<Self> {
        let root = Arc::new(rustix::fs::open("/", FOLDER, Mode::empty())?);
        let (fd, start) = if path.is_absolute() {
            (Arc::clone(&root), "/")
        } else {
            (Arc::new(rustix::fs::openat(CWD, ".", FOLDER, Mode::empty())?), "")
        };
        let first = Folder { fd, path: start.into() };
        let mut walk = Self {
            system: rustix::fs::fstat(&root)?.st_uid,
            root: Some(Folder { fd: root, path: "/".into() }),
            is_elsewhere: false,
            stack: vec![first],
            begins_at_root: path.is_absolute(),
            pending: Vec::new(),
            means_folder: false,
            links: 0,
        };
        walk.push(path);
        Ok(walk)
    }

    /// Adds the components of a path before the remaining ones.
    fn push(&mut self, path: &Path) {
        let text = path.as_os_str().as_bytes();
        self.means_folder |= self.pending.is_empty() && (text.ends_with(b"/") || text.ends_with(b"/."));
        let name = |component: Component<'_>| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsStr::new("..").to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        };
        self.pending.extend(path.components().rev().filter_map(name));
    }

    fn at(&self) -> io::Result<&Folder> {
        self.stack.last().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn into_current_folder(mut self) -> Result<Folder, Cause> {
        self.stack.pop().ok_or_else(|| Errno::NOENT.into())
    }

    fn resolve(mut self) -> Result<ResolvedPath, Cause> {
        while let Some(name) = self.pending.pop() {
            if !self.pending.is_empty() || name == ".." {
                self.step(&name)?;
                continue;
            }
            let path = self.at()?.path.join(&name);
            match self.look(&name)? {
                Examined::Nothing if self.means_folder => return Err(Cause::MissingDirectory(path)),
                Examined::MagicLink | Examined::Other(..) if self.means_folder => {
                    return Err(Cause::NotADirectory(path));
                }
                Examined::Nothing => {
                    return Ok(ResolvedPath::Name(NameInFolder {
                        folder: self.into_current_folder()?,
                        name,
                        mode: None,
                    }));
                }
                Examined::Link => self.follow(&name)?,
                Examined::MagicLink => {
                    // A descriptor of another process must not be opened.
                    if self.is_elsewhere || !system::has_own_descriptors(&self.at()?.path) {
                        return Err(Cause::Descriptor(path));
                    }
                    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
                    let file = rustix::fs::openat(&self.at()?.fd, &name, flags, Mode::empty())?;
                    return Ok(ResolvedPath::Direct(file.into()));
                }
                Examined::Folder(_) => return Err(Errno::ISDIR.into()),
                Examined::Other(thing) => return self.resolve_existing(name, &thing, &path),
            }
        }
        Err(Errno::ISDIR.into())
    }

    /// Enters a directory, or follows a link to one.
    fn step(&mut self, name: &OsStr) -> Result<(), Cause> {
        if name == ".." {
            return Ok(self.up()?);
        }
        let path = self.at()?.path.join(name);
        match self.look(name).map_err(|error| Cause::Directory { path: path.clone(), error })? {
            Examined::Folder(fd) => self.stack.push(Folder { fd: Arc::new(fd), path }),
            Examined::Link => self.follow(name)?,
            Examined::MagicLink => {
                let fd = rustix::fs::openat(&self.at()?.fd, name, FOLDER, Mode::empty())?;
                let there = Folder { fd: Arc::new(fd), path };
                self.begins_at_root = name == "root";
                // Absolute links in a container are relative to its own root.
                if self.begins_at_root {
                    self.root = Some(there.clone());
                    self.is_elsewhere = true;
                } else if name != "self" && name != "thread-self" {
                    self.root = None;
                }
                self.stack = vec![there];
            }
            Examined::Nothing => return Err(Cause::MissingDirectory(path)),
            Examined::Other(..) => return Err(Cause::NotADirectory(path)),
        }
        Ok(())
    }

    fn up(&mut self) -> io::Result<()> {
        if self.stack.len() > 1 {
            self.stack.pop();
        } else if !self.begins_at_root {
            let here = self.at()?;
            let fd = rustix::fs::openat(&here.fd, "..", FOLDER, Mode::empty())?;
            self.stack = vec![Folder { path: here.path.join(".."), fd: Arc::new(fd) }];
        }
        Ok(())
    }

    fn look(&self, name: &OsStr) -> io::Result<Examined> {
        let Folder { fd, path } = self.at()?;
        match system::look(fd, path, name)? {
            Examined::MagicLink if self.is_elsewhere => Err(Errno::LOOP.into()),
            seen => Ok(seen),
        }
    }

    /// Follows a link if that is allowed.
    fn follow(&mut self, name: &OsStr) -> Result<(), Cause> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let Folder { fd: folder, path } = self.at()?;
        let (stat, text) = system::link(folder, name)?;
        self.trust(&stat, "link", &path.join(name))?;
        let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
        if text.is_absolute() {
            let root = self.root.clone().ok_or(Errno::LOOP)?;
            self.stack = vec![root];
            self.begins_at_root = true;
        }
        self.push(&text);
        Ok(())
    }

    /// Returns whether other users can create entries in the current directory.
    fn is_shared(&self) -> io::Result<bool> {
        is_shared(&self.at()?.fd, self.system)
    }

    /// Rejects objects that other users may have put in the current directory. In a shared directory the owner proves
    /// nothing.
    fn trust(&self, stat: &Stat, what: &'static str, path: &Path) -> Result<(), Cause> {
        let us = geteuid();
        let is_known = [us.as_raw(), 0, self.system].contains(&stat.st_uid);
        let is_shared = self.is_shared()?;
        if !is_shared && (is_known || !us.is_root()) {
            return Ok(());
        }
        Err(Cause::NotFollowed { path: path.to_owned(), what, owner: stat.st_uid, shared: is_shared })
    }

    /// Resolves to an existing object that is neither a directory nor a link.
    fn resolve_existing(self, name: OsString, thing: &OtherFile, path: &Path) -> Result<ResolvedPath, Cause> {
        let stat = &thing.stat;
        let us = geteuid();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let own = stat.st_uid == us.as_raw();
        let is_shared = self.is_shared()?;
        if kind != FileType::RegularFile || thing.is_mount() {
            let what = match kind {
                FileType::Fifo => "pipe",
                FileType::Socket => "socket",
                FileType::RegularFile => "mount",
                _ => "device",
            };
            if kind == FileType::Fifo || is_shared {
                self.trust(stat, what, path)?;
            }
            // In a container, mounts and devices are where its owner put them.
            let is_theirs = self.is_elsewhere || self.root.is_none();
            if is_theirs || kind == FileType::RegularFile && !own {
                let (path, owner) = (path.to_owned(), stat.st_uid);
                return Err(Cause::ForeignOwner { path, what, owner, elsewhere: is_theirs });
            }
            return Ok(ResolvedPath::Direct(thing.open(&self.at()?.fd, &name)?));
        }
        let folder = self.into_current_folder()?;
        // The file is replaced rather than written to, but a read-only file must still be rejected.
        rustix::fs::accessat(&folder.fd, &name, Access::WRITE_OK, AtFlags::empty())?;
        let of_folder = rustix::fs::fstat(&folder.fd)?;
        let sticky = Mode::from_raw_mode(of_folder.st_mode).contains(Mode::SVTX);
        if sticky && !own && !us.is_root() && of_folder.st_uid != us.as_raw() {
            return Err(Errno::PERM.into());
        }
        let rights = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        // Otherwise another user may have moved or hard-linked the file here because of its mode.
        let is_only_ours = own && !is_shared && stat.st_nlink == 1;
        let mode = is_only_ours.then(|| Mode::from_raw_mode(stat.st_mode).intersection(rights));
        Ok(ResolvedPath::Name(NameInFolder { folder, name, mode }))
    }
}
