//! An open directory: operations on its entries work even if it is renamed. Also determines what other users can do to
//! its entries.

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

/// An open directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Folder {
    opened: Arc<OwnedFd>,
    path: PathBuf,
    /// Whether the path is valid in the file system of this process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "binding goes by the path there"))]
    named: bool,
    exposure: Exposure,
    behind_foreign_link: bool,
}

impl Folder {
    /// Opens a directory. Symbolic links are followed; below `/proc/PID/root` they are resolved within that root. An
    /// empty path is the working directory.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // The working directory may change before the folder is used by its name.
        let absolute = std::path::absolute(path)?;
        let mut way = PathCheck::start();
        #[cfg(target_os = "linux")]
        let (folder, named) = {
            let named = crate::linux::root::within(path).is_none();
            let Ok(folder) = crate::linux::root::folder_by(&absolute, &mut way) else {
                // The directory may still be accessible through a link in `/proc`, or from a working directory whose
                // path is inaccessible. The exposure is then unknown.
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

    /// Creates a folder from an open directory and a path for messages. The exposure is unknown and assumed to be
    /// [`Exposure::Open`].
    pub fn opened(folder: OwnedFd, path: PathBuf) -> Self {
        let opened = Arc::new(folder);
        Self { opened, path, named: false, exposure: Exposure::Open, behind_foreign_link: false }
    }

    /// Sets the exposure according to the components of the path.
    pub fn with_exposure_of(self, way: &PathCheck) -> io::Result<Self> {
        let exposure = way.leads_to(&rustix::fs::fstat(&self.opened)?);
        Ok(Self { exposure, behind_foreign_link: way.passes_foreign_link(), ..self })
    }

    /// Creates a subdirectory that only the current user can write to, named `prefix` followed by 16 unpredictable
    /// digits. Other users can pass through it if `passable`.
    ///
    /// # Errors
    /// `PermissionDenied` if other users can replace names in this directory, or the error of `mkdirat`.
    pub fn make_private(&self, prefix: &str, passable: bool) -> io::Result<Self> {
        if self.exposure == Exposure::Open {
            let reason = format!("other users can replace files in {}", self.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        let name = format!("{prefix}{:016x}", random_u64());
        rustix::fs::mkdirat(&self.opened, &name, Mode::RWXU)?;
        // Overrides the umask and inherited access lists.
        let mode = if passable { Mode::from_raw_mode(0o711) } else { Mode::RWXU };
        rustix::fs::chmodat(&self.opened, &name, mode, AtFlags::empty())?;
        Ok(Self { named: self.named, exposure: Exposure::Private, ..self.folder(name.as_ref())? })
    }

    /// Returns the path, for messages. Operations use the descriptor.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what other users can do to names in this directory.
    pub fn exposure(&self) -> Exposure {
        self.exposure
    }

    /// Returns whether the path contains a symbolic link of another user, who can change its target at any time.
    pub fn is_behind_foreign_link(&self) -> bool {
        self.behind_foreign_link
    }

    /// Returns the user id of the owner.
    ///
    /// # Errors
    /// If `fstat` fails.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.opened)?.st_uid)
    }

    /// Returns a copy that is not accessed by its path, which other users may be able to redirect.
    pub(crate) fn by_descriptor(&self) -> Self {
        Self { named: false, ..self.clone() }
    }

    /// Returns whether entries can be accessed by the path.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_named(&self) -> bool {
        self.named
    }

    /// Returns the metadata of an entry without following a symbolic link.
    ///
    /// # Errors
    /// If `fstatat` fails.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns whether an entry is a socket that no process listens on, so that its file is useless. Does not follow
    /// symbolic links, and connects to nothing but sockets.
    pub fn is_dead_socket(&self, name: &OsStr) -> bool {
        crate::unix::stale_owner(self, name).is_some()
    }

    /// Opens a subdirectory without following a symbolic link.
    ///
    /// # Errors
    /// If `openat` fails.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let opened = rustix::fs::openat(&self.opened, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self::opened(opened, self.path.join(name)))
    }

    /// Opens a regular file for reading. Does not follow symbolic links and does not block.
    ///
    /// # Errors
    /// If the file cannot be opened; `ELOOP` for a symbolic link, `WouldBlock` if a process holds a lease on the file.
    #[cfg(target_os = "linux")]
    pub fn open_itself(&self, name: &OsStr) -> io::Result<File> {
        let flags = crate::linux::root::POINT | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.opened, name, flags, Mode::empty())?;
        match crate::linux::root::kind(file.as_fd())? {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Errno::LOOP.into()),
            _ => return Err(io::Error::other("it is not a regular file")),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::open(crate::linux::root::path_of(file.as_fd()), flags, Mode::empty())?.into())
    }

    /// Returns the number of free bytes in its file system.
    ///
    /// # Errors
    /// If `fstatvfs` fails.
    pub fn free_space(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.opened)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Removes an empty subdirectory.
    ///
    /// # Errors
    /// If `unlinkat` fails.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes an entry that is not a directory.
    ///
    /// # Errors
    /// If `unlinkat` fails.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::empty())?)
    }

    /// Changes the owner of an entry, without following a symbolic link.
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
