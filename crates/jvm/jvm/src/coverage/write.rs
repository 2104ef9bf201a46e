//! What all formats have in common: which there are, and what they are told.

use std::fmt;
use std::io::{self, Write};

use crate::coverage::model::Coverage;
use crate::coverage::{cobertura, jacoco, lcov};

/// The format of a coverage file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// LCOV tracefile.
    Lcov,
    /// JaCoCo XML.
    Jacoco,
    /// Cobertura XML.
    Cobertura,
}

/// Where the source file of a path below a folder of sources is, if it is found.
pub type Locate<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What a file says beside its coverage.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// The name of the report, or of the test.
    pub name: &'a str,
    /// The version of the program that writes it (Cobertura).
    pub version: &'a str,
    /// When the trace was made, in milliseconds since 1970 (Cobertura).
    pub timestamp_ms: u64,
    /// Folders below which sources are (Cobertura).
    pub roots: &'a [String],
    /// Where the source of this path is (`demo/Program.java`), if it is found (LCOV). The other formats have it as it is.
    pub locate: Option<&'a Locate<'a>>,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self { name: "runtap", version: env!("CARGO_PKG_VERSION"), timestamp_ms: 0, roots: &[], locate: None }
    }
}

impl fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, timestamp_ms, roots, locate } = self;
        let mut shown = f.debug_struct("WriteOptions");
        shown.field("name", name).field("version", version).field("timestamp_ms", timestamp_ms);
        shown.field("roots", roots).field("locate", &locate.is_some()).finish()
    }
}

impl WriteOptions<'_> {
    /// Where a source file of a package is.
    pub(crate) fn path(&self, package: &str, file: &str) -> String {
        let path = source_path(package, file);
        self.locate.and_then(|locate| locate(&path)).unwrap_or(path)
    }
}

/// The path of a source file below a directory of sources. Names in class files and in traces are whatever their maker
/// chose: what would lead out of the directory is left out.
pub(crate) fn source_path(package: &str, file: &str) -> String {
    let is_name = |part: &&str| {
        !matches!(*part, "" | "." | "..") && !part.contains([':', '\\']) && !part.contains(char::is_control)
    };
    let parts: Vec<&str> =
        package.split('/').chain(file.rsplit(['/', '\\']).next()).filter(is_name).collect();
    parts.join("/")
}

impl Format {
    /// Every format there is.
    pub const ALL: [Self; 3] = [Self::Lcov, Self::Jacoco, Self::Cobertura];

    /// The name that people choose it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lcov => "lcov",
            Self::Jacoco => "jacoco",
            Self::Cobertura => "cobertura",
        }
    }

    /// What it is for, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Lcov => "LCOV tracefile, for genhtml, editors and coverage services",
            Self::Jacoco => "JaCoCo XML, for what reads coverage of Java",
            Self::Cobertura => "Cobertura XML, for GitLab, Azure DevOps and Jenkins",
        }
    }

    /// The end of the file's name, with the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Lcov => ".info",
            Self::Jacoco => ".jacoco.xml",
            Self::Cobertura => ".cobertura.xml",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Writes `coverage` in this format. The writer gets many small pieces: it should be buffered.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(self, coverage: &Coverage, w: impl Write, options: &WriteOptions<'_>) -> io::Result<()> {
        match self {
            Self::Lcov => lcov::write(coverage, w, options),
            Self::Jacoco => jacoco::write(coverage, w, options),
            Self::Cobertura => cobertura::write(coverage, w, options),
        }
    }
}
