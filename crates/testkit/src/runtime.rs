//! Real .NET runtimes, each version in a root of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{folder, once, run};
use crate::program::Launch;
use crate::shared::{required, shared_dir};
use crate::{Skip, collector, installed, small};

/// The versions in the shared folder.
const MAJORS: [u8; 3] = [8, 9, 10];

/// .NET Core 3.1, and its folder below `target/peers`.
const CORE: (u8, &str) = (3, "dotnet-pypi-3.1.23");

/// An installed .NET runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealRuntime {
    major: u8,
    root: PathBuf,
}

impl RealRuntime {
    /// Returns .NET `major` from `target/peers`, or unpacked from the shared folder. 3 is .NET Core 3.1, which must be
    /// in `target/peers` and only runs [`small_program`](Self::small_program).
    ///
    /// # Errors
    /// If it is not available.
    ///
    /// # Panics
    /// If the shared folder exists but unpacking fails.
    pub fn available(major: u8) -> Result<Self, Skip> {
        if major == CORE.0 {
            let root = folder().join(CORE.1);
            let missing = "there is no .NET Core 3.1 in target/peers (cargo xtask peers --download)";
            return if is_root(&root) { Ok(Self { major, root }) } else { Err(Skip::because(missing)) };
        }
        let root = folder().join(format!("dotnet-{major}"));
        let missing = || {
            Skip::because(format!(
                "there is no .NET {major} in target/peers (cargo xtask peers) and no shared folder (RUNTAP_SHARED)"
            ))
        };
        let needed = || {
            let shared = shared_dir().ok_or_else(missing)?;
            installed("xz").map(|_xz| shared)
        };
        let make = |shared: PathBuf| {
            let mut unpack = Command::new("bash");
            run(unpack.arg(shared.join("runtimes/unpack")).arg(version(&shared, major)).arg(&root));
        };
        once(|| is_root(&root), needed, make)?;
        Ok(Self { major, root })
    }

    /// Returns all available versions from 8 on, oldest first.
    ///
    /// # Errors
    /// If there are none.
    ///
    /// # Panics
    /// If the shared folder exists but one of its versions is unavailable.
    pub fn all() -> Result<Vec<Self>, Skip> {
        let mut all = Vec::new();
        for major in MAJORS {
            match Self::available(major) {
                Ok(runtime) => all.push(runtime),
                Err(skip) => skip.report(),
            }
        }
        if all.is_empty() { Err(Skip::because("there is no .NET on this machine")) } else { Ok(all) }
    }

    /// Returns the newest available version.
    ///
    /// # Errors
    /// If there is none.
    ///
    /// # Panics
    /// See [`available`](Self::available).
    pub fn newest() -> Result<Self, Skip> {
        let mut skip = Skip::because("there is no .NET on this machine");
        for major in MAJORS.into_iter().rev() {
            match Self::available(major) {
                Ok(runtime) => return Ok(runtime),
                Err(why) => skip = why,
            }
        }
        Err(skip)
    }

    /// Returns the major version: 3, 8, 9 or 10.
    pub fn major(&self) -> u8 {
        self.major
    }

    /// Returns its `DOTNET_ROOT`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates a modifiable copy of the runtime below another folder: files are hard-linked, except for `createdump`,
    /// which is copied. The folder should be in the workspace's `target`, where hard links work.
    ///
    /// # Panics
    /// If files can neither be linked nor copied.
    #[must_use]
    pub fn linked_into(&self, folder: &Path) -> Self {
        let root = folder.join(format!("dotnet-{}", self.major));
        link_all(&self.root, &root).unwrap_or_else(|error| panic!("cannot fill {}: {error}", root.display()));
        Self { major: self.major, root }
    }

