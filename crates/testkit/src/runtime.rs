//! Real .NET runtimes, each version in a root of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{folder, once, run};
use crate::program::Launch;
use crate::shared::{required, shared_dir};
use crate::{Skip, collector, installed, small};

/// The versions that the shared folder has.
const MAJORS: [u8; 3] = [8, 9, 10];

/// .NET Core 3.1, and its folder below `target/peers`.
const CORE: (u8, &str) = (3, "dotnet-pypi-3.1.23");

/// A .NET runtime on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealRuntime {
    major: u8,
    root: PathBuf,
}

impl RealRuntime {
    /// .NET `major`: from `target/peers`, else unpacked from the shared folder. 3 is .NET Core 3.1, which has to be in
    /// `target/peers` and runs [`small_program`](Self::small_program) only.
    ///
    /// # Errors
    /// It is not here and can't be had.
    ///
    /// # Panics
    /// When the shared folder is there and unpacking fails.
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

    /// Every version from 8 on that can be had, oldest first.
    ///
    /// # Errors
    /// None at all.
    ///
    /// # Panics
    /// When the shared folder is there and one of its versions is not to be had.
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

    /// The newest version that can be had.
    ///
    /// # Errors
    /// None at all.
    ///
    /// # Panics
    /// As [`available`](Self::available).
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

    /// 3, 8, 9 or 10.
    pub fn major(&self) -> u8 {
        self.major
    }

    /// Its `DOTNET_ROOT`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The same runtime below another folder, to be changed there: its files are linked, but for `createdump`, which is
    /// a copy. The folder should be in the workspace's `target`, where linking works.
    ///
    /// # Panics
    /// When files can neither be linked nor copied.
    #[must_use]
    pub fn linked_into(&self, folder: &Path) -> Self {
        let root = folder.join(format!("dotnet-{}", self.major));
        link_all(&self.root, &root).unwrap_or_else(|error| panic!("cannot fill {}: {error}", root.display()));
        Self { major: self.major, root }
    }

    /// `dotnet`, with the variables that it needs; add a program and its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.root.join("dotnet"));
        for (name, value) in self.variables() {
            command.env(name, value);
        }
        command
    }

    /// What `dotnet` needs in its environment.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("DOTNET_ROOT", self.root.clone()),
            ("DOTNET_ROLL_FORWARD", "Major".into()),
            ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1".into()),
            ("DOTNET_CLI_TELEMETRY_OPTOUT", "1".into()),
        ]
    }

    /// A program of the shared folder (`spin`, `storm`, …) with these arguments.
    ///
    /// # Errors
    /// No shared folder.
    pub fn program(&self, name: &str, arguments: &[&str]) -> Result<Launch, Skip> {
        let assembly = required()?.join(format!("apps/dotnet/{name}/bin/{name}.dll"));
        assert!(assembly.is_file(), "the shared folder has no program {name}");
        Ok(Launch::new(self, assembly, arguments))
    }

    /// The test kit's own small program (`programs/small.cs`), which runs on every version. Each line of input is a
    /// round: one event of each kind of the provider [`SMALL_PROVIDER`](Self::SMALL_PROVIDER), then `done`. It ends
    /// with its input, and says `enabled` when a session has switched its events on.
    ///
    /// # Errors
    /// No C# compiler (mono-mcs).
    ///
    /// # Panics
    /// When the compiler does not take it.
    pub fn small_program(&self) -> Result<Launch, Skip> {
        Ok(Launch::new(self, small::assembly()?, &[]))
    }

    /// The test kit's own program that keeps the garbage collector busy for so many rounds (`programs/collector.cs`):
    /// collections of every kind. It begins when a line is read; its truth has the runtime's own account of the pauses.
    ///
    /// # Errors
    /// No C# compiler (the shared folder's).
    ///
    /// # Panics
    /// When the compiler does not take it.
    pub fn collector_program(&self, rounds: &str) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::assembly(collector::COLLECTOR)?, &[rounds]))
    }

    /// The test kit's own program that writes events around the largest size (`programs/sizes.cs`), with the provider
    /// `Runtap-Sizes`. It begins when a line is read; its truth has how many were small enough (`fitting`) and how many were
    /// not (`too_large`).
    ///
    /// # Errors
    /// No C# compiler (the shared folder's).
    ///
    /// # Panics
    /// When the compiler does not take it.
    pub fn sizes_program(&self) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::assembly(collector::SIZES)?, &[]))
    }

    /// A program of public trouble reports (`data/reports/net/apps` of the shared folder), such as `evil`. It says `ready`.
    ///
    /// # Errors
    /// No shared folder, or no C# compiler in it.
    ///
    /// # Panics
    /// When the folder has no such program, or the compiler does not take it.
    pub fn reported_program(&self, name: &str, arguments: &[&str]) -> Result<Launch, Skip> {
        Ok(Launch::new(self, collector::reported_assembly(name)?, arguments))
    }

    /// Whose events the small program writes: 1 `One`, 2 `Two`, 3 `Three`.
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

/// Whether a `dotnet` is there. A folder is renamed to its name only when it is whole.
fn is_root(root: &Path) -> bool {
    root.join("dotnet").exists()
}

/// The version of the shared folder's archive `dotnet-MAJOR.x.y-linux-x64.tar.xz`.
fn version(shared: &Path, major: u8) -> String {
    let sums =
        fs::read_to_string(shared.join("runtimes/SHA256SUMS")).expect("the shared folder lists its runtimes");
    let files = sums.lines().filter_map(|line| line.split_whitespace().nth(1));
    let mut versions =
        files.filter_map(|file| file.strip_prefix("dotnet-")?.strip_suffix("-linux-x64.tar.xz"));
    let found = versions.find(|version| version.split('.').next() == Some(&major.to_string()));
    found.unwrap_or_else(|| panic!("the shared folder has no .NET {major}")).to_owned()
}
