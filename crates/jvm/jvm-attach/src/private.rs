//! Folders that only the JVM's user may enter, in a temporary folder of the JVM's own root.
//!
//! Each is locked (flock) while it is used. A folder without a lock was left by a program that was killed; it is removed before
//! the next one is created in the same place.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::Folder;
use runtap_transport::linux::Root;
use rustix::fs::{FileType, FlockOperation, Mode};

use crate::folder::{READ_FOLDER, open_for_code};

/// Where one is tried, in this order. The first two are on disks; the third is memory, and there in most containers.
const PLACES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// How their names begin; 16 digits follow.
const PREFIX: &str = "runtap-agent-";
/// Names of a temporary folder that are looked at.
const MOST_NAMES: usize = 100_000;
/// How often one is created: another program may remove a folder before it is locked.
const TRIES: usize = 4;

/// Removed when it is dropped; what is in it must be removed before.
#[derive(Debug)]
pub(crate) struct Private {
    /// As the JVM sees it.
    path: PathBuf,
    folder: Folder,
    name: String,
    /// Its descriptor holds the lock.
    inside: Folder,
}

impl Private {
    /// In the first place that is fit, else what is wrong with each.
    pub(crate) fn below(root: &Root, user: u32) -> Result<Self, String> {
        Self::first(root, user, Ok)
    }

    /// Like [`below`](Self::below), in the first place where `act` succeeds with the new folder.
    pub(crate) fn first<T>(root: &Root, user: u32, act: impl Fn(Self) -> io::Result<T>) -> Result<T, String> {
        let mut reasons = Vec::new();
        for place in PLACES {
            let done = open_for_code(root, user, place).and_then(|folder| {
                // What can't be removed stays.
                let _ = remove_left(&folder, user);
                let made = Self::create(user, place, folder).and_then(&act);
                made.map_err(|error| format!("{place}: {error}"))
            });
            match done {
                Ok(done) => return Ok(done),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }

    fn create(user: u32, place: &str, folder: Folder) -> io::Result<Self> {
        for _ in 0..TRIES {
            let name = format!("{PREFIX}{:016x}", random_u64());
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU)?;
            let locked = lock(&folder, &name).inspect_err(|_| {
                let _ = folder.remove_folder(name.as_ref());
            });
            let Some(locked) = locked? else { continue };
            let inside = Folder::opened(locked, folder.path().join(&name));
            let path = Path::new(place).join(&name);
            // From here on it is removed when it is dropped.
            let private = Self { path, folder, name, inside };
            let stat = rustix::fs::fstat(&private.inside)?;
            let others = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO);
            if stat.st_uid != user || !others.is_empty() {
                return Err(io::Error::other("another program has replaced the folder that was created"));
            }
            return Ok(private);
        }
        Err(io::Error::other("another program removes the folders that are created"))
    }

    /// As the JVM sees it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// By its descriptor.
    pub(crate) fn inside(&self) -> &Folder {
        &self.inside
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // By descriptors: whatever has this name now, nothing is removed elsewhere.
        let _ = self.folder.remove_folder(self.name.as_ref());
    }
}

/// Locks a folder; `None` if another program has locked or removed it.
fn lock(folder: &Folder, name: &str) -> io::Result<Option<OwnedFd>> {
    let opened = match rustix::fs::openat(folder, name, READ_FOLDER, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let there = rustix::fs::fstat(&opened)?.st_nlink > 0;
    Ok(there.then_some(opened))
}

/// Removes the folders of this user that nobody uses any more.
fn remove_left(folder: &Folder, user: u32) -> io::Result<()> {
    let listed = rustix::fs::openat(folder, ".", READ_FOLDER, Mode::empty())?;
    for entry in rustix::fs::Dir::new(listed)?.take(MOST_NAMES) {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_ours(name)) else { continue };
        let is_theirs = |stat: rustix::fs::Stat| stat.st_uid != user;
        if folder.stat(name.as_ref()).map_or(true, is_theirs) {
            continue;
        }
        // Of one that can't be removed the others know nothing.
        let _ = remove(folder, name);
    }
    Ok(())
}

fn remove(folder: &Folder, name: &str) -> io::Result<()> {
    let Some(locked) = lock(folder, name)? else { return Ok(()) };
    let inside = Folder::opened(locked, PathBuf::new());
    for entry in rustix::fs::Dir::read_from(&inside)? {
        let entry = entry?;
        if entry.file_type() == FileType::RegularFile {
            inside.remove(OsStr::from_bytes(entry.file_name().to_bytes()))?;
        }
    }
    folder.remove_folder(name.as_ref())
}

/// Whether a folder of this name is one of these.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The path by which a JVM has loaded a library of ours, from the one in its memory map: with a root of its own inside of a mount
/// namespace the map has more in front.
pub(crate) fn path_in_target(mapped: &Path) -> Option<PathBuf> {
    let text = mapped.to_str()?;
    let begins = PLACES.iter().filter_map(|place| text.rfind(&format!("{place}/{PREFIX}"))).min()?;
    let path = text.get(begins..)?;
    // /tmp/runtap-agent-0123456789abcdef/NAME
    let (folder, name) = path.rsplit_once('/')?;
    let folder = folder.rsplit_once('/')?.1;
    (is_ours(folder) && !name.is_empty()).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_path_of_a_loaded_library_is_known_again() {
        let path = |mapped: &str| path_in_target(Path::new(mapped));
        let plain = "/tmp/runtap-agent-0123456789abcdef/librt.so";
        assert_eq!(path(plain), Some(plain.into()));
        assert_eq!(path(&format!("/var/lib/jail{plain}")), Some(plain.into()));
        let var = "/var/tmp/runtap-agent-0123456789abcdef/librt.so";
        assert_eq!(path(var), Some(var.into()));
        for other in [
            "/tmp/runtap-agent-0123456789abcde/librt.so",
            "/tmp/runtap-agent-0123456789abcdeX/librt.so",
            "/tmp/runtap-agent-0123456789abcdef/",
            "/opt/librt.so",
            "librt.so",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_killed_program_has_left_goes_and_what_is_used_stays() {
        let place = tempfile::tempdir().unwrap();
        let folder = || Folder::open(place.path()).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let used = Private::create(user, "/tmp", folder()).unwrap();
        let left = place.path().join("runtap-agent-0123456789abcdef");
        let full = place.path().join("runtap-agent-0123456789abcdee");
        for made in [&left, &full.join("of somebody"), &place.path().join("runtap-0123456789abcdef")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(left.join("librt.so"), "code").unwrap();
        fs::write(left.join("answer"), "").unwrap();
        remove_left(&folder(), user + 1).unwrap();
        assert!(left.exists(), "it belongs to somebody else");
        remove_left(&folder(), user).unwrap();
        assert!(!left.exists());
        let names = || fs::read_dir(place.path()).unwrap().count();
        assert_eq!(names(), 3, "what is used, what is not empty, what has another name");
        drop(used);
        assert_eq!(names(), 2);
    }
}
