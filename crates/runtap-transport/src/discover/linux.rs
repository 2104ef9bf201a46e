//! What `/proc` says about one process. Every function takes the `/proc` to look at, so that tests can lay out
//! their own; a process that is gone, or that we may not look into, is `None`.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Thread;
use super::environment::{Entries, Environment};
use super::security::{Capabilities, parse_capabilities};
use crate::root::{POINT, Root};

/// One process's folder in `/proc`, held by a descriptor: whatever becomes of its number, what is read here is of this
/// process. When it has ended, nothing can be read any more.
#[derive(Debug, Clone)]
pub(crate) struct ProcDir {
    folder: Arc<OwnedFd>,
    path: PathBuf,
}

/// What `/proc/PID/status` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The process that this thread belongs to.
    pub tgid: u32,
    /// `R`, `S`, `T` (stopped), `t` (stopped by its tracer), `Z` (has ended) …
    pub state: char,
    /// Who traces it; 0 for nobody.
    pub tracer: u32,
    /// Real user id.
    pub uid: u32,
    /// Real, effective, saved, for files.
    pub uids: [u32; 4],
    /// The user, the group and the further groups by which it may open files.
    pub effective_uid: u32,
    pub effective_gid: u32,
    pub groups: Vec<u32>,
    /// The id in the innermost pid namespace.
    pub ns_pid: u32,
    pub capabilities: Capabilities,
}

/// More than this of a file of `/proc` is not read: processes choose how long their environment and their memory map are.
const MOST_READ: usize = 32 << 20;
/// Linux starts no program with more than 6 MiB of arguments and environment.
const MOST_ENVIRONMENT: u64 = 8 << 20;
/// What is read of an environment whatever was read of others: more than people have.
const LEAST_ENVIRONMENT: u64 = 128 << 10;
/// In one system call.
const PIECE: usize = 32 << 10;
const MOST_COMMAND_LINE: usize = 128 << 10;
const MOST_ARGUMENTS: usize = 1000;