    /// Returns a command for `dotnet` with the necessary environment; add a program and its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.root.join("dotnet"));
        for (name, value) in self.variables() {
            command.env(name, value);
        }
        command
    }

    /// Returns the environment variables that `dotnet` needs.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("DOTNET_ROOT", self.root.clone()),
            ("DOTNET_ROLL_FORWARD", "Major".into()),
            ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1".into()),
            ("DOTNET_CLI_TELEMETRY_OPTOUT", "1".into()),
        ]
    }

    /// Returns a program of the shared folder (`spin`, `storm`, …) with these arguments.
    ///
    /// # Errors
    /// If there is no shared folder.
    pub fn program(&self, name: &str, arguments: &[&str]) -> Result<Launch, Skip> {
        let assembly = required()?.join(format!("apps/dotnet/{name}/bin/{name}.dll"));
        assert!(assembly.is_file(), "the shared folder has no program {name}");
        Ok(Launch::new(self, assembly, arguments))
    }

    /// Returns the small program of this crate (`programs/small.cs`), which runs on every version. For each line of
    /// input, it writes one event of each kind of the provider [`SMALL_PROVIDER`](Self::SMALL_PROVIDER) and prints
    /// `done`. It exits at the end of its input, and prints `enabled` when a session has enabled its events.
    ///
    /// # Errors
    /// If there is no C# compiler (mono-mcs).
    ///
    /// # Panics
    /// If compiling fails.
    pub fn small_program(&self) -> Result<Launch, Skip> {
        Ok(Launch::new(self, small::assembly()?, &[]))
    }

    /// Returns the program of this crate that keeps the garbage collector busy for a number of rounds with collections
    /// of every kind (`programs/collector.cs`). It starts when it reads a line; its truth has the pauses according to
    /// the runtime.
    ///
    /// # Errors
    /// If there is no C# compiler in the shared folder.
    ///
    /// # Panics
    /// If compiling fails.
    pub fn collector_program(&self, rounds: &str) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::assembly(collector::COLLECTOR)?, &[rounds]))
    }

    /// Returns the program of this crate that writes events of about the maximum size with the provider `Runtap-Sizes`
    /// (`programs/sizes.cs`). It starts when it reads a line; its truth has the numbers of events that were small
    /// enough (`fitting`) and of others (`too_large`).
    ///
    /// # Errors
    /// If there is no C# compiler in the shared folder.
    ///
    /// # Panics
    /// If compiling fails.
    pub fn sizes_program(&self) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::assembly(collector::SIZES)?, &[]))
    }

    /// Returns the program of this crate whose async methods wait in all known ways (`programs/awaits.cs`), one of them in this
    /// number of equal chains. It exits at the end of its input.
    ///
    /// # Errors
    /// If there is no C# compiler in the shared folder.
    ///
    /// # Panics
    /// If compiling fails.
    pub fn awaits_program(&self, chains: &str) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::assembly(collector::AWAITS)?, &[chains]))
    }

    /// Returns a program of public problem reports (`data/reports/net/apps` of the shared folder), such as `evil`. It
    /// prints `ready`.
    ///
    /// # Errors
    /// If there is no shared folder, or no C# compiler in it.
    ///
    /// # Panics
    /// If the shared folder lacks the program, or compiling fails.
    pub fn reported_program(&self, name: &str, arguments: &[&str]) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::reported_assembly(name)?, arguments))
    }

    /// The provider of the small program's events: 1 `One`, 2 `Two`, 3 `Three`.
    pub const SMALL_PROVIDER: &str = small::PROVIDER;
}

fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link_all(&from, &to)?;
        } else if entry.file_name() == "createdump" || fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

/// Returns whether a `dotnet` exists. Folders only get their final names when complete.
fn is_root(root: &Path) -> bool {
    root.join("dotnet").exists()
}

/// Returns the version of the shared folder's archive `dotnet-MAJOR.x.y-linux-x64.tar.xz`.
fn version(shared: &Path, major: u8) -> String {
    let sums =
        fs::read_to_string(shared.join("runtimes/SHA256SUMS")).expect("the shared folder lists its runtimes");
    let files = sums.lines().filter_map(|line| line.split_whitespace().nth(1));
    let mut versions =
        files.filter_map(|file| file.strip_prefix("dotnet-")?.strip_suffix("-linux-x64.tar.xz"));
    let found = versions.find(|version| version.split('.').next() == Some(&major.to_string()));
    found.unwrap_or_else(|| panic!("the shared folder has no .NET {major}")).to_owned()
}
