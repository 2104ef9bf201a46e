//! `cargo xtask dist`: builds the release files in `target/dist`: an archive for each system that can be built for,
//! Debian packages, a `Containerfile`, and `SHA256SUMS`. docs/releasing.md explains how to make a release.
//!
//! The systems are in `dist/release.rs`, the contents of archives in `dist/contents.rs`. `--check` builds the commit in
//! another directory and compares. `--try` runs the program in an empty root, with a real .NET unless
//! `--without-dotnet` is given. Only the profile of released files is used, and results are reproducible: owners, order and times
//! are fixed, and directories leave no trace.

mod build;
mod check;
mod contents;
mod deb;
mod pack;
mod release;
mod sbom;
mod source;
mod trial;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::release::{Form, RELEASES, Release};
use self::source::Source;
use xtask::args::Args;
use xtask::cmd::size;
use xtask::elf;
use xtask::output;
use xtask::workspace::Workspace;

const SUMS: &str = "SHA256SUMS";

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    let source = Source::of(ws)?;
    let dist = ws.target().join("dist");
    if args.has("--try") {
        return trial::run(ws, &source, &dist, args.has("--without-dotnet"));
    }
    if args.has("--check") {
        check::committed(ws)?;
    }
    make(ws, &source, args.word(), &dist)?;
    if args.has("--check") {
        check::check(ws, &source, args.word(), &dist)?;
    }
    Ok(())
}

/// Builds everything, or only what is for the `chosen` system.
fn make(ws: &Workspace, source: &Source, chosen: Option<&str>, dist: &Path) -> Result<()> {
    if dist.exists() {
        fs::remove_dir_all(dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    contents::make(dist)?;
    let mut built: Vec<(&Release, PathBuf)> = Vec::new();
    let mut skipped = Vec::new();
    let is_chosen = |release: &Release| chosen.is_none_or(|name| name == release.name);
    // A program for this machine is always built, because it writes the manual pages.
    for release in RELEASES.iter().filter(|release| is_chosen(release) || release.runs_here()) {
        match release.missing(ws, &source.host)? {
            Some(why) => skipped.push(format!("{}: skipped, {why}", release.name)),
            None => built.push((release, build::program(ws, source, release)?)),
        }
    }
    let writer = built.iter().find(|(release, _)| release.runs_here()).map(|(_, program)| program.clone());
    let writer = writer.with_context(|| {
        format!("no release is for this machine, where one has to write the manual pages; {skipped:?}")
    })?;
    for (release, program) in built.iter().filter(|(release, _)| is_chosen(release)) {
        judge(release, program)?;
        let name = release::name(&source.version, release);
        let folder = dist.join(&name);
        contents::fill(ws, source, release, (program, &writer), &folder)?;
        match release.form {
            Form::TarXz => {
                pack::tar_xz(ws, source.time, dist, &[&name], &dist.join(format!("{name}.tar.xz")))?;
            }
            Form::Zip => pack::zip(source.time, dist, &name, &dist.join(format!("{name}.zip")))?,
        }
        if let Some(architecture) = release.debian {
            deb::package(ws, source, architecture, (&folder, dist))?;
        }
        fs::remove_dir_all(&folder)?;
    }
    contents::copy(&ws.root().join("Containerfile"), &dist.join("Containerfile"))?;
    let sums = sums(ws, dist)?;
    contents::write(&dist.join(SUMS), &sums)?;
    output::note(&format!("\n{}:\n{}", dist.display(), sums.trim_end()));
    for line in &skipped {
        output::note(line);
    }
    Ok(())
}

/// Checks the properties of a released program.
fn judge(release: &Release, program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    output::note(release.name);
    size::within(&bytes)?;
    if release.is_windows() {
        return Ok(());
    }
    let linking = elf::linking(&bytes)?;
    if !linking.is_static() {
        bail!("{}: the program is not static: {linking:?} (docs/design/static-binary.md)", release.name);
    }
    Ok(())
}

/// Returns a line for each file, like `sha256sum`.
fn sums(ws: &Workspace, dist: &Path) -> Result<String> {
    let mut names: Vec<String> = Vec::new();
    for file in contents::files(dist)? {
        if release::is_offered(&dist.join(&file)) {
            names.push(file.to_string_lossy().into_owned());
        }
    }
    ws.tool("sha256sum").arg("--").args(&names).folder(dist).quiet().capture()
}
