//! The one door to the files of another process: everything that is opened, listed, dialled, made or removed below
//! `/proc/PID/root` or `/proc/PID/cwd` goes through a descriptor of that folder, and nothing leaves it.
//!
//! To put `/proc/PID/root` before a path is an attack waiting to happen: an absolute symbolic link inside leads to *our*
//! file of that name, and whoever owns the container may exchange a folder for a link while we look. So links are
//! resolved by the kernel within that root (`openat2`), or by our own steps from descriptor to descriptor where the
//! kernel does not know the call; links of `/proc` that lead elsewhere (`/proc/self/root`) are never followed. The same
//! holds for paths in our own file system that another process names, as its `TMPDIR`.
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

/// A folder, or anything else, that is only pointed at.
pub const POINT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// How often a look-up is tried again that a rename somewhere has disturbed.
const MAX_RETRIES: usize = 16;

/// The root directory of a process, held by a descriptor. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Root {
    folder: Arc<OwnedFd>,
}

impl Root {
    /// Our own.
    ///
    /// # Errors
    /// Those of opening `/`.
    pub fn ours() -> io::Result<Self> {
        Ok(Self::opened(rustix::fs::openat(CWD, "/", POINT | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// The folder behind a descriptor.
    pub fn opened(folder: OwnedFd) -> Self {
        Self { folder: Arc::new(folder) }
    }

    /// Opens what lies at an absolute path of this root. Relative ones count from the root, too.
    ///
    /// # Errors
    /// As opening has; never for a reason outside of the root.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.folder.as_fd(), path, flags, ResolveFlags::IN_ROOT)
    }

    /// The same where no link is on the way: that takes no longer than the path is.
    ///
    /// # Errors
    /// As opening has, and ELOOP for a link.
    pub fn open_no_symlinks(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.folder.as_fd(), path, flags, ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS)
    }

    /// Points at a folder, and shows all folders and links on the way to it to `visit`: the root first, the folder itself
    /// last.
    ///
    /// # Errors
    /// As opening has, and those of `visit`.
    pub fn folder_by(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(&Stat) -> io::Result<()>,
    ) -> io::Result<OwnedFd> {
        walk::open(self.folder.as_fd(), path, POINT | OFlags::DIRECTORY, visit)
    }
}

/// Opens what lies below a folder; a path that leads out of it is an error.
///
/// # Errors
/// As opening has, and EXDEV for a path that leads out.
pub fn open_beneath(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    open_below(folder, path, flags, ResolveFlags::BENEATH)
}

/// The same where no link is on the way.
///
/// # Errors
/// As opening has, EXDEV for a path that leads out, and ELOOP for a link.
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
            // Linux before 5.6, or a filter of system calls that does not know it: then our own steps must do.
            Err(Errno::NOSYS | Errno::PERM) => break,
            opened => return Ok(opened?),
        }
    }
    if how.contains(ResolveFlags::BENEATH) && leads_up(path) {
        return Err(Errno::XDEV.into());
    }
    // An absolute link leads into the folder here, where the kernel would refuse it: it stays inside all the same.
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

/// Opens what lies at a path that somebody gave us. Links are followed, those of `/proc` too; but what is below the root
/// of another process is resolved there.
///
/// # Errors
/// As opening has.
pub(crate) fn open_named(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match within(path) {
        Some((pid, below)) => ProcDir::open(Path::new("/proc"), pid)?.root()?.open(&below, flags),
        None => Ok(rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?),
    }
}

/// Points at a folder that lies at an absolute path which somebody gave us, and notes the way there. Links of `/proc` are
/// not followed.
///
/// # Errors
/// As opening has.
pub(crate) fn folder_by(path: &Path, way: &mut PathCheck) -> io::Result<OwnedFd> {
    let mut pass = |entry: &Stat| {
        way.pass(entry);
        Ok(())
    };
    match within(path) {
        Some((pid, below)) => ProcDir::open(Path::new("/proc"), pid)?.root()?.folder_by(&below, &mut pass),
        None => Root::ours()?.folder_by(path, &mut pass),
    }
}

/// `/proc/PID/root/PATH` in parts.
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

/// What kind of thing a descriptor leads to.
///
/// # Errors
/// As `fstat` has.
pub(crate) fn kind(file: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// The path of a descriptor of ours, for system calls that take no descriptor.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways to resolve, on the same tree: what one opens the other opens.
    #[test]
    fn our_own_steps_lead_where_the_kernel_does() {
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
                // The kernel knows no empty path; here it is the folder.
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
    fn paths_below_another_root() {
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
    fn links_of_proc_lead_nowhere() {
        let ours = Root::ours().unwrap();
        for path in ["/proc/self/root/etc", "/proc/self/cwd", "/proc/thread-self/exe"] {
            let error = ours.open(Path::new(path), POINT).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()), "{path}: {error}");
        }
        assert!(ours.open(Path::new("/proc/self/status"), OFlags::RDONLY).is_ok());
    }

    #[test]
    fn what_is_beneath_stays_there() {
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
