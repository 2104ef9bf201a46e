//! Installs a real .NET in a root: the runtime of `target/peers`, a program of the shared folder, and the libraries
//! they need according to `ldd`. Nothing that runtap itself could use is installed; it is static.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::dist::contents;
use xtask::workspace::Workspace;

/// Paths below the root.
const RUNTIME: &str = "dotnet";
const PROGRAM: &str = "app";
/// The program runs for this many seconds unless it is stopped before.
pub(super) const COMMAND: [&str; 3] = ["/dotnet/dotnet", "/app/spin.dll", "120"];
pub(super) const NAME: &str = "spin";
/// A method of the program, as displayed in a stack.
pub(super) const FRAME: &str = "spin!Burn.Cycles";
pub(super) const ENVIRONMENT: [(&str, &str); 3] = [
    ("HOME", "/tmp"),
    // The program is older than the runtime, and ICU is not installed.
    ("DOTNET_ROLL_FORWARD", "Major"),
    ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"),
];

/// Installs the files. Returns what is missing, if anything.
pub(super) fn install(ws: &Workspace, root: &Path) -> Result<Option<String>> {
    let runtime = ws.peers().join("dotnet-10");
    if !runtime.join("dotnet").is_file() {
        return Ok(Some("there is no .NET 10 in target/peers (cargo xtask peers)".to_owned()));
    }
    let program = ws.shared()?.map(|shared| shared.join("apps/dotnet/spin/bin"));
    let Some(program) = program.filter(|folder| folder.is_dir()) else {
        return Ok(Some("the shared folder with its programs is not here (RUNTAP_SHARED)".to_owned()));
    };
    for (from, to) in [(&runtime, RUNTIME), (&program, PROGRAM)] {
        let to = root.join(to);
        ws.tool("cp")
            .args(&["--recursive", "--dereference", "--no-target-directory"])
            .arg(from)
            .arg(to)
            .quiet()
            .run()?;
    }
    for library in libraries(ws, &runtime)? {
        let place = root.join(library.strip_prefix("/")?);
        // Keep the distribution's own libraries.
        if !place.exists() {
            contents::make(place.parent().context("a library lies in a directory")?)?;
            contents::copy(&library, &place)?;
        }
    }
    Ok(None)
}

/// Returns the libraries that the runtime's own libraries are linked with, and the loader.
fn libraries(ws: &Workspace, runtime: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for file in contents::files(runtime)? {
        let is_library = file.extension().is_some_and(|it| it == "so") || file == Path::new("dotnet");
        // A library for a tracer that is not installed.
        if is_library && !file.ends_with("libcoreclrtraceptprovider.so") {
            let said = ws.tool("ldd").arg(runtime.join(&file)).quiet().capture()?;
            // The runtime finds its own libraries in its folder.
            found.extend(said.lines().filter_map(needed).filter(|path| !path.starts_with(runtime)));
        }
    }
    Ok(found)
}

/// Parses a line of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x…)`, or `/lib64/ld.so (0x…)`.
fn needed(line: &str) -> Option<PathBuf> {
    let found = line.split_once("=> ").map_or_else(|| line.trim(), |(_, path)| path);
    let (path, _) = found.split_once(" (")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_libraries_are_found() {
        let path = |line| needed(line).map(|path| path.display().to_string());
        assert_eq!(path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)").as_deref(), Some("/lib/libc.so.6"));
        assert_eq!(path("\t/lib64/ld.so (0x00007f)").as_deref(), Some("/lib64/ld.so"));
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tlibx.so => not found"), None);
    }
}
