//! Persistent copies of a library, per user and build, which programs may load long after this process has ended.
//!
//! An option in `JAVA_TOOL_OPTIONS` is inherited by all processes that a command starts, including daemons, and a
//! JVM does not start if its option names a missing library. So the copy is never removed, and its path is always
//! the same. It is verified before each use, and replaced atomically if it differs: JVMs that have loaded the old
//! file keep it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::Folder;
use runtap_transport::linux::Root;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::error::AttachError;
use crate::folder::{READ_FOLDER, open_for_code};

/// The attempted action, for messages.
const WHAT: &str = "write the agent";
/// The mode of the library. Other users may read it, because a command may start JVMs as other users.
const FILE: Mode = Mode::from_raw_mode(0o555);
const FOLDER: Mode = Mode::from_raw_mode(0o755);

/// Writes a library to a folder from which JVMs that this user starts can load it, unless it is already there.
/// Returns its path.
///
/// # Errors
/// Fails if no folder is suitable: each is missing, can be changed by other users, or is mounted read-only or with
/// `noexec`.
pub fn keep(name: &str, bytes: &[u8]) -> Result<PathBuf, AttachError> {
    let user = geteuid().as_raw();
    keep_in(&candidates(user, |name| std::env::var_os(name)), user, name, bytes)
}

