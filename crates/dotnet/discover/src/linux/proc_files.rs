//! Reads files of `/proc/PID` other than those that identify the process: environment, arguments, namespaces and threads. Returns
//! `None` or an error if the process has exited or access is denied.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use runtap_model::order;
use runtap_transport::linux::{ProcDir, Status};
use rustix::fs::OFlags;

use super::environment::{Entries, Environment};
use crate::Thread;

/// Linux limits arguments and environment to 6 MiB.
const MAX_ENVIRONMENT: u64 = 8 << 20;
/// The number of bytes that are read of each environment even if the budget is used up. More than ordinary environments have.
const MIN_ENVIRONMENT: u64 = 128 << 10;
/// The number of bytes that are read per system call.
const PIECE: usize = 32 << 10;
const MAX_COMMAND_LINE: usize = 128 << 10;
const MAX_ARGUMENTS: usize = 1000;

/// Access to files in the directory of a process.
pub(super) trait ProcFiles {
    /// Returns the environment with which the process was started.
    fn environ(&self) -> io::Result<Vec<u8>>;

    /// Returns the names in a directory.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Opens the executable without blocking, even if it is not a regular file.
    fn open_executable(&self) -> io::Result<File>;

    /// Returns a namespace (`mnt`, `pid`, `time`) in the form `mnt:[4026531841]`. `None` if not readable.
    fn namespace(&self, kind: &str) -> Option<OsString>;

    /// Returns the diagnostics settings in the environment with which the process was started. The bytes read are subtracted from
    /// `budget`, because there may be hundreds of processes with very long environments.
    fn environment(&self, budget: &mut u64) -> io::Result<Environment>;

    /// Returns the arguments, program first. Limited in number and total length.
    fn command_line(&self) -> Vec<String>;

    fn exe(&self) -> Option<PathBuf>;

    /// Whether it runs a program, unlike a kernel thread. True if unknown.
    fn runs_a_program(&self) -> bool;

    /// Returns the id of the container, which is a run of 64 hexadecimal digits in the path of the control group.
    fn container(&self) -> Option<String>;

    /// Returns the names of its threads up to and including the first one named `last`, but at most `most`.
    fn thread_names(&self, last: Option<&str>, most: usize) -> Vec<String>;

    /// Calls `is_enough` for the lines in the first `most` bytes of a file until it returns true. Returns the number of bytes read,
    /// and whether there are more.
    fn lines(&self, file: &str, most: u64, is_enough: impl FnMut(&[u8]) -> bool) -> io::Result<(u64, bool)>;

    /// Returns the threads. `other_pid` states that the process has another PID namespace.
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
            // The thread may have exited meanwhile.
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
        order::sort_by_number(&mut threads, |thread| thread.tid.into());
        Ok(threads)
    }
}

/// Returns the ids of all processes, without threads.
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
    fn long_argument_lists_are_truncated() {
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
