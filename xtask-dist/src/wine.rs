//! `cargo xtask wine`: builds `runtap.exe` and runs it under Wine, with real named pipes between its processes. Uses
//! mingw's compiler and a separate Wine prefix below `target/wine`, and produces a table of what ran.

mod program;
mod trials;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::program::Wine;
use self::trials::TRIALS;
use crate::foreign::{self, page};
use xtask::args::Args;
use xtask::output;
use xtask::process::find;
use xtask::step::Outcome;
use xtask::workspace::Workspace;

/// The name in the page about platforms.
const COMMAND: &str = "wine";
const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Debian's package does not install it in the search path.
const FOLDER: &str = "/usr/lib/wine";

/// Crates with unit tests that are relevant on Windows.
const TESTED: [&str; 4] = ["runtap-os", "runtap-transport", "runtap-discover", "runtap-record"];

/// Runs everything and writes the table to the page about platforms, or compares it with `--check`.
pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    match run(ws)? {
        Ok(table) if args.has("--check") => page::check(ws, COMMAND, &table),
        Ok(table) => page::write(ws, COMMAND, &table),
        Err(why) => bail!("{why}"),
    }
}

/// The step of `cargo xtask ci --all`, which compares the table with the page.
pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    match run(ws)? {
        Ok(table) => page::check(ws, COMMAND, &table).map(|()| Outcome::Passed),
        Err(why) => Ok(Outcome::Skipped(why)),
    }
}

/// Returns the table of what ran, or what is missing.
fn run(ws: &Workspace) -> Result<Result<String, String>> {
    let skipped = |what: &str| Ok(Err(what.to_owned()));
    let Some(wine) = tool(ws, "wine64").or_else(|| tool(ws, "wine")) else {
        return skipped("wine64 is not installed");
    };
    let Some(server) = ["wineserver64", "wineserver"].iter().find_map(|name| tool(ws, name)) else {
        return skipped("wineserver is not installed");
    };
    if find(ws.root(), COMPILER).is_none() {
        return skipped("the mingw compiler is not installed (gcc-mingw-w64-x86-64)");
    }
    if !foreign::is_installed(ws, TARGET)? {
        return skipped(
            "the standard library for Windows is not installed (rustup target add x86_64-pc-windows-gnu)",
        );
    }
    let folder = ws.target().join("wine");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    build(ws, &folder)?;
    let wine = Wine::new(wine, server, folder);
    wine.prepare()?;
    let (mut table, mut failed) = trials(&wine);
    let outcome = match unit_tests(ws, &wine) {
        Ok(()) => "work",
        Err(error) => {
            failed.push(format!("{error:#}"));
            "**fail**"
        }
    };
    // Writing to a `String` cannot fail.
    let _ =
        writeln!(table, "| the tests of {} | {outcome} |", TESTED.map(|name| format!("`{name}`")).join(", "));
    let version = wine.version();
    output::note(&format!("With {version}, {TARGET}:\n\n{table}"));
    if !failed.is_empty() {
        bail!("under Wine: {}", failed.join("; "));
    }
    Ok(Ok(table))
}

/// Runs the unit tests of libraries under Wine.
fn unit_tests(ws: &Workspace, wine: &Wine) -> Result<()> {
    let mut words = vec!["test", "--target", TARGET, "--lib"];
    words.extend(TESTED.iter().flat_map(|name| ["-p", *name]));
    let mut cargo =
        foreign::lean(ws.cargo(&words)).env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", wine.program());
    for (name, value) in wine.variables() {
        cargo = cargo.env(name, value);
    }
    cargo.run()
}

/// Runs every trial, even if earlier ones failed, and returns the rows of the table.
fn trials(wine: &Wine) -> (String, Vec<String>) {
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
        // Writing to a `String` cannot fail.
        let _ = writeln!(table, "| {what} | {outcome} |");
    }
    (table, failed)
}

fn build(ws: &Workspace, folder: &Path) -> Result<()> {
    foreign::lean(ws.cargo(&["build", "--target", TARGET, "-p", "runtap"])).run()?;
    let built = ws.target().join(TARGET).join("debug");
    let copy = |built: PathBuf, name: &str| {
        let copied = fs::copy(&built, folder.join(format!("{name}.exe")));
        copied.map(drop).with_context(|| format!("cannot copy {}", built.display()))
    };
    copy(built.join("runtap.exe"), "runtap")?;
    for (package, name) in [("runtap-mtp-host", "harness"), ("runtap-record", "writer")] {
        let example = ["build", "--target", TARGET, "-p", package, "--example", name];
        foreign::lean(ws.cargo(&example)).run()?;
        copy(built.join("examples").join(format!("{name}.exe")), name)?;
    }
    let sources = [
        ("prng.c", include_str!("wine/prng.c"), &["-shared", "-o", "bcryptprimitives.dll"][..], "-ladvapi32"),
        ("visitor.c", include_str!("wine/visitor.c"), &["-o", "visitor.exe"][..], "-ladvapi32"),
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
