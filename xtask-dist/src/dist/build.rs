//! Builds the program for one system with the profile of released files, so that the build directory leaves no trace.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::release::Release;
use super::source::Source;
use xtask::cmd::size;
use xtask::process::Tool;
use xtask::workspace::{SHIPPED, Workspace};

/// Separator of flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// Keeps mingw's linker from writing the current time into the file header. Symbols contain names of temporary
/// directories (import libraries made by rustc), and nothing reads them on Windows; `strip` overrides the profile.
const FOR_WINDOWS: [&str; 2] = ["-Clink-arg=-Wl,--no-insert-timestamp", "-Cstrip=symbols"];

/// Builds the program and returns its path.
pub(super) fn program(ws: &Workspace, source: &Source, release: &Release) -> Result<PathBuf> {
    let flags = flags(ws, source, release)?;
    let cargo = |args: &[&str]| environment(ws.cargo(args).args(&["--locked"]), source, release, &flags);
    let mut program = cargo(&["build", "--profile", SHIPPED, "-p", "runtap", "--target", release.target]);
    if let Some(target) = release.agent {
        // Built here and not by the program's build script, which would not get these flags.
        cargo(&["build", "--lib", "-p", "runtap-jvm-agent", "--profile", "agent", "--target", target])
            .run()?;
        let library = ws.target().join(target).join("agent/libruntap_jvm_agent.so");
        program = program.env("RUNTAP_JVM_AGENT_LIBRARY", library);
    }
    program.run()?;
    let path = ws.target().join(release.target).join(SHIPPED).join(release.program());
    if release.is_linux() {
        size::pack(ws, &path)?;
    }
    Ok(path)
}

fn environment(mut tool: Tool, source: &Source, release: &Release, flags: &str) -> Tool {
    tool = tool.env("CARGO_ENCODED_RUSTFLAGS", flags).env("RUNTAP_COMMIT", &source.commit);
    for (target, linker) in release.foreign_linkers(&source.host) {
        let name = target.to_uppercase().replace('-', "_");
        tool = tool.env(&format!("CARGO_TARGET_{name}_LINKER"), linker);
    }
    tool
}

/// Replaces the workspace directory, cargo's, and that of the compiler's sources by names that are the same everywhere.
fn flags(ws: &Workspace, source: &Source, release: &Release) -> Result<String> {
    let sysroot = ws.tool("rustc").args(&["--print", "sysroot"]).quiet().capture()?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let cargo = cargo.context("neither CARGO_HOME nor a home directory is known")?;
    let renamed = [
        (ws.root().to_owned(), "/runtap".to_owned()),
        (cargo, "/cargo".to_owned()),
        (library, format!("/rustc/{}", source.compiler_commit)),
    ];
    let mut flags: Vec<String> =
        renamed.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    if release.is_windows() {
        flags.extend(FOR_WINDOWS.map(str::to_owned));
    }
    Ok(flags.join(SEPARATOR))
}
