//! The list of released systems: their names (which the usage of the subcommand repeats), the targets of each archive,
//! the linkers that are needed, and the reasons why one cannot be built here.

use std::path::Path;

use anyhow::Result;

use crate::foreign;
use xtask::process;
use xtask::workspace::Workspace;

/// A system that a release is built for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// Suffix of the archive's name.
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    /// Target of the JVM agent that the program contains.
    pub(super) agent: Option<&'static str>,
    /// Linker of each target, for other hosts.
    pub(super) linkers: &'static [(&'static str, &'static str)],
    /// Debian's name of the architecture.
    pub(super) debian: Option<&'static str>,
    pub(super) form: Form,
}

/// The kind of archive for a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    TarXz,
    Zip,
}

/// The static program with glibc is the one that is tested and measured. For aarch64, musl can be linked without a C
/// library of that system.
pub(super) const RELEASES: &[Release] = &[
    Release {
        name: "linux-x86_64",
        target: "x86_64-unknown-linux-gnu",
        agent: Some("x86_64-unknown-linux-gnu"),
        linkers: &[("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc")],
        debian: Some("amd64"),
        form: Form::TarXz,
    },
    Release {
        name: "linux-aarch64",
        target: "aarch64-unknown-linux-musl",
        agent: Some("aarch64-unknown-linux-gnu"),
        linkers: &[
            ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
            ("aarch64-unknown-linux-musl", "rust-lld"),
        ],
        debian: Some("arm64"),
        form: Form::TarXz,
    },
    Release {
        name: "windows-x86_64",
        target: "x86_64-pc-windows-gnu",
        agent: None,
        linkers: &[("x86_64-pc-windows-gnu", "x86_64-w64-mingw32-gcc")],
        debian: None,
        form: Form::Zip,
    },
];

/// The linker that comes with the compiler, which finds it by itself.
const COMPILERS_OWN: &str = "rust-lld";

impl Release {
    pub(super) fn is_windows(&self) -> bool {
        self.target.contains("-windows-")
    }

    pub(super) fn is_linux(&self) -> bool {
        self.target.contains("-linux-")
    }

    /// Returns the file name of the program.
    pub(super) fn program(&self) -> &'static str {
        if self.is_windows() { "runtap.exe" } else { "runtap" }
    }

    /// Returns whether this machine can run the program.
    pub(super) fn runs_here(&self) -> bool {
        let mut parts = self.target.split('-');
        let arch = parts.next() == Some(std::env::consts::ARCH);
        arch && parts.any(|part| part == std::env::consts::OS)
    }

    /// Returns all targets to compile for.
    fn targets(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.target), self.agent.filter(|agent| *agent != self.target)].into_iter().flatten()
    }

    /// Returns the linkers that must be configured on a machine of type `host`.
    pub(super) fn foreign_linkers(&self, host: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.linkers.iter().copied().filter(move |(target, _)| *target != host)
    }

    /// Returns why it cannot be built on this machine. `None` if it can.
    pub(super) fn missing(&self, ws: &Workspace, host: &str) -> Result<Option<String>> {
        for target in self.targets() {
            if !foreign::is_installed(ws, target)? {
                return Ok(Some(format!(
                    "its standard library is not installed (rustup target add {target})"
                )));
            }
        }
        let absent = |linker: &str| linker != COMPILERS_OWN && process::find(ws.root(), linker).is_none();
        let linker = self.foreign_linkers(host).find(|(_, linker)| absent(linker));
        Ok(linker.map(|(target, linker)| format!("the linker for {target} is not installed: {linker}")))
    }
}

/// Returns the name of an archive without its extension, which is also that of the directory in it.
pub(super) fn name(version: &str, release: &Release) -> String {
    format!("runtap-{version}-{}", release.name)
}

/// Returns whether a file of a release is listed with its checksum.
pub(super) fn is_offered(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    file.is_file() && !name.starts_with('.') && name != "SHA256SUMS"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross;
    use xtask::cmd::COMMANDS;

    #[test]
    fn every_target_has_a_linker_and_is_compiled_by_ci() {
        for release in RELEASES {
            for target in release.targets() {
                assert!(release.linkers.iter().any(|(known, _)| *known == target), "{target}");
            }
            assert_eq!(release.is_windows(), release.form == Form::Zip, "{}", release.name);
            let known = cross::is_known(release.target) || release.target == "x86_64-unknown-linux-gnu";
            assert!(known, "{}", release.target);
        }
    }

    #[test]
    fn every_release_can_be_chosen() {
        let usage = COMMANDS.iter().find(|command| command.name == "dist").unwrap().usage;
        let names: Vec<&str> = RELEASES.iter().map(|release| release.name).collect();
        assert!(usage.starts_with(&format!("[{}]", names.join("|"))), "{usage}");
    }

    #[test]
    fn the_host_needs_no_linker_of_its_own() {
        let first = &RELEASES[0];
        assert_eq!(first.foreign_linkers("x86_64-unknown-linux-gnu").count(), 0);
        assert_eq!(first.foreign_linkers("aarch64-unknown-linux-gnu").count(), 1);
    }
}
