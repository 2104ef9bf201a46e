//! What builds for other architectures: targets, their linkers, and whether they are here.
//!
//! Owns: the environment by which cargo finds a linker for a foreign target. Nothing of that is in a checked-in
//! configuration: it would hold for everybody, whatever their linkers are called.

pub(crate) mod page;
pub(crate) mod runs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::process::{self, Tool};
use crate::workspace::Workspace;

/// An empty file in the place of the agent that the program carries, where nobody uses that: to build it optimizes it.
pub(crate) fn no_agent(ws: &Workspace) -> Result<PathBuf> {
    let agent = ws.target().join("no-agent.so");
    fs::create_dir_all(ws.target())?;
    // Written anew, it would be newer than what was built with it.
    if !agent.is_file() {
        fs::write(&agent, "").with_context(|| format!("cannot write {}", agent.display()))?;
    }
    Ok(agent)
}

/// What is built to be run a few times has no use for line numbers, nor for what makes its next
/// build quicker.
pub(crate) fn lean(cargo: Tool) -> Tool {
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0")
}

/// Static, for this processor.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// Arm, static.
pub(crate) const ARM_MUSL: &str = "aarch64-unknown-linux-musl";

/// Debian's compiler driver for Arm. It links for musl as well: Rust brings musl's start files and library along.
pub(crate) const ARM_LINKER: &str = "aarch64-linux-gnu-gcc";

/// Both, because the program for musl carries a library for glibc.
const LINKED_BY_IT: [&str; 2] =
    ["CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER"];

/// The same cargo, which knows the linker for Arm.
pub(crate) fn with_linkers(cargo: Tool) -> Tool {
    LINKED_BY_IT.iter().fold(cargo, |cargo, name| match std::env::var_os(name) {
        Some(_) => cargo,
        None => cargo.env(name, ARM_LINKER),
    })
}

/// Whether something links for Arm: the driver, or what the user has named.
pub(crate) fn has_linker(ws: &Workspace) -> bool {
    let named = LINKED_BY_IT.iter().all(|name| std::env::var_os(name).is_some());
    named || process::find(ws.root(), ARM_LINKER).is_some()
}

/// Whether the compiler has a standard library for the target.
pub(crate) fn is_installed(ws: &Workspace, target: &str) -> Result<bool> {
    let folder =
        ws.tool("rustc").args(&["--print", "target-libdir", "--target", target]).quiet().capture()?;
    Ok(Path::new(folder.trim()).is_dir())
}
