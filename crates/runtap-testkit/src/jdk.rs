//! Java: the JDKs of this machine, and the runtimes that `cargo xtask peers --download` brings.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::folder;
use crate::{Skip, run};

/// A JDK, or a runtime without a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    home: PathBuf,
    major: u32,
}

impl Jdk {
    /// One of each version that is here, the oldest first: `JAVA_HOME`, the one on the `PATH`, and those of the peers
    /// (`jdk-21`, …).
    ///
    /// # Errors
    /// There is none.
    pub fn all() -> Result<Vec<Self>, Skip> {
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&path)
            .filter_map(|folder| folder.join("java").canonicalize().ok())
            .filter_map(|java| Some(java.parent()?.parent()?.to_owned()));
        let peers = fs::read_dir(folder()).into_iter().flatten().flatten().map(|entry| entry.path());
        let peers = peers
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jdk-")));
        let homes = env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().chain(on_path).chain(peers);
        let mut found: Vec<Self> = homes.filter_map(|home| Self::at(&home)).collect();
        found.sort_by_key(|jdk| jdk.major);
        found.dedup_by_key(|jdk| jdk.major);
        if found.is_empty() {
            return Err(Skip::because("there is no JDK (JAVA_HOME, java on the PATH)"));
        }
        Ok(found)
    }

    /// The newest that has a compiler too.
    ///
    /// # Errors
    /// There is none.
    pub fn with_compiler() -> Result<Self, Skip> {
        let found = Self::all()?.into_iter().rfind(|jdk| jdk.home.join("bin/javac").is_file());
        found.ok_or_else(|| Skip::because("there is no JDK with a compiler (javac)"))
    }

    fn at(home: &Path) -> Option<Self> {
        // `JAVA_VERSION="17.0.15"`
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let major = version.split(['.', '"', '-', '+']).next()?.parse().ok()?;
        home.join("bin/java").is_file().then(|| Self { home: home.to_owned(), major })
    }

    /// Its directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Its version: 17.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The command of the virtual machine.
    pub fn java(&self) -> Command {
        Command::new(self.home.join("bin/java"))
    }

    /// Compiles these files for Java 11 and later into a directory.
    ///
    /// # Panics
    /// If they do not compile.
    pub fn compile<P: AsRef<Path>>(&self, sources: impl IntoIterator<Item = P>, into: &Path) {
        let mut javac = Command::new(self.home.join("bin/javac"));
        javac.args(["--release", "11", "-g", "-d"]).arg(into);
        for source in sources {
            javac.arg(source.as_ref());
        }
        run(javac).expect_code(0);
    }
}