/// A file of `/proc` in two or three system calls; its size is not known beforehand.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    read_most(file, MOST_READ)
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
    pub(crate) fn open(proc_root: &Path, pid: impl fmt::Display) -> io::Result<Self> {
        let path = proc_root.join(pid.to_string());
        let folder = rustix::fs::open(&path, POINT | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { folder: Arc::new(folder), path })
    }

    /// The user of the process: the effective one, or root where it may not be looked into.
    pub(super) fn owner(&self) -> Option<u32> {
        rustix::fs::fstat(&self.folder).ok().map(|stat| stat.st_uid)
    }

    pub(super) fn open_file(&self, file: &str, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(&self.folder, file, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    pub(crate) fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        read_all(File::from(self.open_file(file, OFlags::RDONLY)?))
    }

    fn read_most(&self, file: &str, most: usize) -> io::Result<Vec<u8>> {
        read_most(File::from(self.open_file(file, OFlags::RDONLY)?), most)
    }

    /// The environment that it was started with.
    pub(super) fn environ(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        File::from(self.open_file("environ", OFlags::RDONLY)?)
            .take(MOST_ENVIRONMENT)
            .read_to_end(&mut text)?;
        Ok(text)
    }

    /// The text of a link. It is a name that means something in the process's own view only.
    pub(super) fn link(&self, name: &str) -> io::Result<PathBuf> {
        let text = rustix::fs::readlinkat(&self.folder, name, Vec::new())?;
        Ok(path_of(text.as_bytes()))
    }

    /// The names in a folder.
    pub(super) fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut entries = rustix::fs::Dir::new(self.open_file(folder, flags)?)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read() {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// The file system as the process sees it.
    pub(crate) fn root(&self) -> io::Result<Root> {
        Ok(Root::opened(self.open_file("root", POINT | OFlags::DIRECTORY)?))
    }

    /// Its working directory.
    pub(crate) fn working_directory(&self) -> io::Result<OwnedFd> {
        self.open_file("cwd", POINT | OFlags::DIRECTORY)
    }

    /// The executable itself. What opens it may be no file that ends: nothing waits for it.
    pub(super) fn open_executable(&self) -> io::Result<File> {
        self.open_file("exe", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    /// What a folder of it is called, for people.
    pub(crate) fn shown(&self, below: &str) -> PathBuf {
        self.path.join(below)
    }

    /// The short name and the start time in clock ticks since boot (fields 2 and 22 of `stat`).
    pub(crate) fn stat(&self) -> Option<(String, u64)> {
        parse_stat(&self.read("stat").ok()?)
    }

    pub(crate) fn status(&self) -> Option<Status> {
        parse_status(&self.read("status").ok()?)
    }

    /// A namespace (`mnt`, `pid`, `time`) as `mnt:[4026531841]`; `None` where we may not look.
    pub(super) fn namespace(&self, kind: &str) -> Option<OsString> {
        self.link(&format!("ns/{kind}")).ok().map(PathBuf::into_os_string)
    }

    /// As the process was started with; later changes are not there. What is read of it is taken from `budget`: hundreds
    /// of processes may have very long ones.
    pub(super) fn environment(&self, budget: &mut u64) -> io::Result<Environment> {
        let most = (*budget).clamp(LEAST_ENVIRONMENT, MOST_ENVIRONMENT);
        let mut file = File::from(self.open_file("environ", OFlags::RDONLY)?);
        let (mut entries, mut piece, mut read) = (Entries::default(), vec![0; PIECE], 0);
        while read < most {
            let n = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            entries.add(piece.get(..n).unwrap_or_default());
            read = read.saturating_add(n.try_into().unwrap_or(u64::MAX));
        }
        *budget = budget.saturating_sub(read);
        Ok(entries.finish(read >= most))
    }

    /// Whether its root is another one than ours (`chroot`), which is told by the link's text.
    pub(super) fn has_other_root(&self) -> bool {
        self.link("root").is_ok_and(|root| root != Path::new("/"))
    }

    /// The arguments, program first; of very many, or very long ones, the first.
    pub(super) fn command_line(&self) -> Vec<String> {
        let bytes = self.read_most("cmdline", MOST_COMMAND_LINE).unwrap_or_default();
        let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        if text.is_empty() {
            return Vec::new();
        }
        let arguments = text.split(|b| *b == 0).take(MOST_ARGUMENTS);
        arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
    }

    pub(super) fn exe(&self) -> Option<PathBuf> {
        self.link("exe").ok()
    }

    /// Whether it runs a program: the kernel's own threads do not. Where that may not be seen it might.
    pub(super) fn runs_a_program(&self) -> bool {
        rustix::fs::readlinkat(&self.folder, "exe", Vec::new()) != Err(Errno::NOENT)
    }

    /// The container's id in the path of the control group: 64 hexadecimal digits.
    pub(super) fn container(&self) -> Option<String> {
        let text = self.read("cgroup").ok()?;
        text.split(|b| !b.is_ascii_hexdigit())
            .find(|run| run.len() == 64)
            .map(|run| String::from_utf8_lossy(run).into_owned())
    }

    /// The names of its threads up to the first that is called so; of very many the first, whose number is `most`.
    pub(super) fn thread_names(&self, last: Option<&str>, most: usize) -> Vec<String> {
        let mut names = Vec::new();
        for tid in self.names("task").unwrap_or_default().into_iter().take(most) {
            let Ok(comm) = self.read(&format!("task/{tid}/comm")) else { continue };
            names.push(String::from_utf8_lossy(comm.trim_ascii_end()).into_owned());
            if names.last().map(String::as_str) == last {
                break;
            }
        }
        names
    }

    /// Shows the lines of a file, at most so many bytes of them, until one is enough. How many were read, and whether there
    /// are others.
    pub(super) fn lines(
        &self,
        file: &str,
        most: u64,
        mut is_enough: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<(u64, bool)> {
        let file = File::from(self.open_file(file, OFlags::RDONLY)?);
        let mut lines = BufReader::with_capacity(PIECE, file.take(most));
        let (mut read, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let n = lines.read_until(b'\n', &mut line)?;
            read += u64::try_from(n).unwrap_or(u64::MAX);
            if n == 0 || !line.ends_with(b"\n") {
                return Ok((read, read == most));
            }
            if is_enough(line.strip_suffix(b"\n").unwrap_or(&line)) {
                return Ok((read, false));
            }
        }
    }

    /// The threads; `other_pid` says that the process calls them by other ids than we do.
    pub(super) fn threads(&self, other_pid: bool) -> io::Result<Vec<Thread>> {
        let mut threads = Vec::new();
        for name in self.names("task")? {
            let Ok(tid) = name.parse() else { continue };
            // A thread may end between the reads.
            let Ok(comm) = self.read(&format!("task/{name}/comm")) else { continue };
            let ns_tid = if other_pid {
                let Ok(status) = self.read(&format!("task/{name}/status")) else { continue };
                parse_status(&status).map_or(tid, |status| status.ns_pid)
            } else {
                tid
            };
            let name = String::from_utf8_lossy(comm.trim_ascii_end()).into_owned();
            threads.push(Thread { tid, ns_tid, name });
        }
        threads.sort_by_key(|thread| thread.tid);
        Ok(threads)
    }
}

/// The ids of all processes; threads are not among them.
pub(super) fn pids(proc_root: &Path) -> Vec<u32> {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect();
    pids.sort_unstable();
    pids
}

/// Field 2 stands in parentheses and may hold blanks and parentheses itself: what counts is the last one.
pub(super) fn parse_stat(stat: &[u8]) -> Option<(String, u64)> {
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let comm = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    // The first field behind the name is number 3.
    let start =
        stat.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()).nth(22 - 3)?;
    Some((comm, str::from_utf8(start).ok()?.parse().ok()?))
}

pub(super) fn parse_status(status: &[u8]) -> Option<Status> {
    let (mut tgid, mut users, mut ns_pid) = (None, None, None);
    let mut found = Status::default();
    for line in status.split(|b| *b == b'\n') {
        let line = str::from_utf8(line).unwrap_or_default();
        let Some((key, value)) = line.split_once(':') else { continue };
        let mut values = value.split_ascii_whitespace();
        match key {
            "Tgid" => tgid = values.next()?.parse().ok(),
            "State" => found.state = values.next()?.chars().next()?,
            "TracerPid" => found.tracer = values.next()?.parse().ok()?,
            "Uid" => {
                let mut id = || values.next()?.parse().ok();
                users = Some([id()?, id()?, id()?, id()?]);
            }
            "Gid" => found.effective_gid = values.nth(1)?.parse().ok()?,
            "Groups" => found.groups = values.filter_map(|group| group.parse().ok()).collect(),
            "NSpid" => ns_pid = values.next_back()?.parse().ok(),
            "CapEff" => found.capabilities = parse_capabilities(value)?,
            _ => {}
        }
    }
    found.tgid = tgid?;
    found.uids = users?;
    [found.uid, found.effective_uid, ..] = found.uids;
    // Kernels without pid namespaces have no NSpid.
    found.ns_pid = ns_pid.unwrap_or(found.tgid);
    Some(found)
}

/// The names of users by `/etc/passwd`: a static binary has no name service.
pub(crate) fn user_name(passwd: &[u8], uid: u32) -> String {
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
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
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
    fn the_last_ns_pid_counts() {
        let status = b"Name:\tx: y\nState:\tT (stopped)\nTgid:\t77\nTracerPid:\t5\nUid:\t1000\t0\t0\t0\n\
            Gid:\t1\t2\t3\t4\nGroups:\t7 8 \nNSpid:\t77\t12\t1\nCapEff:\t0000000000080002\n";
        let expected = Status {
            tgid: 77,
            state: 'T',
            tracer: 5,
            uid: 1000,
            uids: [1000, 0, 0, 0],
            effective_uid: 0,
            effective_gid: 2,
            groups: vec![7, 8],
            ns_pid: 1,
            capabilities: Capabilities(0x80002),
        };
        assert_eq!(parse_status(status), Some(expected));
        assert_eq!(parse_status(b"Tgid:\t5\nUid:\t0\t0\t0\t0\n").map(|s| s.ns_pid), Some(5));
        assert_eq!(parse_status(b"Tgid:\t5\n"), None);
    }

    #[test]
    fn of_endless_arguments_the_first_are_kept() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir(proc.path().join("7")).unwrap();
        let arguments = |text: &[u8]| {
            fs::write(proc.path().join("7/cmdline"), text).unwrap();
            ProcDir::open(proc.path(), 7).unwrap().command_line()
        };
        assert_eq!(arguments(b"app\0-x\0"), ["app", "-x"]);
        assert_eq!(arguments(&vec![0; 1 << 20]).len(), MOST_ARGUMENTS);
        let long = arguments(&vec![b'a'; 1 << 20]);
        assert_eq!((long.len(), long[0].len()), (1, MOST_COMMAND_LINE));
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
