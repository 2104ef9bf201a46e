//! The directories that a search has listed. Each is read once, whatever path processes use for it, and their total size is limited:
//! processes choose their temporary directories and how many files are in them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use runtap_model::order;
use runtap_transport::naming::SocketName;
use rustix::fs::RawDir;
use rustix::io::Errno;

use super::path_cache::is_too_long;

/// The device and inode number of a directory.
pub(super) type Identity = (u64, u64);

/// # Errors
/// Returns the error of `fstat`.
pub(super) fn identity_of(folder: &OwnedFd) -> io::Result<Identity> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The relevant entries of a temporary directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The identity of the directory. `None` if it could not be opened.
    pub folder: Option<Identity>,
    /// The sockets, sorted by process id. Killed processes leave thousands of them behind, so each takes little memory.
    sockets: Vec<SocketName>,
    /// The directories `hsperfdata_USER` of Java virtual machines.
    pub hsperfdata: Vec<OsString>,
    /// The process ids with attach sockets of Java. Sorted.
    pub attached: Vec<u32>,
    /// Whether there were more entries than were read.
    pub is_truncated: bool,
}

/// The budget for all listings of a search. If an attacker exceeds it, a process's own socket is looked up by name.
#[derive(Debug)]
struct Budget {
    /// The number of entries that may still be read.
    entries: usize,
    /// The number of entries that may still be kept.
    kept: usize,
}

/// Reading this many entries takes a tenth of a second.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_KEPT: usize = 100_000;
/// The number of entries kept of one directory, so that the budget suffices for others.
const MAX_KEPT_PER_FOLDER: usize = 50_000;

#[derive(Debug)]
pub(super) struct Listings {
    read: HashMap<Identity, Listing>,
    unread: Listing,
    /// The listing of directories whose paths take too long to resolve.
    too_far: Listing,
    budget: Budget,
}

impl Listings {
    pub(super) fn new() -> Self {
        let budget = Budget { entries: MAX_ENTRIES, kept: MAX_KEPT };
        let too_far = Listing { is_truncated: true, ..Listing::default() };
        Self { read: HashMap::new(), unread: Listing::default(), too_far, budget }
    }

    /// Returns the entries of a directory, or an empty listing if it can't be opened.
    pub(super) fn of(&mut self, folder: io::Result<OwnedFd>) -> &Listing {
        let opened = folder.and_then(|folder| identity_of(&folder).map(|identity| (folder, identity)));
        let (folder, identity) = match opened {
            Ok(opened) => opened,
            Err(error) if is_too_long(&error) => return &self.too_far,
            Err(_) => return &self.unread,
        };
        let budget = &mut self.budget;
        self.read.entry(identity).or_insert_with(|| {
            let mut listing = Listing { folder: Some(identity), ..Listing::default() };
            // Entries that were read before an error are kept.
            let _ = listing.add(folder, budget);
            order::sort_by_number(&mut listing.sockets, |name| name.pid.into());
            listing.attached.sort_unstable();
            listing
        })
    }

    /// Returns the listing of a directory that has been read.
    pub(super) fn known(&self, folder: Option<Identity>) -> &Listing {
        folder.and_then(|folder| self.read.get(&folder)).unwrap_or(&self.unread)
    }
}

impl Listing {
    fn add(&mut self, directory: OwnedFd, budget: &mut Budget) -> Result<(), Errno> {
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        let before = budget.kept;
        // The first read of a directory may take long already, for example on an overlay file system.
        self.is_truncated = budget.entries == 0 || budget.kept == 0;
        // One directory gets at most half of what is left.
        let least = budget.entries / 2;
        while !self.is_truncated
            && let Some(entry) = entries.next()
        {
            let entry = entry?;
            if budget.entries == least || budget.kept == 0 || before - budget.kept == MAX_KEPT_PER_FOLDER {
                self.is_truncated = true;
                break;
            }
            budget.entries -= 1;
            let text = entry.file_name().to_bytes();
            if let Some(name) = SocketName::parse_bytes(text) {
                self.sockets.push(name);
                budget.kept -= 1;
            } else if text.starts_with(b"hsperfdata_") {
                self.hsperfdata.push(OsStr::from_bytes(text).to_owned());
                budget.kept -= 1;
            } else if let Some(pid) = text.strip_prefix(b".java_pid") {
                self.attached.extend(std::str::from_utf8(pid).ok().and_then(|pid| pid.parse::<u32>().ok()));
                budget.kept -= 1;
            }
        }
        Ok(())
    }

    pub(super) fn of(&self, ns_pid: u32) -> &[SocketName] {
        let start = self.sockets.partition_point(|name| name.pid < ns_pid);
        let rest = self.sockets.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|name| name.pid == ns_pid)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps};

    use super::*;

    fn open(path: &Path) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    #[test]
    fn a_folder_is_read_once_under_any_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        symlink(".", dir.path().join("link")).unwrap();
        let name = SocketName::runtime(12, 34);
        fs::write(dir.path().join(name.to_string()), "").unwrap();
        let mut listings = Listings::new();
        let before = listings.budget.entries;
        for path in ["", ".", "a/..", "link", "link/link/a/../link"] {
            assert_eq!(listings.of(open(&dir.path().join(path))).of(12), [name]);
        }
        assert_eq!(listings.read.len(), 1);
        // `.`, `..` and what the test created.
        assert_eq!(before - listings.budget.entries, 5);
        assert_eq!(listings.of(open(&dir.path().join("none"))).folder, None);
    }

    /// The first read of an overlay directory takes the kernel long, so it must not happen if the budget is used up. Reading a
    /// directory changes its access time.
    #[test]
    fn a_folder_is_not_opened_for_reading_without_a_budget() {
        let dir = tempfile::tempdir().unwrap();
        let past = Timespec { tv_sec: 1000, tv_nsec: 0 };
        let is_read = |entries, kept| {
            let times = Timestamps { last_access: past, last_modification: past };
            rustix::fs::utimensat(CWD, dir.path(), &times, AtFlags::empty()).unwrap();
            let mut listings = Listings::new();
            listings.budget = Budget { entries, kept };
            let is_truncated = listings.of(open(dir.path())).is_truncated;
            (rustix::fs::stat(dir.path()).unwrap().st_atime != past.tv_sec, is_truncated)
        };
        // Not every file system records it.
        if is_read(100, 100).0 {
            assert_eq!((is_read(0, 100), is_read(100, 0)), ((false, true), (false, true)));
        }
    }

    #[test]
    fn unread_entries_are_reported_as_truncation() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a", "b", "c"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
            for key in 0..10 {
                let name = SocketName::runtime(12, key).to_string();
                fs::write(dir.path().join(folder).join(name), "").unwrap();
            }
        }
        for (entries, kept, expected) in [(100, 31, [10, 10, 10]), (100, 15, [10, 5, 0]), (0, 100, [0, 0, 0])]
        {
            let mut listings = Listings::new();
            listings.budget = Budget { entries, kept };
            for (folder, expected) in ["a", "b", "c"].into_iter().zip(expected) {
                let listing = listings.of(open(&dir.path().join(folder)));
                assert_eq!(
                    (listing.of(12).len(), listing.is_truncated),
                    (expected, expected < 10),
                    "{entries} {kept}"
                );
            }
        }
    }
}
