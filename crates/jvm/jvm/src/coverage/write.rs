//! The coverage formats and their common options.

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

/// A function that returns the location of a source file by its path below a source folder; `None` if it is not
/// found.
pub type Locate<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The information in a coverage file besides the coverage.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// The name of the report, or of the test.
    pub name: &'a str,
    /// The version of the program that writes the file (Cobertura).
    pub version: &'a str,
    /// The time of the trace, in milliseconds since 1970 (Cobertura).
    pub timestamp_ms: u64,
    /// The source folders (Cobertura).
    pub roots: &'a [String],
    /// Locates the source file of a path such as `demo/Program.java` (LCOV). Other formats contain the path itself.
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
    /// Returns the location of a source file of a package.
    pub(crate) fn path(&self, package: &str, file: &str) -> String {
        let path = source_path(package, file);
        self.locate.and_then(|locate| locate(&path)).unwrap_or(path)
    }
}

/// Returns the path of a source file below a source folder. Names in class files and traces may be arbitrary, so
/// parts that would lead out of the folder are removed.
pub(crate) fn source_path(package: &str, file: &str) -> String {
    let is_name = |part: &&str| {
        !matches!(*part, "" | "." | "..") && !part.contains([':', '\\']) && !part.contains(char::is_control)
    };
    let parts: Vec<&str> =
        package.split('/').chain(file.rsplit(['/', '\\']).next()).filter(is_name).collect();
    parts.join("/")
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Lcov, Self::Jacoco, Self::Cobertura];

    /// Returns the name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lcov => "lcov",
            Self::Jacoco => "jacoco",
            Self::Cobertura => "cobertura",
        }
    }

    /// Returns a short description of the format.
    pub fn about(self) -> &'static str {
        match self {
            Self::Lcov => "LCOV tracefile, for genhtml, editors and coverage services",
            Self::Jacoco => "JaCoCo XML, for tools that read Java coverage",
            Self::Cobertura => "Cobertura XML, for GitLab, Azure DevOps and Jenkins",
        }
    }

    /// Returns the file extension, with the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Lcov => ".info",
            Self::Jacoco => ".jacoco.xml",
            Self::Cobertura => ".cobertura.xml",
        }
    }

    /// Returns the format with this name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Writes `coverage` in this format. The writer should be buffered, because it receives many small writes.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn write(self, coverage: &Coverage, w: impl Write, options: &WriteOptions<'_>) -> io::Result<()> {
        match self {
            Self::Lcov => lcov::write(coverage, w, options),
            Self::Jacoco => jacoco::write(coverage, w, options),
            Self::Cobertura => cobertura::write(coverage, w, options),
        }
    }
}
