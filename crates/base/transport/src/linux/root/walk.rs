//! Resolves a path within a directory component by component, through descriptors: for kernels and system call filters
//! without `openat2`, and where every directory on the path must be examined. No component is opened twice, so
//! concurrent changes cannot lead out of the directory; `..` returns to the previous descriptor.
//!
//! Links in `/proc` such as `/proc/self/root` are rejected like with `RESOLVE_NO_MAGICLINKS`, because only the kernel
//! can resolve them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{POINT, path_of};

/// The kernel's limit.
const MAX_LINKS: usize = 40;
/// Maximum number of pending components, which links can increase.
const MAX_PARTS: usize = 4096;
/// `PROC_SUPER_MAGIC`.
const PROC: u64 = 0x9fa0;

/// Opens `path` below `root` and calls `visit` for each directory and link on the path, starting with the root.
///
/// # Errors
/// If the path cannot be opened, or `visit` fails.
pub(super) fn open(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    visit: &mut dyn FnMut(&Stat) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    visit(&rustix::fs::fstat(root)?)?;
    let mut folders: Vec<OwnedFd> = Vec::new();
    // In reverse order.
    let mut pending = parts(path);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            folders.pop();
            continue;
        }
        let here = folders.last().map_or(root, AsFd::as_fd);
        let entry = rustix::fs::openat(here, &part, POINT | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = rustix::fs::fstat(&entry)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_last = pending.is_empty();
        if kind == FileType::Symlink && !(is_last && flags.contains(OFlags::NOFOLLOW)) {
            links += 1;
            visit(&stat)?;
            let link = target_of(&entry, links)?;
            if link.is_absolute() {
                folders.clear();
            }
            pending.extend(parts(&link));
            if pending.len() > MAX_PARTS {
                return Err(Errno::NAMETOOLONG.into());
            }
            continue;
        }
        if kind == FileType::Directory {
            visit(&stat)?;
            folders.push(entry);
        } else if is_last && !wants_folder(path) {
            return finish(entry.as_fd(), kind, flags);
        } else {
            return Err(Errno::NOTDIR.into());
        }
    }
    finish(folders.last().map_or(root, AsFd::as_fd), FileType::Directory, flags)
}

/// Returns whether a path ends with a slash, so that it must be a directory.
fn wants_folder(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn target_of(link: &OwnedFd, followed: usize) -> io::Result<PathBuf> {
    if followed > MAX_LINKS {
        return Err(Errno::LOOP.into());
    }
    // On 32-bit systems the type is signed.
    let in_proc =
        rustix::fs::fstatfs(link).is_ok_and(|it| u64::try_from(it.f_type).is_ok_and(|it| it == PROC));
    let text = rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes();
    // The plain links of `/proc`, such as `self`, are relative.
    if in_proc && text.starts_with(b"/") || text.is_empty() {
        return Err(Errno::LOOP.into());
    }
    Ok(PathBuf::from(OsString::from_vec(text)))
}

/// Reopens an `O_PATH` descriptor with the requested flags.
fn finish(entry: BorrowedFd<'_>, kind: FileType, flags: OFlags) -> io::Result<OwnedFd> {
    if flags.contains(OFlags::DIRECTORY) && kind != FileType::Directory {
        return Err(Errno::NOTDIR.into());
    }
    if flags.contains(OFlags::PATH) {
        return Ok(rustix::io::fcntl_dupfd_cloexec(entry, 0)?);
    }
    if kind == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    // The path of a descriptor is a link itself.
    let flags = flags.difference(OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path_of(entry), flags, Mode::empty())?)
}

/// Returns the components of a path in reverse order, ignoring slashes and dots.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
