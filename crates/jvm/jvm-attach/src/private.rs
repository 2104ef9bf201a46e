//! Folders that only the JVM's user may enter, in a temporary folder of the JVM's root.
//!
//! Each folder is locked (flock) while it is used. An unlocked folder was left behind by a program that was killed;
//! it is removed before the next one is created in the same parent.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::Folder;
use runtap_transport::linux::Root;
use rustix::fs::{FileType, FlockOperation, Mode};

use crate::folder::{FolderProblem, READ_FOLDER, open_for_code, open_for_data};

/// The parent folders, in the order in which they are tried. The first two are on disks; the third is in memory,
/// and exists in most containers.
const PARENTS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The prefix of the names, before 16 hexadecimal digits.
const PREFIX: &str = "runtap-agent-";
/// The maximum number of names in a parent folder that are examined.
const MAX_NAMES: usize = 100_000;
/// The number of attempts to create a folder: another program may remove it before it is locked.
const ATTEMPTS: usize = 4;

/// A private folder. It is removed on drop; its content must be removed before.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    /// The path in the JVM's file system.
    path: PathBuf,
    folder: Folder,
    name: String,
    /// The open folder, whose descriptor holds the lock.
    inside: Folder,
}

impl PrivateFolder {
    /// Creates a folder in the first suitable parent. Fails with the reason for each parent.
    pub(crate) fn below(root: &Root, user: u32) -> Result<Self, String> {
        Self::first(root, user, Ok)
    }

    /// Creates a folder for data in the first suitable parent, which need not allow execution. Fails with the reason for
    /// each parent.
    pub(crate) fn for_data(root: &Root, user: u32) -> Result<Self, String> {
        Self::first_of(|parent| open_for_data(root, user, parent), user, Ok)
    }

    /// Creates a folder like [`below`](Self::below), in the first parent where `act` succeeds with it.
    pub(crate) fn first<T>(root: &Root, user: u32, act: impl Fn(Self) -> io::Result<T>) -> Result<T, String> {
        Self::first_of(|parent| open_for_code(root, user, parent), user, act)
    }

    fn first_of<T>(
        open: impl Fn(&str) -> Result<Folder, FolderProblem>,
        user: u32,
        act: impl Fn(Self) -> io::Result<T>,
    ) -> Result<T, String> {
        let mut reasons = Vec::new();
        for parent in PARENTS {
            let done = open(parent).and_then(|folder| {
                // Errors are ignored: a folder that cannot be removed remains.
                let _ = remove_stale(&folder, user);
                let created = Self::create(user, parent, folder).and_then(&act);
                created.map_err(|error| format!("{parent}: {error}"))
            });
            match done {
                Ok(done) => return Ok(done),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }

    fn create(user: u32, parent: &str, folder: Folder) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let name = format!("{PREFIX}{:016x}", random_u64());
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU)?;
            let locked = lock(&folder, &name).inspect_err(|_| {
                let _ = folder.remove_folder(name.as_ref());
            });
            let Some(locked) = locked? else { continue };
            let inside = Folder::opened(locked, folder.path().join(&name));
            let path = Path::new(parent).join(&name);
            // From here on, dropping removes the folder.
            let private = Self { path, folder, name, inside };
            let stat = rustix::fs::fstat(&private.inside)?;
            let others = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO);
            if stat.st_uid != user || !others.is_empty() {
                return Err(io::Error::other("another program replaced the new directory"));
            }
            return Ok(private);
        }
        Err(io::Error::other("another program removes new directories"))
    }

    /// Returns the path in the JVM's file system.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder, which must be empty.
    pub(crate) fn delete(&self) {
        // The folder is identified by descriptors, so nothing is removed elsewhere if the name was reused.
        let _ = self.folder.remove_folder(self.name.as_ref());
    }

    /// Returns the open folder.
    pub(crate) fn inside(&self) -> &Folder {
        &self.inside
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        self.delete();
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
    let exists = rustix::fs::fstat(&opened)?.st_nlink > 0;
    Ok(exists.then_some(opened))
}

/// Removes the unused folders of this user.
fn remove_stale(folder: &Folder, user: u32) -> io::Result<()> {
    let listed = rustix::fs::openat(folder, ".", READ_FOLDER, Mode::empty())?;
    for entry in rustix::fs::Dir::new(listed)?.take(MAX_NAMES) {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_private_name(name)) else {
            continue;
        };
        let is_of_other = |stat: rustix::fs::Stat| stat.st_uid != user;
        if folder.stat(name.as_ref()).map_or(true, is_of_other) {
            continue;
        }
        // A folder that cannot be removed does not affect the others.
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

/// Returns whether a name is that of a private folder.
fn is_private_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the path by which a JVM has loaded a placed library, from the path in its memory map; `None` for other
/// libraries. For a JVM with its own root in a mount namespace, the path in the map has a longer prefix.
pub(crate) fn path_in_target(mapped: &Path) -> Option<PathBuf> {
    let text = mapped.to_str()?;
    let start = PARENTS.iter().filter_map(|parent| text.rfind(&format!("{parent}/{PREFIX}"))).min()?;
    let path = text.get(start..)?;
    // /tmp/runtap-agent-0123456789abcdef/NAME
    let (folder, name) = path.rsplit_once('/')?;
    let folder = folder.rsplit_once('/')?.1;
    (is_private_name(folder) && !name.is_empty()).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_path_of_a_loaded_library_is_recognized() {
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
    fn stale_folders_are_removed_and_used_ones_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let folder = || Folder::open(place.path()).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let used = PrivateFolder::create(user, "/tmp", folder()).unwrap();
        let left = place.path().join("runtap-agent-0123456789abcdef");
        let full = place.path().join("runtap-agent-0123456789abcdee");
        for made in [&left, &full.join("of another user"), &place.path().join("runtap-0123456789abcdef")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(left.join("librt.so"), "code").unwrap();
        fs::write(left.join("answer"), "").unwrap();
        remove_stale(&folder(), user + 1).unwrap();
        assert!(left.exists(), "it belongs to another user");
        remove_stale(&folder(), user).unwrap();
        assert!(!left.exists());
        let names = || fs::read_dir(place.path()).unwrap().count();
        assert_eq!(names(), 3, "a used one, one that is not empty, and one with another name");
        drop(used);
        assert_eq!(names(), 2);
    }
}
