//! What is asked for: which kind of dump, with what, and under which name.

use std::path::{Path, PathBuf};

use runtap_diag::{DumpFlags, DumpType};
use runtap_os::output::{NAMES_TRIED, insert_before_extension, is_free};

/// How much of a process a dump holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All memory.
    Full,
    /// Stacks, modules and all writable memory, including the heap.
    Heap,
    /// Stacks and modules.
    Mini,
    /// As mini, without paths and other personal data.
    Triage,
}

impl Kind {
    /// Every kind, the largest first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Heap, Self::Mini, Self::Triage];

    /// What it holds.
    pub fn about(self) -> &'static str {
        match self {
            Self::Full => "All memory",
            Self::Heap => "Stacks, modules and all writable memory, including the heap",
            Self::Mini => "Stacks and modules",
            Self::Triage => "As mini, without paths and other personal data",
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Heap => "heap",
            Self::Mini => "mini",
            Self::Triage => "triage",
        }
    }

    pub(crate) fn wire(self) -> DumpType {
        match self {
            Self::Full => DumpType::FULL,
            Self::Heap => DumpType::WITH_HEAP,
            Self::Mini => DumpType::MINI,
            Self::Triage => DumpType::TRIAGE,
        }
    }
}

/// The file that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// This one, in place of what is there.
    Given(PathBuf),
    /// This name or one behind it, the first that is free.
    Fresh(PathBuf),
}

impl Wanted {
    /// The file at a path, or a fresh one called `base` in the folder there; without a path here. One of several files
    /// under one path has a process id in its name.
    pub fn at(path: Option<&Path>, base: &str, pid: Option<u32>) -> Self {
        let folder = match path {
            Some(path) if !path.is_dir() => {
                return Self::Given(pid.map_or_else(
                    || path.to_owned(),
                    |pid| insert_before_extension(path, &format!(".{pid}")),
                ));
            }
            Some(folder) => folder,
            None => Path::new(""),
        };
        let base = folder.join(base);
        let mut candidates = (1..=NAMES_TRIED).map(|n| nth(&base, n));
        Self::Fresh(candidates.find(|path| is_free(path)).unwrap_or(base))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::Fresh(path) => path,
        }
    }
}

/// The n-th name to try, from 1.
pub(crate) fn nth(base: &Path, n: u32) -> PathBuf {
    if n == 1 { base.to_owned() } else { insert_before_extension(base, &format!("_{n}")) }
}

/// A dump that is to be written.
#[derive(Debug, Clone)]
pub struct Specification {
    /// How much it holds.
    pub kind: Kind,
    /// Where it goes.
    pub wanted: Wanted,
    /// Whether `createdump` reports in detail, on the target's standard output.
    pub logging: bool,
    /// Whether there is to be a crash report beside it, as JSON.
    pub crash_report: bool,
}

impl Specification {
    /// A dump and nothing else.
    pub fn new(kind: Kind, wanted: Wanted) -> Self {
        Self { kind, wanted, logging: false, crash_report: false }
    }

    pub(crate) fn flags(&self, crash_report: bool) -> DumpFlags {
        let mut flags = DumpFlags::NONE;
        if self.logging {
            flags = flags | DumpFlags::LOGGING;
        }
        if crash_report {
            flags = flags | DumpFlags::CRASH_REPORT;
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_fresh_name_and_a_file_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let fresh = |name| Wanted::Fresh(folder.path().join(name));
        let at = || Wanted::at(Some(folder.path()), "core_1", None);
        assert_eq!(at(), fresh("core_1"));
        std::fs::write(folder.path().join("core_1"), "").unwrap();
        assert_eq!(at(), fresh("core_1_2"));
        assert_eq!(nth(Path::new("dump_1.dmp"), 2), Path::new("dump_1_2.dmp"));
        let given = |path: &str, pid| Wanted::at(Some(Path::new(path)), "core_1", pid);
        assert_eq!(given("x/y", None), Wanted::Given("x/y".into()));
        assert_eq!(given("x/y.dmp", Some(7)), Wanted::Given("x/y.7.dmp".into()));
        assert!(matches!(Wanted::at(None, "core_1", None), Wanted::Fresh(path) if path.is_relative()));
    }
}
