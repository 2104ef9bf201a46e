//! The folder of one process in `/proc`, and the few of its files that prove who listens on a socket. Every function takes
//! the `/proc` to look at, so that tests can lay out their own; a process that is gone, or that we may not look into, is
//! `None`. Refuses to know what runs in it. Source: `proc(5)`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::root::{POINT, Root};
use super::status::Status;

/// One process's folder in `/proc`, held by a descriptor: whatever becomes of its number, what is read here is of this
/// process. When it has ended, nothing can be read any more.
#[derive(Debug, Clone)]
pub struct ProcDir {
    folder: Arc<OwnedFd>,
    path: PathBuf,
}

/// More than this of a file of `/proc` is not read: processes choose how long their environment and their memory map are.
const MAX_READ: usize = 32 << 20;

/// A file of `/proc` in two or three system calls; its size is not known beforehand.
///
/// # Errors
/// As reading has.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    read_most(file, MAX_READ)
}

/// A process chooses what its own files hold, and may share it with hundreds of others: what is kept is bounded by what is
/// needed.
fn read_most(mut file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled >= most {
                break;
            }
            bytes.resize(bytes.len() * 2, 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

impl ProcDir {
    /// The folder of the process that has this number now, or of ours: `self`.
    ///
    /// # Errors
    /// There is no such process.
    pub fn open(proc_root: &Path, pid: impl fmt::Display) -> io::Result<Self> {
        let path = proc_root.join(pid.to_string());
        let folder = rustix::fs::open(&path, POINT | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { folder: Arc::new(folder), path })
    }

    /// The user of the process: the effective one, or root where it may not be looked into.
    pub fn owner(&self) -> Option<u32> {
        rustix::fs::fstat(&self.folder).ok().map(|stat| stat.st_uid)
    }

    /// Opens a file or a folder of it.
    ///
    /// # Errors
    /// As opening has.
    pub fn open_file(&self, file: &str, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(&self.folder, file, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Reads a file of it.
    ///
    /// # Errors
    /// As reading has.
    pub fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        read_all(File::from(self.open_file(file, OFlags::RDONLY)?))
    }

    /// The same of one that may be long: about `most` bytes of it.
    ///
    /// # Errors
    /// As reading has.
    pub fn read_most(&self, file: &str, most: usize) -> io::Result<Vec<u8>> {
        read_most(File::from(self.open_file(file, OFlags::RDONLY)?), most)
    }

    /// The text of a link. It is a name that means something in the process's own view only.
    ///
    /// # Errors
    /// As reading a link has.
    pub fn link(&self, name: &str) -> io::Result<PathBuf> {
        let text = rustix::fs::readlinkat(&self.folder, name, Vec::new())?;
        Ok(path_of(text.as_bytes()))
    }

    /// The file system as the process sees it.
    ///
    /// # Errors
    /// As opening has.
    pub fn root(&self) -> io::Result<Root> {
        Ok(Root::opened(self.open_file("root", POINT | OFlags::DIRECTORY)?))
    }

    /// Whether its root is another one than ours (`chroot`), which shows in the link's text.
    pub fn has_other_root(&self) -> bool {
        self.link("root").is_ok_and(|root| root != Path::new("/"))
    }

    /// Its working directory.
    ///
    /// # Errors
    /// As opening has.
    pub fn working_directory(&self) -> io::Result<OwnedFd> {
        self.open_file("cwd", POINT | OFlags::DIRECTORY)
    }

    /// What a folder of it is called, for people.
    pub fn shown(&self, below: &str) -> PathBuf {
        self.path.join(below)
    }

    /// The short name and the start time in clock ticks since boot (fields 2 and 22 of `stat`).
    pub fn stat(&self) -> Option<(String, u64)> {
        parse_stat(&self.read("stat").ok()?)
    }

    /// What `status` says.
    pub fn status(&self) -> Option<Status> {
        Status::parse(&self.read("status").ok()?)
    }
}

/// The short name and the start time in a `stat`. Field 2 stands in parentheses and may hold blanks and parentheses itself: what counts is the last one.
pub fn parse_stat(stat: &[u8]) -> Option<(String, u64)> {
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let comm = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    // The first field behind the name is number 3.
    let start =
        stat.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()).nth(22 - 3)?;
    Some((comm, str::from_utf8(start).ok()?.parse().ok()?))
}

/// The names of users by `/etc/passwd`: a static binary has no name service.
pub fn user_name(passwd: &[u8], uid: u32) -> String {
    let digits = uid.to_string();
    passwd
        .split(|b| *b == b'\n')
        .map(|line| line.split(|b| *b == b':'))
        .find_map(|mut fields| {
            let name = fields.next()?;
            (fields.nth(1)? == digits.as_bytes()).then(|| String::from_utf8_lossy(name).into_owned())
        })
        .unwrap_or(digits)
}

/// A path out of bytes of a `/proc` file.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_parentheses() {
        let stat = b"42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 1 2 3";
        assert_eq!(parse_stat(stat), Some(("a) b (c".to_owned(), 987_654)));
        assert_eq!(parse_stat(b"42 (cut) S 1 2 3"), None);
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b")("), None);
    }

    #[test]
    fn users_without_a_name_are_numbers() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_name(passwd, 0), "root");
        assert_eq!(user_name(passwd, 1000), "ann");
        assert_eq!(user_name(passwd, 100), "100");
        assert_eq!(user_name(b"", 7), "7");
    }
}
