//! Finds Java virtual machines without performance counters: started with `-XX:-UsePerfData`, or not permitted to write to `/tmp`.
//!
//! Such a machine is recognized by the library that it has mapped, and described by its command line and its installation. Reading
//! the memory maps of all processes would take too long, so only processes are checked whose program's path looks like Java's or
//! that have an attach socket (`/tmp/.java_pidN`, created when a tool attached: `openjdk/jdk`
//! `src/hotspot/os/posix/attachListener_posix.cpp`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use runtap_transport::linux::Status;
use rustix::fs::OFlags;

use super::candidate::Candidate;
use super::listings::Listing;
use super::proc_files::ProcFiles as _;
use super::search::{Search, Snapshot};
use crate::jvm::{Counters, Java};
use crate::{Process, ProcessKind};

/// The number of bytes that are read of each memory map even if the budget is used up.
const MIN_MAPS: u64 = 16 << 10;
/// The maximum size of the file that describes an installation, which has one or two kilobytes.
const MAX_RELEASE: u64 = 16 << 10;
/// Flags that reject links and never block.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The files of Java virtual machines in a temporary directory.
#[derive(Debug, Default)]
pub(super) struct JvmFiles {
    pub(super) counters: Counters,
    /// The process ids with attach sockets, in their own PID namespaces. Sorted.
    attached: Vec<u32>,
}

impl JvmFiles {
    /// Collects the files from a listing, whose directories `open` opens.
    pub(super) fn of(listing: &Listing, open: impl Fn(&OsStr) -> io::Result<OwnedFd>) -> Self {
        Self { counters: Counters::of(&listing.hsperfdata, open), attached: listing.attached.clone() }
    }
}

impl Search<'_> {
    /// Returns the process if it has mapped the virtual machine's library. If that `is_known`, the program may have any path.
    pub(super) fn jvm_without_counters(
        &mut self,
        candidate: &Candidate,
        status: Option<Status>,
        files: &JvmFiles,
        is_known: bool,
    ) -> Option<Process> {
        let number = status.as_ref().map_or(candidate.pid, |status| status.ns_pid);
        let exe = candidate.dir.exe()?;
        let is_launcher = is_called_java(&exe) || files.attached.binary_search(&number).is_ok();
        if !is_known && !is_launcher {
            return None;
        }
        let status = status.or_else(|| candidate.dir.status())?;
        let left = self.map_budgets.left(status.uid);
        let mut has_library = is_known;
        let (read, _) = candidate
            .dir
            .lines("maps", left.max(MIN_MAPS), |line| {
                has_library = has_library || is_library(line);
                has_library
            })
            .ok()?;
        self.map_budgets.spend(status.uid, read);
        if !has_library {
            return None;
        }
        let (comm, start) = candidate.dir.stat()?;
        let installation = self.installation(candidate, &status, &exe).unwrap_or_default();
        let process =
            self.describe(candidate, ProcessKind::Jvm, Vec::new(), Snapshot { status, comm, start });
        // Other programs that contain a virtual machine have other arguments.
        let words = if is_launcher { &*process.command_line } else { &[] };
        let command = Java::of_command_line(words).command;
        Some(Process { java: Some(Java { command, ..installation }), ..process })
    }

    /// Reads the version and the vendor from the installation of an executable.
    fn installation(&mut self, candidate: &Candidate, status: &Status, exe: &Path) -> Option<Java> {
        let home = exe.parent()?.parent()?;
        // In Java 8 the `jre` directory is inside the installation.
        let outer = home.parent().filter(|_| home.ends_with("jre"));
        [Some(home), outer].into_iter().flatten().find_map(|folder| {
            let place = candidate.location(&folder.join("release"));
            let file = File::from(self.paths.open(candidate.path_owner(status), &place, FILE).ok()?);
            if !file.metadata().ok()?.is_file() {
                return None;
            }
            let mut text = Vec::new();
            file.take(MAX_RELEASE).read_to_end(&mut text).ok()?;
            let text = String::from_utf8_lossy(&text);
            let version = value_in(&text, "JAVA_VERSION").filter(|version| is_version(version))?;
            let vendor = value_in(&text, "IMPLEMENTOR").unwrap_or_default();
            Some(Java { version, vendor, home: home.to_string_lossy().into_owned(), ..Java::default() })
        })
    }
}

/// Whether a program's path looks like that of a Java launcher, such as `/usr/lib/jvm/java-17-openjdk-amd64/bin/jshell`.
fn is_called_java(exe: &Path) -> bool {
    let path = exe.as_os_str().as_encoded_bytes().to_ascii_lowercase();
    [&b"java"[..], b"jdk", b"jre", b"jvm"]
        .iter()
        .any(|word| path.windows(word.len()).any(|part| part == *word))
}

/// Whether a line of `maps` is the virtual machine's library, which may have been replaced by an update.
fn is_library(line: &[u8]) -> bool {
    line.strip_suffix(b" (deleted)").unwrap_or(line).ends_with(b"/libjvm.so")
}

/// Returns the value of a line such as `JAVA_VERSION="17.0.15"` in the file `release`.
fn value_in(release: &str, name: &str) -> Option<String> {
    let mut lines = release.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = lines.next()?.trim().trim_matches('"');
    (!value.is_empty() && value.len() < 100).then(|| value.to_owned())
}

fn is_version(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_may_be_machines_are_recognized_by_their_paths() {
        let is = |path: &str| is_called_java(Path::new(path));
        assert!(
            is("/usr/bin/java")
                && is("/opt/graal/JDK/bin/x")
                && is("/usr/lib/jvm/x")
                && is("/opt/jre8/bin/x")
        );
        assert!(!is("/usr/bin/python3") && !is("/jv/m") && !is(""));
    }

    #[test]
    fn the_library_is_recognized_by_its_name() {
        let maps = |path: &str| is_library(format!("7f0-7f8 r-xp 00000000 08:01 42     {path}").as_bytes());
        assert!(maps("/jdk/lib/server/libjvm.so") && maps("/jdk/lib/client/libjvm.so (deleted)"));
        assert!(!maps("/jdk/lib/libjvm.so.1") && !maps("/x/notlibjvm.so") && !maps(""));
    }

    #[test]
    fn the_version_is_one_or_none() {
        let version_in = |text| value_in(text, "JAVA_VERSION").filter(|version| is_version(version));
        assert_eq!(version_in("A=b\nJAVA_VERSION=\"17.0.15\"\nX=y\n").as_deref(), Some("17.0.15"));
        assert_eq!(version_in("JAVA_VERSION=\"25-ea\"").as_deref(), Some("25-ea"));
        for text in ["", "JAVA_VERSION=", "JAVA_VERSION=\"1\u{1b}[m\"", "XJAVA_VERSION=1"] {
            assert_eq!(version_in(text), None, "{text}");
        }
    }
}
