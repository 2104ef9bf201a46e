//! Finds Java virtual machines. Each keeps its performance counters in `/tmp/hsperfdata_USER/PID`, always in `/tmp`, in a directory
//! owned by its user, with the process id in its own PID namespace. Any user who can write to `/tmp` can create such names, so both
//! the directory and the file must have the right owner. The directories are not listed, because they may have millions of files.

pub(crate) mod counters_file;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags};

use crate::perf_file::MAX_FILE;

pub use self::java::Java;

mod java;

/// The number of directories that are checked: far more than there are users with virtual machines.
const MAX_FOLDERS: usize = 10_000;
/// The number of directories that are checked per user, who normally has one.
const MAX_PER_USER: usize = 4;
/// The maximum size of all files together. After that, only the existence of a virtual machine is reported.
pub(super) const MAX_READ: u64 = 64 << 20;

/// The directories with performance counters in a temporary directory, by owner.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<u32, Vec<OsString>>);

impl Counters {
    /// Collects these directories, which `open` opens.
    pub(super) fn of(folders: &[OsString], open: impl Fn(&OsStr) -> io::Result<OwnedFd>) -> Self {
        let mut of_users: HashMap<u32, Vec<OsString>> = HashMap::new();
        for name in folders.iter().take(MAX_FOLDERS) {
            let stat = open(name).and_then(|folder| Ok(rustix::fs::fstat(folder)?));
            let Ok(stat) = stat else { continue };
            let theirs = of_users.entry(stat.st_uid).or_default();
            if theirs.len() < MAX_PER_USER {
                theirs.push(name.clone());
            }
        }
        Self(of_users)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this user owns such a directory.
    #[cfg(target_os = "linux")]
    pub(super) fn has_of(&self, user: u32) -> bool {
        self.0.contains_key(&user)
    }

    /// Returns the counters of this user's process with their file, or `None` if it has none here. The file may be left from an
    /// earlier process with that id. `budget` is the number of bytes that may still be read.
    pub(super) fn of_process(
        &self,
        user: u32,
        pid: u32,
        budget: &mut u64,
        open: impl Fn(&OsStr) -> io::Result<OwnedFd>,
    ) -> Option<(Java, File)> {
        let folders = self.0.get(&user)?;
        folders.iter().find_map(|folder| counters(&open(folder).ok()?, user, pid, budget))
    }
}

/// Rejects symbolic links, which may lead to another user's files, and pipes, which could block.
fn counters(folder: &OwnedFd, user: u32, pid: u32, budget: &mut u64) -> Option<(Java, File)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, pid.to_string(), flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != user {
        return None;
    }
    let mut bytes = Vec::new();
    let read = (&file).take(MAX_FILE.min(*budget)).read_to_end(&mut bytes);
    *budget = budget.saturating_sub(bytes.len() as u64);
    Some((read.ok().and_then(|_| counters_file::parse(&bytes)).unwrap_or_default(), file))
}
