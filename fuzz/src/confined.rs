//! A directory that no write can escape: links are followed as in a container whose root it is. Owns every change that
//! a fuzz target makes to files by names from its input. Does not read files.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

/// The root, as a descriptor.
#[derive(Debug)]
pub struct Root(OwnedFd);

/// The directory of an entry, kept open, and the entry's path through the descriptor, of which only the last part is
/// still resolved.
struct Entry {
    _directory: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens an existing directory. Its path is not resolved again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    /// Those of the system: for example, a file is in the way.
    pub fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut above = PathBuf::new();
        for part in path.components() {
            above.push(part);
            match fs::create_dir(self.entry(&above)?.path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates a file, or replaces its content. A link with this name is not followed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(no_follow)
            .open(self.entry(path)?.path)?;
        io::Write::write_all(&mut file, text)
    }

    /// Creates a stale socket, on which no process listens.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(&self, path: &Path) -> io::Result<()> {
        UnixListener::bind(self.entry(path)?.path).map(drop)
    }

    /// Creates a link, which may have any target.
    ///
    /// # Errors
    /// Those of the system.
    pub fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        symlink(target, self.entry(path)?.path)
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.entry(path)?.path)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.entry(path)?.path)
    }

    /// Removes a directory and everything below it. Links in it are removed, not followed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(self.entry(path)?.path)
    }

    /// Opens the parent directory of a path, following links only below the root. Fails for `..` and the root itself,
    /// which are not names.
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(&self.0, above, flags, Mode::empty(), how)?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Entry { _directory: directory, path })
    }
}
