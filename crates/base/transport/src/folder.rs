//! A folder that is held by a descriptor: what is made in it and removed from it is in this folder, whatever becomes of its
//! name. And how much of that name others have in their hands.

use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_os::random_u64;
#[cfg(target_os = "linux")]
use rustix::fs::FileType;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, Uid};
#[cfg(target_os = "linux")]
use rustix::io::Errno;

use crate::exposure::Exposure;
use crate::path_check::PathCheck;

#[cfg(target_os = "linux")]
const FOLDER: OFlags = crate::linux::root::POINT.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder that is held by a descriptor. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Folder {
    opened: Arc<OwnedFd>,
    path: PathBuf,
    /// Whether the path is one that we were given, and not another process's.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "binding goes by the path there"))]
    named: bool,
    exposure: Exposure,
    behind_foreign_link: bool,
}

impl Folder {
    /// The folder at a path of ours; links are followed, and below `/proc/PID/root` they stay there. An empty path is the
    /// working directory.
    ///
    /// # Errors
    /// As opening has.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // The working directory may change before the folder is used by its name.
        let absolute = std::path::absolute(path)?;
        let mut way = PathCheck::start();
        #[cfg(target_os = "linux")]
        let (folder, named) = {
            let named = crate::linux::root::within(path).is_none();
            let Ok(folder) = crate::linux::root::folder_by(&absolute, &mut way) else {
                // There may be a way all the same: by a link of /proc, or from a working directory whose path is closed
                // to us. Nothing is known of it then.
                let folder = crate::linux::root::open_named(path, FOLDER)?;
                return Ok(Self { named, ..Self::opened(folder, absolute) });
            };
            (folder, named)
        };
        #[cfg(not(target_os = "linux"))]
        let (folder, named) = {
            let folder = rustix::fs::openat(rustix::fs::CWD, path, FOLDER, Mode::empty())?;
            for folder in std::fs::canonicalize(path)?.ancestors() {
                way.pass(&rustix::fs::stat(folder)?);
            }
            (folder, true)
        };
        Self { named, ..Self::opened(folder, absolute) }.with_exposure_of(&way)
    }

    /// The folder behind a descriptor, and what it is called for people. Of the way there nothing is known.
    pub fn opened(folder: OwnedFd, path: PathBuf) -> Self {
        let opened = Arc::new(folder);
        Self { opened, path, named: false, exposure: Exposure::Open, behind_foreign_link: false }
    }

    /// The same when the way there was looked at.
    pub fn with_exposure_of(self, way: &PathCheck) -> io::Result<Self> {
        let exposure = way.leads_to(&rustix::fs::fstat(&self.opened)?);
        Ok(Self { exposure, behind_foreign_link: way.passes_foreign_link(), ..self })
    }

    /// Makes a folder in this one to which only we may write. Its name is `prefix` and 16 digits that nobody can foresee.
    /// Others may pass through it, or not even that.
    ///
    /// # Errors
    /// `PermissionDenied` in a folder where others take names; else as `mkdirat` has.
    pub fn make_private(&self, prefix: &str, passable: bool) -> io::Result<Self> {
        if self.exposure == Exposure::Open {
            let reason = format!("other users can exchange what is made in {}", self.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        let name = format!("{prefix}{:016x}", random_u64());
        rustix::fs::mkdirat(&self.opened, &name, Mode::RWXU)?;
        // Whatever the umask has taken from it, or an access list of this folder given.
        let mode = if passable { Mode::from_raw_mode(0o711) } else { Mode::RWXU };
        rustix::fs::chmodat(&self.opened, &name, mode, AtFlags::empty())?;
        Ok(Self { named: self.named, exposure: Exposure::Private, ..self.folder(name.as_ref())? })
    }

    /// What it is called. For messages; its descriptor counts.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What other users can do to names in it.
    pub fn exposure(&self) -> Exposure {
        self.exposure
    }

    /// Whether a link of another user was on the way here: it may be laid elsewhere at any moment.
    pub fn is_behind_foreign_link(&self) -> bool {
        self.behind_foreign_link
    }

    /// Its owner.
    ///
    /// # Errors
    /// As `fstat` has.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.opened)?.st_uid)
    }

    /// The same, which is not to be found by its path any more: others could lead that elsewhere.
    pub(crate) fn by_descriptor(&self) -> Self {
        Self { named: false, ..self.clone() }
    }

    /// Whether it was opened by its path, so that whoever wants to find something in it may use that.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_named(&self) -> bool {
        self.named
    }

    /// What an entry is; a link is not followed.
    ///
    /// # Errors
    /// As `fstatat` has.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Whether an entry is a socket on which nobody listens: only then its file is of no use. A link is not followed, and
    /// nothing but a socket is dialled.
    pub fn is_dead_socket(&self, name: &OsStr) -> bool {
        crate::unix::stale_owner(self, name).is_some()
    }

    /// A folder in this one; no link is followed.
    ///
    /// # Errors
    /// As `openat` has.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let opened = rustix::fs::openat(&self.opened, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self::opened(opened, self.path.join(name)))
    }

    /// Opens an ordinary file in it for reading: nothing else, and no link to one. Waits for nobody.
    ///
    /// # Errors
    /// As opening has; ELOOP for a link, and `WouldBlock` while somebody has a lease on the file.
    #[cfg(target_os = "linux")]
    pub fn open_itself(&self, name: &OsStr) -> io::Result<File> {
        let flags = crate::linux::root::POINT | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.opened, name, flags, Mode::empty())?;
        match crate::linux::root::kind(file.as_fd())? {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Errno::LOOP.into()),
            _ => return Err(io::Error::other("it is no ordinary file")),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::open(crate::linux::root::path_of(file.as_fd()), flags, Mode::empty())?.into())
    }

    /// Bytes that are left in its file system.
    ///
    /// # Errors
    /// As `fstatvfs` has.
    pub fn free_space(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.opened)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Removes an empty folder in it.
    ///
    /// # Errors
    /// As `unlinkat` has.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes an entry that is no folder.
    ///
    /// # Errors
    /// As `unlinkat` has.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::empty())?)
    }

    /// Gives an entry to another user; a link itself.
    pub(crate) fn give(&self, name: &OsStr, uid: u32) -> io::Result<()> {
        let owner = Some(Uid::from_raw(uid));
        Ok(rustix::fs::chownat(&self.opened, name, owner, None, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}
