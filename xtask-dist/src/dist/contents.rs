//! Fills the directory that becomes an archive (docs/install.md lists the contents). Manual pages, completions and
//! licenses are written by the program itself, or by one for this machine if the released one is for another.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::release::Release;
use super::sbom;
use super::source::Source;
use super::windows;
use xtask::graph::Graph;
use xtask::workspace::Workspace;

const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// The shells for Windows; bash comes with git there.
const WINDOWS_SHELLS: [&str; 2] = ["powershell", "bash"];
/// The program's list of linked software.
pub(super) const THIRD_PARTY: &str = "THIRD-PARTY.txt";

/// Creates `folder` with its contents. `writer` is a program that this machine can run.
pub(super) fn fill(
    ws: &Workspace,
    source: &Source,
    release: &Release,
    (program, writer): (&Path, &Path),
    folder: &Path,
) -> Result<()> {
    let writer = || ws.tool(&writer.to_string_lossy()).quiet();
    make(folder)?;
    copy(program, &folder.join(release.program()))?;
    for document in DOCUMENTS {
        copy(&ws.root().join(document), &folder.join(document))?;
    }
    write(&folder.join(THIRD_PARTY), &writer().arg("licenses").capture()?)?;
    let completions = folder.join("completions");
    make(&completions)?;
    let shells = if release.is_windows() { &WINDOWS_SHELLS[..] } else { &SHELLS };
    for shell in shells {
        // Completion scripts query the program, so they are the same for all systems.
        let script = writer().args(&["completions", shell]).capture()?;
        let ending = if *shell == "powershell" { "ps1" } else { shell };
        write(&completions.join(format!("runtap.{ending}")), &script)?;
    }
    let man = folder.join("man");
    writer().args(&["man", "--out-dir"]).arg(&man).run()?;
    if release.is_windows() {
        windows::without_missing_verbs(ws, &man)?;
    }
    let lock = fs::read_to_string(ws.root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let sbom =
        sbom::document(source, release.target, &Graph::of(ws, release.target)?, &sbom::checksums(&lock));
    sbom::validate(&sbom)?;
    write(&folder.join("sbom.cdx.json"), format!("{}\n", serde_json::to_string_pretty(&sbom)?))
}

pub(super) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the files below a directory, sorted by relative path.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}
