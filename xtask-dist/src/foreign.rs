//! Building for other architectures: targets, their linkers, and whether they are installed. Linkers are configured
//! through environment variables rather than a checked-in configuration, because their names differ between systems.

pub(crate) mod page;
pub(crate) mod runs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use xtask::process::{self, Tool};
use xtask::workspace::Workspace;

/// Returns an empty file that replaces the agent in programs that do not need it, which saves an optimized build.
pub(crate) fn no_agent(ws: &Workspace) -> Result<PathBuf> {
    let agent = ws.target().join("no-agent.so");
    fs::create_dir_all(ws.target())?;
    // Rewriting it would cause a rebuild.
    if !agent.is_file() {
        fs::write(&agent, "").with_context(|| format!("cannot write {}", agent.display()))?;
    }
    Ok(agent)
}

/// Disables debug information and incremental compilation, which are useless for programs that run only a few times.
pub(crate) fn lean(cargo: Tool) -> Tool {
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0")
}

/// Static, for x86-64.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// Static, for Arm.
pub(crate) const ARM_MUSL: &str = "aarch64-unknown-linux-musl";

/// Debian's compiler driver for Arm. It also links for musl, because Rust includes musl's start files and library.
pub(crate) const ARM_LINKER: &str = "aarch64-linux-gnu-gcc";

/// Both, because the program for musl contains a library for glibc.
const LINKED_BY_IT: [&str; 2] =
    ["CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER"];

/// Configures cargo to use the linker for Arm.
pub(crate) fn with_linkers(cargo: Tool) -> Tool {
    LINKED_BY_IT.iter().fold(cargo, |cargo, name| match std::env::var_os(name) {
        Some(_) => cargo,
        None => cargo.env(name, ARM_LINKER),
    })
}

/// Returns whether there is a linker for Arm: the driver, or one configured by the user.
pub(crate) fn has_linker(ws: &Workspace) -> bool {
    let named = LINKED_BY_IT.iter().all(|name| std::env::var_os(name).is_some());
    named || process::find(ws.root(), ARM_LINKER).is_some()
}

/// Returns whether the standard library for a target is installed.
pub(crate) fn is_installed(ws: &Workspace, target: &str) -> Result<bool> {
    let folder =
        ws.tool("rustc").args(&["--print", "target-libdir", "--target", target]).quiet().capture()?;
    Ok(Path::new(folder.trim()).is_dir())
}