fn keep_in(
    candidates: &[(PathBuf, String)],
    user: u32,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, AttachError> {
    let root = Root::own().map_err(AttachError::io(WHAT))?;
    let mut reasons = Vec::new();
    for (parent, folder) in candidates {
        let path = parent.join(folder).join(name);
        if !fits_in_an_option(&path) {
            reasons.push(format!("{}: a JVM option cannot contain this path", parent.display()));
            continue;
        }
        let kept = open_for_code(&root, user, parent).and_then(|parent| {
            keep_below(&parent, user, folder, name, bytes)
                .map_err(|error| format!("{}: {error}", path.display()))
        });
        match kept {
            Ok(()) => return Ok(path),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(AttachError::NoFolder { pid: std::process::id(), reason: reasons.join("; ") })
}

/// Returns the candidate directories, and the name of the subdirectory in each: first the configured cache, then
/// persistent directories. For root, a directory that every user can reach comes before the home directory, because
/// a command of root may start JVMs as other users.
fn candidates(user: u32, variable: impl Fn(&str) -> Option<OsString>) -> Vec<(PathBuf, String)> {
    let name = || "runtap".to_owned();
    let mut candidates = Vec::new();
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(cache) = absolute("XDG_CACHE_HOME") {
        candidates.push((cache, name()));
    }
    if user == 0 {
        candidates.push(("/var/cache".into(), name()));
    }
    if let Some(home) = absolute("HOME") {
        candidates.push((home.join(".cache"), name()));
        candidates.push((home, ".runtap".to_owned()));
    }
    for shared in ["/var/tmp", "/tmp", "/dev/shm"] {
        candidates.push((shared.into(), format!("runtap-{user}")));
    }
    if let Some(runtime) = absolute("XDG_RUNTIME_DIR") {
        candidates.push((runtime, name()));
    }
    candidates
}

/// Returns whether a path can be part of `JAVA_TOOL_OPTIONS`, which is split at blanks and quotes, before the `=`
/// of the agent's options.
fn fits_in_an_option(path: &Path) -> bool {
    let special =
        |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"'\"=\\".contains(byte);
    !path.as_os_str().as_bytes().iter().any(special)
}

/// Keeps the library in a subdirectory of a directory where no other user can replace names.
fn keep_below(parent: &Folder, user: u32, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let created = rustix::fs::mkdirat(parent, folder, FOLDER);
    let inside = parent.folder(OsStr::new(folder)).map_err(|error| match created {
        Err(cause) if cause != rustix::io::Errno::EXIST => cause.into(),
        _ => error,
    })?;
    let stat = rustix::fs::fstat(&inside)?;
    if stat.st_uid != user {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the directory belongs to another user"));
    }
    // The umask or an access control list may have changed the mode.
    rustix::fs::fchmod(rustix::fs::openat(parent, folder, READ_FOLDER, Mode::empty())?, FOLDER)?;
    if is_kept(&inside, user, name, bytes).unwrap_or(false) {
        return Ok(());
    }
    let new = format!("{name}.{:016x}", random_u64());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&inside, &new, flags, Mode::RUSR | Mode::WUSR)?;
    let write = |mut file: File| {
        file.write_all(bytes)?;
        rustix::fs::fchmod(&file, FILE)?;
        // The file must survive a power failure.
        file.sync_all()?;
        rustix::fs::renameat(&inside, &new, &inside, name)?;
        Ok(())
    };
    let written: io::Result<()> = write(file.into());
    written.inspect_err(|_| {
        let _ = inside.remove(new.as_ref());
    })?;
    if is_kept(&inside, user, name, bytes)? {
        Ok(())
    } else {
        Err(io::Error::other("the written file has different content"))
    }
}

/// Returns whether the file exists, belongs to the user, can be loaded by all users, and has the expected content.
fn is_kept(inside: &Folder, user: u32, name: &str, bytes: &[u8]) -> io::Result<bool> {
    let file = inside.open_itself(name.as_ref())?;
    let stat = rustix::fs::fstat(&file)?;
    if stat.st_uid != user || Mode::from_raw_mode(stat.st_mode) != FILE {
        return Ok(false);
    }
    let mut content = Vec::new();
    let limit = u64::try_from(bytes.len()).map_err(io::Error::other)?.saturating_add(1);
    file.take(limit).read_to_end(&mut content)?;
    Ok(content == bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    const NAME: &str = "libagent-1.so";

    fn kept(place: &Path, bytes: &[u8]) -> Result<PathBuf, AttachError> {
        keep_in(&[(place.into(), "runtap".to_owned())], geteuid().as_raw(), NAME, bytes)
    }

    #[test]
    fn a_copy_is_written_once_and_replaced_if_it_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = kept(folder.path(), b"library").unwrap();
        assert_eq!(path, folder.path().join("runtap").join(NAME));
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.permissions().mode() & 0o7777, 0o555);
        assert_eq!(kept(folder.path(), b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), first.ino(), "the file was not replaced");
        // A file that was truncated by a power failure, changed, or made writable is replaced; loaded copies are
        // unaffected.
        let old = File::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&path, b"libra").unwrap();
        kept(folder.path(), b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_ne!(fs::metadata(&path).unwrap().ino(), old.metadata().unwrap().ino());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_a_linked_directory_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(folder.path().join("runtap")).unwrap();
        fs::write(&elsewhere, b"precious").unwrap();
        symlink(&elsewhere, folder.path().join("runtap").join(NAME)).unwrap();
        let path = kept(folder.path(), b"library").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
        let other = tempfile::tempdir().unwrap();
        symlink(folder.path(), other.path().join("runtap")).unwrap();
        kept(other.path(), b"library").unwrap_err();
    }

    #[test]
    fn a_directory_of_another_user_is_skipped() {
        if !geteuid().is_root() {
            eprintln!("skipped: giving a directory to another user needs root");
            return;
        }
        let first = tempfile::tempdir().unwrap();
        let second = tempfile::tempdir().unwrap();
        let theirs = first.path().join("runtap");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        let places: Vec<_> =
            [first.path(), second.path()].map(|path| (path.to_owned(), "runtap".to_owned())).into();
        let path = keep_in(&places, 0, NAME, b"library").unwrap();
        assert!(path.starts_with(second.path()));
        // A directory in which any user can replace the library's folder.
        fs::set_permissions(second.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = keep_in(&places, 0, NAME, b"library").unwrap_err().to_string();
        assert!(
            error.contains("belongs to another user") && error.contains("other users can replace"),
            "{error}"
        );
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    }

    #[test]
    fn candidates_depend_on_the_user_and_the_home_directory() {
        let of = |user, home: &str| {
            let variable = |name: &str| (name == "HOME").then(|| home.into());
            candidates(user, variable).into_iter().map(|(parent, name)| parent.join(name)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, "/root")[..2], [Path::new("/var/cache/runtap"), Path::new("/root/.cache/runtap")]);
        assert_eq!(of(7, "/home/a")[0], Path::new("/home/a/.cache/runtap"));
        assert_eq!(of(7, "relative")[0], Path::new("/var/tmp/runtap-7"));
        for bad in ["/home/a b/x.so", "/home/a=b/x.so", "/home/a'b/x.so", "/a\nb/x.so", "/a\\b/x.so"] {
            assert!(!fits_in_an_option(Path::new(bad)), "{bad}");
        }
        assert!(fits_in_an_option(Path::new("/home/j\u{f6}rg/.cache/runtap/x-1.so")));
    }
}
