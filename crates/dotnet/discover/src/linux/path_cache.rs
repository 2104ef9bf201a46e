//! Resolves the paths of other processes within a time limit. Processes choose these paths, and one with forty links of thousands of
//! parts each takes a hundred times as long as one without. Each directory is opened once for all names in it, each name is examined
//! once, and the time spent on links is limited per user.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use runtap_transport::linux::{Location, POINT, ProcDir};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::budget::UserBudgets;
use super::listings::{Identity, identity_of};
use crate::rank::{FileStatus, SocketFile};

/// The microseconds that are spent on paths with links. An ordinary path takes a few.
const MAX_MICROS: u64 = 1_000_000;

type Opened = (OwnedFd, Identity);

/// The paths that a search has resolved.
#[derive(Debug)]
pub(super) struct PathCache {
    links: UserBudgets,
    /// The last directory that was opened: sockets in one directory come together.
    last: Option<(Location, u32, io::Result<Opened>)>,
    /// What a name in a directory stands for.
    seen: HashMap<(Identity, OsString), FileStatus>,
}

/// The process whose paths are resolved.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathOwner<'a> {
    pub pid: u32,
    pub dir: &'a ProcDir,
    /// The real user id.
    pub user: u32,
}

impl PathCache {
    pub(super) fn new(us: u32) -> Self {
        Self { links: UserBudgets::new(MAX_MICROS, us), last: None, seen: HashMap::new() }
    }

    /// Opens a directory of a process.
    ///
    /// # Errors
    /// Returns the error of the system call, or one with [`is_too_long`] if the path has links and the user's time is used up.
    pub(super) fn open(
        &mut self,
        whose: PathOwner<'_>,
        folder: &Location,
        flags: OFlags,
    ) -> io::Result<OwnedFd> {
        let opened = folder.open_no_symlinks(whose.dir, flags);
        if opened.as_ref().err().and_then(Errno::from_io_error) != Some(Errno::LOOP) {
            return opened;
        }
        if self.links.left(whose.user) == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let begun = Instant::now();
        let opened = folder.open(whose.dir, flags);
        let spent = begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
        self.links.spend(whose.user, spent);
        opened
    }

    /// Returns what exists at the location of a socket.
    pub(super) fn look(&mut self, whose: PathOwner<'_>, place: &Location) -> FileStatus {
        let Some((folder, name)) = place.split() else { return FileStatus::Gone };
        let is_known = |known: &Location, pid: u32| *known == folder && (known.is_own() || pid == whose.pid);
        if !self.last.as_ref().is_some_and(|(known, pid, _)| is_known(known, *pid)) {
            let opened = self.open(whose, &folder, POINT | OFlags::DIRECTORY);
            let opened = opened.and_then(|folder| identity_of(&folder).map(|identity| (folder, identity)));
            self.last = Some((folder, whose.pid, opened));
        }
        match &self.last {
            Some((_, _, Ok((folder, identity)))) => {
                let look = || look(folder, &name);
                *self.seen.entry((*identity, name.clone())).or_insert_with(look)
            }
            Some((_, _, Err(error))) if is_too_long(error) => FileStatus::TooFar,
            Some((_, _, Err(error))) => not_seen(error),
            None => FileStatus::Gone,
        }
    }
}

/// Whether the error states that the user's time was used up.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

fn look(folder: &OwnedFd, name: &OsString) -> FileStatus {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(error) => return not_seen(&error.into()),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return FileStatus::NoSocket;
    }
    // Seconds are unsigned on some systems, but far from the limits of both types.
    #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "as the platform has it")]
    let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    FileStatus::Socket(SocketFile { identity: (stat.st_dev, stat.st_ino), owner: stat.st_uid, modified })
}

fn not_seen(error: &io::Error) -> FileStatus {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => FileStatus::Gone,
        _ => FileStatus::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn path_owner(dir: &ProcDir) -> PathOwner<'_> {
        PathOwner { pid: std::process::id(), dir, user: 1000 }
    }

    /// A name is examined once, even if it changes later and whatever the path is.
    #[test]
    fn a_name_in_a_folder_is_examined_once() {
        let temp = tempfile::tempdir().unwrap();
        let own = temp.path().join("own");
        fs::create_dir(&own).unwrap();
        symlink("own", temp.path().join("link")).unwrap();
        fs::write(own.join("x"), "").unwrap();
        let dir = ProcDir::open(Path::new("/proc"), "self").unwrap();
        let mut paths = PathCache::new(0);
        let mut look = |folder: &str| {
            let place = Location::Own(temp.path().join(folder).join("x"));
            paths.look(path_owner(&dir), &place)
        };
        assert_eq!(look("own"), FileStatus::NoSocket);
        fs::remove_file(own.join("x")).unwrap();
        assert_eq!((look("link"), look("own/../own")), (FileStatus::NoSocket, FileStatus::NoSocket));
        assert_eq!(look("none"), FileStatus::Gone);
    }

    #[test]
    fn time_spent_on_links_is_limited() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("own")).unwrap();
        symlink("own", temp.path().join("link")).unwrap();
        let dir = ProcDir::open(Path::new("/proc"), "self").unwrap();
        let mut paths = PathCache::new(0);
        let at = |name: &str| Location::Own(temp.path().join(name));
        assert!(paths.open(path_owner(&dir), &at("link"), POINT).is_ok());
        paths.links.spend(1000, MAX_MICROS);
        let error = paths.open(path_owner(&dir), &at("link"), POINT).unwrap_err();
        assert!(is_too_long(&error), "{error}");
        assert_eq!(paths.look(path_owner(&dir), &at("link/x")), FileStatus::TooFar);
        // Paths without links, and those of other users, still work.
        assert!(paths.open(path_owner(&dir), &at("own"), POINT).is_ok());
        assert!(paths.open(PathOwner { user: 0, ..path_owner(&dir) }, &at("link"), POINT).is_ok());
    }
}
