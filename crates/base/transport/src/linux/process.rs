//! The directory of a process in `/proc`, and the files that prove which process listens on a socket. Functions take
//! the path of `/proc`, so that tests can provide one. Processes that have exited or cannot be accessed yield `None`.
//! Source: `proc(5)`.

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

/// An open directory of a process in `/proc`. Reads fail after the process has exited, even if its id is reused.
#[derive(Debug, Clone)]
pub struct ProcDir {
    folder: Arc<OwnedFd>,
    path: PathBuf,
}

/// Maximum number of bytes read from a file in `/proc`: processes determine the length of their environment and memory
/// map.
const MAX_READ: usize = 32 << 20;

/// Reads a file in `/proc` in two or three system calls; its size is not known in advance.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    read_most(file, MAX_READ)
}

/// Reads at most about `most` bytes, because a process determines the contents of its files.
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
    /// Opens the directory of the process with this id, or of this process for `self`.
    ///
    /// # Errors
    /// If the process does not exist.
    pub fn open(proc_root: &Path, pid: impl fmt::Display) -> io::Result<Self> {
        let path = proc_root.join(pid.to_string());
        let folder = rustix::fs::open(&path, POINT | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { folder: Arc::new(folder), path })
    }

    /// Returns the effective user id of the process, or root if the process cannot be accessed. `None` if it has
    /// exited.
    pub fn owner(&self) -> Option<u32> {
        rustix::fs::fstat(&self.folder).ok().map(|stat| stat.st_uid)
    }

    /// Opens a file or subdirectory.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open_file(&self, file: &str, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(&self.folder, file, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        read_all(File::from(self.open_file(file, OFlags::RDONLY)?))
    }

    /// Reads about `most` bytes of a file that may be long.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_most(&self, file: &str, most: usize) -> io::Result<Vec<u8>> {
        read_most(File::from(self.open_file(file, OFlags::RDONLY)?), most)
    }

    /// Returns the text of a link, which is a path in the file system of the process.
    ///
    /// # Errors
    /// If the link cannot be read.
    pub fn link(&self, name: &str) -> io::Result<PathBuf> {
        let text = rustix::fs::readlinkat(&self.folder, name, Vec::new())?;
        Ok(path_of(text.as_bytes()))
    }

    /// Opens the root directory of the process.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn root(&self) -> io::Result<Root> {
        Ok(Root::opened(self.open_file("root", POINT | OFlags::DIRECTORY)?))
    }

    /// Returns whether the root of the process differs from that of this process (`chroot`), according to the text of
    /// the link.
    pub fn has_other_root(&self) -> bool {
        self.link("root").is_ok_and(|root| root != Path::new("/"))
    }

    /// Opens the working directory of the process.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn working_directory(&self) -> io::Result<OwnedFd> {
        self.open_file("cwd", POINT | OFlags::DIRECTORY)
    }

    /// Returns the path of a file or subdirectory, for display.
    pub fn shown(&self, below: &str) -> PathBuf {
        self.path.join(below)
    }

    /// Returns the short name, and the start time in clock ticks since boot (fields 2 and 22 of `stat`).
    pub fn stat(&self) -> Option<(String, u64)> {
        parse_stat(&self.read("stat").ok()?)
    }

    /// Returns the contents of `status`.
    pub fn status(&self) -> Option<Status> {
        Status::parse(&self.read("status").ok()?)
    }
}

/// Parses the short name and the start time of a `stat`. Field 2 is in parentheses and may contain blanks and
/// parentheses; it ends with the last one.
pub fn parse_stat(stat: &[u8]) -> Option<(String, u64)> {
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let comm = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    // The first field after the name has number 3.
    let start =
        stat.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()).nth(22 - 3)?;
    Some((comm, str::from_utf8(start).ok()?.parse().ok()?))
}

/// Returns the name of a user according to `/etc/passwd`, or the id if unknown. Static binaries cannot use name
/// services.
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

/// Converts the bytes of a file in `/proc` to a path.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_blanks_and_parentheses() {
        let stat = b"42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 1 2 3";
        assert_eq!(parse_stat(stat), Some(("a) b (c".to_owned(), 987_654)));
        assert_eq!(parse_stat(b"42 (truncated) S 1 2 3"), None);
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b")("), None);
    }

    #[test]
    fn users_without_a_name_are_shown_by_id() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_name(passwd, 0), "root");
        assert_eq!(user_name(passwd, 1000), "ann");
        assert_eq!(user_name(passwd, 100), "100");
        assert_eq!(user_name(b"", 7), "7");
    }
}
