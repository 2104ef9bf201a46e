//! What `/proc` says about one process besides what proves that it is the one: its environment, arguments, namespaces and
//! threads. A process that is gone, or that we may not look into, is `None` or an error.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use runtap_transport::linux::{ProcDir, Status};
use rustix::fs::OFlags;

use super::environment::{Entries, Environment};
use crate::Thread;

/// Linux starts no program with more than 6 MiB of arguments and environment.
const MAX_ENVIRONMENT: u64 = 8 << 20;
/// What is read of an environment whatever was read of others: more than people have.
const MIN_ENVIRONMENT: u64 = 128 << 10;
/// In one system call.
const PIECE: usize = 32 << 10;
const MAX_COMMAND_LINE: usize = 128 << 10;
const MAX_ARGUMENTS: usize = 1000;

/// The other files of a process's folder.
pub(super) trait ProcFiles {
    /// The environment that it was started with.
    fn environ(&self) -> io::Result<Vec<u8>>;

    /// The names in a folder.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// The executable itself. What opens it may be no file that ends: nothing waits for it.
    fn open_executable(&self) -> io::Result<File>;

    /// A namespace (`mnt`, `pid`, `time`) as `mnt:[4026531841]`; `None` where we may not look.
    fn namespace(&self, kind: &str) -> Option<OsString>;

    /// As the process was started with; later changes are not there. What is read of it is taken from `budget`: hundreds
    /// of processes may have very long ones.
    fn environment(&self, budget: &mut u64) -> io::Result<Environment>;

    /// The arguments, program first; of very many, or very long ones, the first.
    fn command_line(&self) -> Vec<String>;

    fn exe(&self) -> Option<PathBuf>;

    /// Whether it runs a program: the kernel's own threads do not. Where that may not be seen it might.
    fn runs_a_program(&self) -> bool;

    /// The container's id in the path of the control group: 64 hexadecimal digits.
    fn container(&self) -> Option<String>;

    /// The names of its threads up to the first that is called so; of very many the first, whose number is `most`.
    fn thread_names(&self, last: Option<&str>, most: usize) -> Vec<String>;

    /// Shows the lines of a file, at most so many bytes of them, until one is enough. How many were read, and whether there
    /// are others.
    fn lines(&self, file: &str, most: u64, is_enough: impl FnMut(&[u8]) -> bool) -> io::Result<(u64, bool)>;

    /// The threads; `other_pid` says that the process calls them by other ids than we do.
    fn threads(&self, other_pid: bool) -> io::Result<Vec<Thread>>;
}

impl ProcFiles for ProcDir {
    fn environ(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        File::from(self.open_file("environ", OFlags::RDONLY)?)
            .take(MAX_ENVIRONMENT)
            .read_to_end(&mut text)?;
        Ok(text)
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut entries = rustix::fs::Dir::new(self.open_file(folder, flags)?)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read() {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    fn open_executable(&self) -> io::Result<File> {
        self.open_file("exe", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    fn namespace(&self, kind: &str) -> Option<OsString> {
        self.link(&format!("ns/{kind}")).ok().map(PathBuf::into_os_string)
    }

    fn environment(&self, budget: &mut u64) -> io::Result<Environment> {
        let most = (*budget).clamp(MIN_ENVIRONMENT, MAX_ENVIRONMENT);
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

    fn command_line(&self) -> Vec<String> {
        let bytes = self.read_most("cmdline", MAX_COMMAND_LINE).unwrap_or_default();
        let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        if text.is_empty() {
            return Vec::new();
        }
        let arguments = text.split(|b| *b == 0).take(MAX_ARGUMENTS);
        arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
    }

    fn exe(&self) -> Option<PathBuf> {
        self.link("exe").ok()
    }

    fn runs_a_program(&self) -> bool {
        self.link("exe").err().is_none_or(|error| error.kind() != io::ErrorKind::NotFound)
    }

    fn container(&self) -> Option<String> {
        let text = self.read("cgroup").ok()?;
        text.split(|b| !b.is_ascii_hexdigit())
            .find(|run| run.len() == 64)
            .map(|run| String::from_utf8_lossy(run).into_owned())
    }

    fn thread_names(&self, last: Option<&str>, most: usize) -> Vec<String> {
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

    fn lines(
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

    fn threads(&self, other_pid: bool) -> io::Result<Vec<Thread>> {
        let mut threads = Vec::new();
        for name in self.names("task")? {
            let Ok(tid) = name.parse() else { continue };
            // A thread may end between the reads.
            let Ok(comm) = self.read(&format!("task/{name}/comm")) else { continue };
            let ns_tid = if other_pid {
                let Ok(status) = self.read(&format!("task/{name}/status")) else { continue };
                Status::parse(&status).map_or(tid, |status| status.ns_pid)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_endless_arguments_the_first_are_kept() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir(proc.path().join("7")).unwrap();
        let arguments = |text: &[u8]| {
            fs::write(proc.path().join("7/cmdline"), text).unwrap();
            ProcDir::open(proc.path(), 7).unwrap().command_line()
        };
        assert_eq!(arguments(b"app\0-x\0"), ["app", "-x"]);
        assert_eq!(arguments(&vec![0; 1 << 20]).len(), MAX_ARGUMENTS);
        let long = arguments(&vec![b'a'; 1 << 20]);
        assert_eq!((long.len(), long[0].len()), (1, MAX_COMMAND_LINE));
    }
}
