//! `cargo xtask dist`: the archive that a release offers, in `target/dist`, with its SHA-256.
//!
//! Owns: what is in it: the binary, its man pages and completions (which the binary writes itself), the licences and
//! the README. Refuses to: build with anything but the release profile, or to differ from run to run: owners, order
//! and times are fixed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::args::Args;
use crate::cmd::{size, test};
use crate::output;
use crate::workspace::Workspace;

const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    test::build(ws)?;
    size::size(ws)?;
    size::linking(ws)?;
    let binary = ws.release_binary();
    let said = ws.tool(&binary.to_string_lossy()).args(&["version", "--format", "json"]).capture()?;
    let said: serde_json::Value = serde_json::from_str(&said).context("`runtap version` printed no JSON")?;
    let word = |name: &str| said[name].as_str().with_context(|| format!("`runtap version` names no {name}"));
    let name = format!("runtap-{}-{}", word("version")?, word("target")?);

    let dist = ws.target().join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    copy(&binary, &folder)?;
    for document in DOCUMENTS {
        copy(&ws.root().join(document), &folder)?;
    }
    for shell in SHELLS {
        let script = ws.tool(&binary.to_string_lossy()).args(&["completions", shell]).capture()?;
        fs::write(folder.join(format!("runtap.{shell}")), script)?;
    }
    ws.tool(&binary.to_string_lossy()).args(&["man", "--out-dir"]).arg(folder.join("man")).run()?;
    let archive = pack(ws, &dist, &name)?;
    output::note(&format!("{}", archive.display()));
    Ok(())
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let name = file.file_name().context("a file has a name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

fn pack(ws: &Workspace, dist: &Path, name: &str) -> Result<PathBuf> {
    // The commit's time, so that the same commit gives the same archive.
    let time = ws.tool("git").args(&["log", "-1", "--format=%ct"]).quiet().capture()?;
    let archive = format!("{name}.tar.xz");
    ws.tool("tar")
        .args(&["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"])
        .arg(format!("--mtime=@{}", time.trim()))
        .args(&["-cJf", &archive, name])
        .folder(dist)
        .run()?;
    let sum = ws.tool("sha256sum").arg(&archive).folder(dist).capture()?;
    fs::write(dist.join(format!("{archive}.sha256")), sum)?;
    Ok(dist.join(archive))
}
