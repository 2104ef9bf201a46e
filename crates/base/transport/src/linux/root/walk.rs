//! Resolves a path within a folder step by step, from descriptor to descriptor: for kernels and system call filters
//! without `openat2`, and where every folder on the way has to be looked at. No step is taken by name twice, so nothing
//! that is exchanged meanwhile leads out; `..` goes back to the descriptor that we came from.
//!
//! Links of `/proc` (`/proc/self/root`) are refused as `RESOLVE_NO_MAGICLINKS` does: their text has a meaning for the
//! kernel alone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{POINT, path_of};

/// As the kernel has it.
const MAX_LINKS: usize = 40;
/// A path that links make longer than this leads nowhere.
const MAX_PARTS: usize = 4096;
/// `PROC_SUPER_MAGIC`
const PROC: u64 = 0x9fa0;

/// Opens `path` below `root`. Each folder and link on the way is shown to `visit`, the root first.
///
/// # Errors
/// As opening has, and those of `visit`.
pub(super) fn open(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    visit: &mut dyn FnMut(&Stat) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    visit(&rustix::fs::fstat(root)?)?;
    let mut folders: Vec<OwnedFd> = Vec::new();
    // In reverse: the next one is the last.
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

/// A slash at the end asks for a folder.
fn wants_folder(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn target_of(link: &OwnedFd, followed: usize) -> io::Result<PathBuf> {
    if followed > MAX_LINKS {
        return Err(Errno::LOOP.into());
    }
    // On 32-bit systems the type is signed, and the number fits all the same.
    let in_proc =
        rustix::fs::fstatfs(link).is_ok_and(|it| u64::try_from(it.f_type).is_ok_and(|it| it == PROC));
    let text = rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes();
    // The plain links of /proc itself are relative, as `self`.
    if in_proc && text.starts_with(b"/") || text.is_empty() {
        return Err(Errno::LOOP.into());
    }
    Ok(PathBuf::from(OsString::from_vec(text)))
}

/// From a descriptor that only points at something to one as it is asked for.
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
    // The way through the descriptor is a link itself.
    let flags = flags.difference(OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path_of(entry), flags, Mode::empty())?)
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
