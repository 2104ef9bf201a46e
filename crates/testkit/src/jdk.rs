//! The installed JDKs, and those that `cargo xtask peers --download` downloads.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::peers::{folder, once};
use crate::{Skip, run};

/// A JDK, or a Java runtime without a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    home: PathBuf,
    major: u32,
}

impl Jdk {
    /// Returns one JDK of each installed version, the oldest first: from `JAVA_HOME`, the `PATH` and the peers
    /// (`jdk-21`, …).
    ///
    /// # Errors
    /// If there is none.
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

    /// Returns the newest one that has a compiler.
    ///
    /// # Errors
    /// If there is none.
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

    /// Returns its directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns its major version, such as 17.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Returns the command that runs the virtual machine.
    pub fn java(&self) -> Command {
        Command::new(self.home.join("bin/java"))
    }

    /// Compiles files for Java 11 and later into a directory.
    ///
    /// # Panics
    /// If compiling fails.
    pub fn compile<P: AsRef<Path>>(&self, sources: impl IntoIterator<Item = P>, into: &Path) {
        let sources: Vec<P> = sources.into_iter().collect();
        let compiled = self.compiled(&sources);
        let copied = copy_classes(&compiled, into);
        copied.unwrap_or_else(|error| panic!("cannot copy {}: {error}", compiled.display()));
    }

    /// Compiles once for all test processes, for which compiling would take longer than the tests.
    fn compiled<P: AsRef<Path>>(&self, sources: &[P]) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(self.home.as_os_str().as_encoded_bytes());
        for source in sources {
            let source = source.as_ref();
            let text = fs::read(source).unwrap_or_else(|e| panic!("cannot read {}: {e}", source.display()));
            hash.update(source.file_name().unwrap_or_default().as_encoded_bytes());
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        let compiled = folder().join(format!("classes-{:x}", hash.finalize()));
        let make = |()| {
            let part =
                tempfile::Builder::new().prefix(".part-").tempdir_in(folder()).expect("a folder for parts");
            let classes = part.path().join("classes");
            let mut javac = Command::new(self.home.join("bin/javac"));
            javac.args(["--release", "11", "-g", "-d"]).arg(&classes);
            javac.args(sources.iter().map(AsRef::as_ref));
            run(javac).expect_code(0);
            fs::rename(&classes, &compiled).expect("move the new folder in");
        };
        once(|| compiled.is_dir(), || Ok(()), make).expect("nothing is needed for it");
        compiled
    }
}

fn copy_classes(from: &Path, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = into.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_classes(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}
