//! Where the path of an output leads: the folder and the name in it, with every link on the way followed by our own
//! steps, so that nobody else's link leads root into a file that it would destroy.
//!
//! The kernel has a rule of this kind, `fs.protected_symlinks`. It may be switched off, as it is where the kernel is
//! left as it comes, and holds only in folders with the sticky bit. Ours: where anybody but us and root can write
//! ([`is_shared`]) no link is followed and no pipe or device is opened, whoever owns it; elsewhere root follows its own
//! links alone. Refuses to change anything that is there.
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
use crate::output::system::{self, FOLDER, Seen, Thing};

/// As the kernel has it.
const MOST_LINKS: usize = 40;

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Lead {
    /// A name in a folder; an ordinary file may be there.
    Name(Place),
    /// Something that is written to as it is: a device, a pipe, an open file of ours, a file with a mount of its own.
    AsItIs(File),
}

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
    /// Mode of the file that is there, if it is an ordinary one, and if nobody but us can have put it there.
    pub(crate) mode: Option<Mode>,
}

/// A folder that stays the one it is, whatever becomes of its path.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) fd: Arc<OwnedFd>,
    /// How it was reached, for messages.
    pub(crate) path: PathBuf,
}

impl Lead {
    /// Follows a path, of which all but the last name has to be there.
    ///
    /// # Errors
    /// It leads nowhere, to a folder, to what we may not write to, or over a link that is not followed.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        Walk::new(path)?.into_lead()
    }
}

impl Folder {
    /// Follows the path of a folder; the empty one is the working directory.
    ///
    /// # Errors
    /// It is not there, is no folder, or lies behind a link that is not followed.
    pub(crate) fn of(path: &Path) -> Result<Self, Cause> {
        let mut walk = Walk::new(path)?;
        while let Some(name) = walk.pending.pop() {
            walk.step(&name)?;
        }
        walk.here()
    }
}

