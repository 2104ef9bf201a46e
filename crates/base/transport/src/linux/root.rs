//! Safe access to the files of other processes: everything below `/proc/PID/root` or `/proc/PID/cwd` is opened, listed,
//! connected to, created and removed through a descriptor of that directory, and paths cannot leave it.
//!
//! Prefixing paths with `/proc/PID/root` would be unsafe: an absolute symbolic link inside leads to a file of *this*
//! process's root, and the owner of the container can replace a directory with a link at any time. So links are
//! resolved by the kernel within that root (`openat2`), or component by component through descriptors if the kernel
//! does not support that call. Links in `/proc` that lead elsewhere (`/proc/self/root`) are never followed. This also
//! applies to paths in our own file system that come from another process, such as its `TMPDIR`.
//! Source: `openat2(2)`, `path_resolution(7)`, `proc(5)`.

mod walk;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::process::ProcDir;
use crate::path_check::PathCheck;

/// Flags for opening a file or directory without access to its contents (`O_PATH`).
pub const POINT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Maximum number of retries of a look-up that was disturbed by a concurrent rename.
const MAX_RETRIES: usize = 16;

/// The open root directory of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Root {
    folder: Arc<OwnedFd>,
}

impl Root {
    /// Opens the root directory of this process.
    ///
    /// # Errors
    /// If `/` cannot be opened.
    pub fn own() -> io::Result<Self> {
        Ok(Self::opened(rustix::fs::openat(CWD, "/", POINT | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Creates a root from an open directory.
    pub fn opened(folder: OwnedFd) -> Self {
        Self { folder: Arc::new(folder) }
    }

    /// Opens a path in this root. Relative paths are relative to the root.
    ///
    /// # Errors
    /// If the path cannot be opened. Nothing outside of the root is accessed.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.folder.as_fd(), path, flags, ResolveFlags::IN_ROOT)
    }

    /// Opens a path in this root that contains no symbolic link, so that the time depends only on the length of the
    /// path.
    ///
    /// # Errors
    /// If the path cannot be opened; `ELOOP` for a symbolic link.
    pub fn open_no_symlinks(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.folder.as_fd(), path, flags, ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS)
    }

    /// Opens a directory and calls `visit` for all directories and links on the path, from the root to the directory
    /// itself.
    ///
    /// If the directory cannot be opened, or `visit` fails.
    /// As opening has, and those of `visit`.
    pub fn folder_by(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(&Stat) -> io::Result<()>,
    ) -> io::Result<OwnedFd> {
        walk::open(self.folder.as_fd(), path, POINT | OFlags::DIRECTORY, visit)
    }
}

/// Opens a path below a directory.
///
/// # Errors
/// If the path cannot be opened; `EXDEV` if it leads out of the directory.
pub fn open_beneath(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    open_below(folder, path, flags, ResolveFlags::BENEATH)
}

/// Opens a path below a directory if it contains no symbolic link.
///
/// # Errors
/// If the path cannot be opened; `EXDEV` if it leads out of the directory, `ELOOP` for a symbolic link.
pub(crate) fn open_beneath_no_symlinks(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    open_below(folder, path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn open_below(folder: BorrowedFd<'_>, path: &Path, flags: OFlags, how: ResolveFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    for _ in 0..MAX_RETRIES {
        match rustix::fs::openat2(folder, path, flags, Mode::empty(), how | ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Linux before 5.6, or a system call filter that does not know the call: walk the path instead.
            Err(Errno::NOSYS | Errno::PERM) => break,
            opened => return Ok(opened?),
        }
    }
    if how.contains(ResolveFlags::BENEATH) && leads_up(path) {
        return Err(Errno::XDEV.into());
    }
    // Unlike in the kernel, absolute links are resolved within the directory.
    let follows = !how.contains(ResolveFlags::NO_SYMLINKS);
    walk::open(folder, path, flags, &mut |entry| if follows { Ok(()) } else { no_link(entry) })
}

fn no_link(entry: &Stat) -> io::Result<()> {
    let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
    if is_link { Err(Errno::LOOP.into()) } else { Ok(()) }
}

fn leads_up(path: &Path) -> bool {
    path.components().any(|part| matches!(part, Component::ParentDir | Component::RootDir))
}

/// Opens a path specified by the user. Symbolic links are followed, including those in `/proc`, but a path below the
/// root of another process is resolved within that root.
///
/// # Errors
/// If the path cannot be opened.
pub(crate) fn open_named(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match within(path) {
        Some((pid, below)) => ProcDir::open(Path::new("/proc"), pid)?.root()?.open(&below, flags),
        None => Ok(rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?),
    }
}

/// Opens a directory with an absolute path specified by the user, and records the components of the path. Links in
/// `/proc` are not followed.
///
/// # Errors
/// If the directory cannot be opened.
pub(crate) fn folder_by(path: &Path, way: &mut PathCheck) -> io::Result<OwnedFd> {
    let mut pass = |entry: &Stat| {
        way.pass(entry);
        Ok(())
    };
    match within(path) {
        Some((pid, below)) => ProcDir::open(Path::new("/proc"), pid)?.root()?.folder_by(&below, &mut pass),
        None => Root::own()?.folder_by(path, &mut pass),
    }
}

/// Splits `/proc/PID/root/PATH` into the process id and the absolute path in its root.
pub(crate) fn within(path: &Path) -> Option<(u32, PathBuf)> {
    let mut parts = path.components();
    if parts.next()? != Component::RootDir || parts.next()? != Component::Normal("proc".as_ref()) {
        return None;
    }
    let Component::Normal(pid) = parts.next()? else { return None };
    let pid = pid.to_str()?.parse().ok()?;
    let root = parts.next()? == Component::Normal("root".as_ref());
    root.then(|| (pid, Path::new("/").join(parts.as_path())))
}

/// Returns the type of an open file.
///
/// # Errors
/// If `fstat` fails.
pub(crate) fn kind(file: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// Returns a path that refers to an open descriptor, for system calls that take no descriptor.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Compares both implementations on the same directory tree.
    #[test]
    fn walking_a_path_leads_where_the_kernel_does() {
        let dir = tempfile::tempdir().unwrap();
        let inside = |path: &str| dir.path().join("root").join(path);
        for folder in ["etc", "run/app", "var"] {
            fs::create_dir_all(inside(folder)).unwrap();
        }
        fs::write(inside("etc/passwd"), "theirs").unwrap();
        fs::write(dir.path().join("outside"), "ours").unwrap();
        symlink("/run", inside("var/run")).unwrap();
        symlink("../../../../../etc/passwd", inside("run/app/up")).unwrap();
        symlink("/etc/passwd", inside("run/app/absolute")).unwrap();
        symlink(dir.path().join("outside"), inside("run/app/host")).unwrap();
        symlink("b", inside("a")).unwrap();
        symlink("/a", inside("b")).unwrap();
        symlink("/proc/self/root", inside("magic")).unwrap();
        let folder = rustix::fs::open(inside(""), POINT | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let paths = [
            "/",
            "",
            ".",
            "..",
            "/../..",
            "etc",
            "/etc/passwd",
            "etc/passwd/",
            "/etc/passwd/below",
            "/../../etc/./passwd",
            "/var/run/app/up",
            "/run/app/absolute",
            "/run/app/../app/absolute",
            "/run/app/host",
            "/none",
            "/none/..",
            "/a",
            "/a/x",
            "/magic/etc/passwd",
        ];
        for path in paths {
            for flags in [OFlags::RDONLY | OFlags::NONBLOCK, POINT, POINT | OFlags::NOFOLLOW] {
                let kernel = open_below(folder.as_fd(), Path::new(path), flags, ResolveFlags::IN_ROOT);
                let walked = walk::open(folder.as_fd(), Path::new(path), flags, &mut |_| Ok(()));
                let told = |opened: io::Result<OwnedFd>| match opened {
                    Ok(file) => {
                        let stat = rustix::fs::fstat(file).unwrap();
                        Ok((stat.st_dev, stat.st_ino))
                    }
                    Err(error) => Err(error.raw_os_error()),
                };
                // The kernel rejects empty paths; here they refer to the directory.
                if !path.is_empty() {
                    assert_eq!(told(walked), told(kernel), "{path} {flags:?}");
                }
                let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
                let kernel = open_below(folder.as_fd(), Path::new(path), flags, how);
                let walked = walk::open(folder.as_fd(), Path::new(path), flags, &mut no_link);
                if !path.is_empty() {
                    assert_eq!(told(walked), told(kernel), "without links: {path} {flags:?}");
                }
            }
        }
    }

    #[test]
    fn paths_below_another_root_are_split() {
        let split = |path: &str| within(Path::new(path));
        assert_eq!(split("/proc/42/root/tmp/x"), Some((42, "/tmp/x".into())));
        assert_eq!(split("/proc/42/root"), Some((42, "/".into())));
        for other in
            ["/proc/self/root/tmp", "/proc/42/cwd/x", "/tmp/proc/42/root/x", "proc/42/root/x", "/", ""]
        {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn magic_links_of_proc_are_rejected() {
        let ours = Root::own().unwrap();
        for path in ["/proc/self/root/etc", "/proc/self/cwd", "/proc/thread-self/exe"] {
            let error = ours.open(Path::new(path), POINT).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()), "{path}: {error}");
        }
        assert!(ours.open(Path::new("/proc/self/status"), OFlags::RDONLY).is_ok());
    }

    #[test]
    fn paths_that_leave_the_directory_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("/etc", dir.path().join("a/out")).unwrap();
        let folder =
            rustix::fs::open(dir.path().join("a"), POINT | OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert!(open_beneath(folder.as_fd(), Path::new("b"), POINT).is_ok());
        for path in ["..", "b/../..", "/etc", "out/passwd"] {
            assert!(open_beneath(folder.as_fd(), Path::new(path), POINT).is_err(), "{path}");
        }
    }
}
