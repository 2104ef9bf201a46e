//! `cargo xtask wine`: `runtap.exe` on the interface of Windows, with real named pipes between its processes.
//!
//! Owns: building it and what it needs (mingw's compiler), a prefix of Wine's own below `target/wine`, and the table of
//! what ran. Refuses to: install anything, and to touch a Wine that is not its own.

mod program;
mod trials;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::program::Wine;
use self::trials::TRIALS;
use crate::args::Args;
use crate::output;
use crate::process::find;
use crate::step::Outcome;
use crate::workspace::Workspace;

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Debian's package has no link to it in the search path.
const FOLDER: &str = "/usr/lib/wine";

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    match check(ws)? {
        Outcome::Skipped(why) => bail!("{why}"),
        _ => Ok(()),
    }
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let skipped = |what: &str| Ok(Outcome::Skipped(what.to_owned()));
    let Some(wine) = tool(ws, "wine64").or_else(|| tool(ws, "wine")) else {
        return skipped("there is no wine64");
    };
    let Some(server) = ["wineserver64", "wineserver"].iter().find_map(|name| tool(ws, name)) else {
        return skipped("there is no wineserver");
    };
    if find(ws.root(), COMPILER).is_none() {
        return skipped("there is no mingw compiler (gcc-mingw-w64-x86-64)");
    }
    if !super::foreign::is_installed(ws, TARGET)? {
        return skipped(
            "the standard library for Windows is not here (rustup target add x86_64-pc-windows-gnu)",
        );
    }
    let folder = ws.target().join("wine");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    build(ws, &folder)?;
    let wine = Wine::new(wine, server, folder.clone());
    wine.prepare()?;
    let (table, failed) = run(&wine);
    let version = wine.version();
    let text = format!("With {version}, {TARGET}:\n\n{table}");
    let file = folder.join("table.md");
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    output::note(&text);
    if !failed.is_empty() {
        bail!("under Wine: {}", failed.join("; "));
    }
    Ok(Outcome::Passed)
}

/// Every trial, whatever came of the ones before, as rows of a table.
fn run(wine: &Wine) -> (String, Vec<String>) {
    let mut table = "| what | outcome |\n| --- | --- |\n".to_owned();
    let mut failed = Vec::new();
    for (what, trial) in TRIALS {
        let outcome = match trial(wine) {
            Ok(()) => "works".to_owned(),
            Err(error) => {
                failed.push(format!("{what}: {error:#}"));
                "**fails**".to_owned()
            }
        };
        // A string takes everything.
        let _ = writeln!(table, "| {what} | {outcome} |");
    }
    (table, failed)
}

fn build(ws: &Workspace, folder: &Path) -> Result<()> {
    ws.cargo(&["build", "--target", TARGET, "-p", "runtap"]).run()?;
    let built = ws.target().join(TARGET).join("debug").join("runtap.exe");
    fs::copy(&built, folder.join("runtap.exe"))
        .with_context(|| format!("cannot copy {}", built.display()))?;
    let sources = [
        ("prng.c", include_str!("wine/prng.c"), &["-shared", "-o", "bcryptprimitives.dll"][..], "-ladvapi32"),
        ("visitor.c", include_str!("wine/visitor.c"), &["-o", "visitor.exe"][..], "-O1"),
    ];
    for (name, text, arguments, last) in sources {
        fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
        ws.tool(COMPILER).args(arguments).arg(name).arg(last).folder(folder).run()?;
    }
    Ok(())
}

fn tool(ws: &Workspace, name: &str) -> Option<PathBuf> {
    let packaged = Path::new(FOLDER).join(name);
    find(ws.root(), name).or_else(|| packaged.is_file().then_some(packaged))
}
