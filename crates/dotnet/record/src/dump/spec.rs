//! The specification of a dump.

use std::path::{Path, PathBuf};

use runtap_diag::{DumpFlags, DumpType};
use runtap_os::output::{NAMES_TRIED, insert_before_extension, is_free};

/// The kind of a dump, which determines its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpKind {
    /// All memory.
    Full,
    /// Stacks, modules and all writable memory, including the heap.
    Heap,
    /// Stacks and modules.
    Mini,
    /// As mini, without paths and other personal data.
    Triage,
}

impl DumpKind {
    /// All kinds, largest first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Heap, Self::Mini, Self::Triage];

    /// Returns a description of the contents.
    pub fn about(self) -> &'static str {
        match self {
            Self::Full => "All memory",
            Self::Heap => "Stacks, modules and all writable memory, including the heap",
            Self::Mini => "Stacks and modules",
            Self::Triage => "As mini, without paths and other personal data",
        }
    }

    /// Returns the name.
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

/// The destination of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// This path. An existing file is replaced.
    Exact(PathBuf),
    /// This path, or the first unused numbered variant of it.
    Unused(PathBuf),
}

impl Destination {
    /// Returns the destination for a path. If it is a directory, or if there is no path, the file is named after `base`. `pid` is
    /// inserted into the name if several dumps have one path.
    pub fn at(path: Option<&Path>, base: &str, pid: Option<u32>) -> Self {
        let folder = match path {
            Some(path) if !path.is_dir() => {
                return Self::Exact(pid.map_or_else(
                    || path.to_owned(),
                    |pid| insert_before_extension(path, &format!(".{pid}")),
                ));
            }
            Some(folder) => folder,
            None => Path::new(""),
        };
        let base = folder.join(base);
        let mut candidates = (1..=NAMES_TRIED).map(|n| nth(&base, n));
        Self::Unused(candidates.find(|path| is_free(path)).unwrap_or(base))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Exact(path) | Self::Unused(path) => path,
        }
    }
}

/// Returns the n-th variant of a name, starting at 1.
pub(crate) fn nth(base: &Path, n: u32) -> PathBuf {
    if n == 1 { base.to_owned() } else { insert_before_extension(base, &format!("_{n}")) }
}

/// The specification of a dump.
#[derive(Debug, Clone)]
pub struct Specification {
    /// The kind of dump.
    pub kind: DumpKind,
    /// The destination.
    pub wanted: Destination,
    /// Whether `createdump` writes verbose output to the target's standard output.
    pub logging: bool,
    /// Whether a crash report in JSON format is written beside the dump.
    pub crash_report: bool,
}

impl Specification {
    /// Creates the specification of a dump without extras.
    pub fn new(kind: DumpKind, wanted: Destination) -> Self {
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
    fn a_folder_gets_an_unused_name_and_a_file_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let fresh = |name| Destination::Unused(folder.path().join(name));
        let at = || Destination::at(Some(folder.path()), "core_1", None);
        assert_eq!(at(), fresh("core_1"));
        std::fs::write(folder.path().join("core_1"), "").unwrap();
        assert_eq!(at(), fresh("core_1_2"));
        assert_eq!(nth(Path::new("dump_1.dmp"), 2), Path::new("dump_1_2.dmp"));
        let given = |path: &str, pid| Destination::at(Some(Path::new(path)), "core_1", pid);
        assert_eq!(given("x/y", None), Destination::Exact("x/y".into()));
        assert_eq!(given("x/y.dmp", Some(7)), Destination::Exact("x/y.7.dmp".into()));
        assert!(
            matches!(Destination::at(None, "core_1", None), Destination::Unused(path) if path.is_relative())
        );
    }
}