impl Folder {
    /// The same, and makes what is missing, for everybody whom the process's mask lets in, or for us alone.
    ///
    /// # Errors
    /// Those of [`of`](Self::of), and a folder that can't be made.
    pub(crate) fn made(path: &Path, is_private: bool) -> Result<Self, Cause> {
        let mode = if is_private { Mode::RWXU } else { Mode::RWXU | Mode::RWXG | Mode::RWXO };
        let mut walk = Walk::new(path)?;
        while let Some(name) = walk.pending.pop() {
            if name != ".." && matches!(walk.look(&name)?, Seen::Nothing) {
                match rustix::fs::mkdirat(&walk.at()?.fd, &name, mode) {
                    // Somebody else was first; what it is shows in the next step.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            walk.step(&name)?;
        }
        walk.here()
    }
}

/// A path that is being followed.
struct Walk {
    /// Where links with a slash in front begin: our root, or that of the process whose `/proc/PID/root` was passed.
    /// `None` behind `/proc/PID/cwd` and the like, where nobody can say.
    root: Option<Folder>,
    /// What is called `/proc` there is no authority for us.
    is_elsewhere: bool,
    /// The owner of our root. Inside a user namespace that may be a number which stands for everybody outside.
    system: u32,
    /// The folders on the way here; the first is where `..` ends, or is asked of the kernel.
    stack: Vec<Folder>,
    begins_at_root: bool,
    /// The last one is the next.
    pending: Vec<OsString>,
    /// A slash at the end, of the path or of the link that its last name is: only a folder is meant.
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

    /// Puts the names of a path before those that are still to come.
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

    fn here(mut self) -> Result<Folder, Cause> {
        self.stack.pop().ok_or_else(|| Errno::NOENT.into())
    }

    fn into_lead(mut self) -> Result<Lead, Cause> {
        while let Some(name) = self.pending.pop() {
            if !self.pending.is_empty() || name == ".." {
                self.step(&name)?;
                continue;
            }
            let path = self.at()?.path.join(&name);
            match self.look(&name)? {
                Seen::Nothing if self.means_folder => return Err(Cause::NoFolder(path)),
                Seen::MagicLink | Seen::Other(..) if self.means_folder => {
                    return Err(Cause::NotAFolder(path));
                }
                Seen::Nothing => return Ok(Lead::Name(Place { folder: self.here()?, name, mode: None })),
                Seen::Link => self.follow(&name)?,
                Seen::MagicLink => {
                    // Of another process it leads to what that has open, for whatever it may do there.
                    if self.is_elsewhere || !system::has_own_descriptors(&self.at()?.path) {
                        return Err(Cause::Descriptor(path));
                    }
                    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
                    let file = rustix::fs::openat(&self.at()?.fd, &name, flags, Mode::empty())?;
                    return Ok(Lead::AsItIs(file.into()));
                }
                Seen::Folder(_) => return Err(Errno::ISDIR.into()),
                Seen::Other(thing) => return self.there(name, &thing, &path),
            }
        }
        Err(Errno::ISDIR.into())
    }

    /// Goes into a folder, or follows the link to one.
    fn step(&mut self, name: &OsStr) -> Result<(), Cause> {
        if name == ".." {
            return Ok(self.up()?);
        }
        let path = self.at()?.path.join(name);
        match self.look(name).map_err(|error| Cause::At { path: path.clone(), error })? {
            Seen::Folder(fd) => self.stack.push(Folder { fd: Arc::new(fd), path }),
            Seen::Link => self.follow(name)?,
            Seen::MagicLink => {
                let fd = rustix::fs::openat(&self.at()?.fd, name, FOLDER, Mode::empty())?;
                let there = Folder { fd: Arc::new(fd), path };
                self.begins_at_root = name == "root";
                // What a link in a container calls `/` is not ours.
                if self.begins_at_root {
                    self.root = Some(there.clone());
                    self.is_elsewhere = true;
                } else if name != "self" && name != "thread-self" {
                    self.root = None;
                }
                self.stack = vec![there];
            }
            Seen::Nothing => return Err(Cause::NoFolder(path)),
            Seen::Other(..) => return Err(Cause::NotAFolder(path)),
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

    fn look(&self, name: &OsStr) -> io::Result<Seen> {
        let Folder { fd, path } = self.at()?;
        match system::look(fd, path, name)? {
            Seen::MagicLink if self.is_elsewhere => Err(Errno::LOOP.into()),
            seen => Ok(seen),
        }
    }

    /// Follows a link, if it is one to be followed.
    fn follow(&mut self, name: &OsStr) -> Result<(), Cause> {
        self.links += 1;
        if self.links > MOST_LINKS {
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

    /// Whether others can put something under a name here.
    fn is_shared(&self) -> io::Result<bool> {
        is_shared(&self.at()?.fd, self.system)
    }

    /// Refuses what somebody may have laid for us here. Where others can write, its owner proves nothing.
    fn trust(&self, stat: &Stat, what: &'static str, path: &Path) -> Result<(), Cause> {
        let us = geteuid();
        let is_known = [us.as_raw(), 0, self.system].contains(&stat.st_uid);
        let is_shared = self.is_shared()?;
        if !is_shared && (is_known || !us.is_root()) {
            return Ok(());
        }
        Err(Cause::NotFollowed { path: path.to_owned(), what, owner: stat.st_uid, shared: is_shared })
    }

    /// A file that is there, and no folder or link.
    fn there(self, name: OsString, thing: &Thing, path: &Path) -> Result<Lead, Cause> {
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
            // In a container mounts and devices are where its owner has put them.
            let is_theirs = self.is_elsewhere || self.root.is_none();
            if is_theirs || kind == FileType::RegularFile && !own {
                let (path, owner) = (path.to_owned(), stat.st_uid);
                return Err(Cause::NotOurs { path, what, owner, elsewhere: is_theirs });
            }
            return Ok(Lead::AsItIs(thing.open(&self.at()?.fd, &name)?));
        }
        let folder = self.here()?;
        // It is replaced, not written to; what its owner has closed stays closed all the same.
        rustix::fs::accessat(&folder.fd, &name, Access::WRITE_OK, AtFlags::empty())?;
        let of_folder = rustix::fs::fstat(&folder.fd)?;
        let sticky = Mode::from_raw_mode(of_folder.st_mode).contains(Mode::SVTX);
        if sticky && !own && !us.is_root() && of_folder.st_uid != us.as_raw() {
            return Err(Errno::PERM.into());
        }
        let rights = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        // Who could move a file here, or has it under another name too, may have chosen it for its mode.
        let is_only_ours = own && !is_shared && stat.st_nlink == 1;
        let mode = is_only_ours.then(|| Mode::from_raw_mode(stat.st_mode).intersection(rights));
        Ok(Lead::Name(Place { folder, name, mode }))
    }
}
