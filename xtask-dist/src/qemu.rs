//! `cargo xtask qemu`: builds the static program for aarch64 and runs it in an emulator.
//!
//! The emulator is registered in a user namespace (`binfmt_misc`, Linux 6.7), so that the kernel runs programs for
//! aarch64 like any others, programs can start themselves, and nothing of the machine is changed. The linker is in
//! `foreign.rs`, the commands are in `foreign/runs.rs`. Only the processor is emulated; system calls are the host's.

mod namespace;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::foreign::{self, ARM_LINKER, ARM_MUSL, page, runs};
use xtask::args::Args;
use xtask::cmd::size;
use xtask::elf;
use xtask::output;
use xtask::process;
use xtask::process::GIVEN_AGENT;
use xtask::step::Outcome;
use xtask::workspace::Workspace;

const EMULATOR: &str = "qemu-aarch64-static";
const EM_AARCH64: u16 = 183;
/// The variable with the program that cargo uses to run tests for the target.
const RUNNER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER";

/// Formats and protocols, whose tests need no other programs but depend on the processor's types and byte order.
const TESTED: [&str; 6] = [
    "runtap-wire",
    "runtap-diag-proto",
    "runtap-nettrace",
    "runtap-bytefrog-proto",
    "runtap-mtp-proto",
    "runtap-classfile",
];

/// The name in the page about platforms.
const COMMAND: &str = "qemu";

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if args.has("--inside") {
        return inside(ws, if args.has("--shipped") { Host::Shipped } else { Host::Debug });
    }
    if let Err(why) = run(ws, Host::Debug)? {
        bail!("{why}");
    }
    if args.has("--check") {
        return page::check(ws, COMMAND, &table(ws)?);
    }
    page::write(ws, COMMAND, &table(ws)?)
}

/// For continuous integration: writes nothing.
pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    if let Err(why) = run(ws, Host::Shipped)? {
        return Ok(Outcome::Skipped(why));
    }
    page::check(ws, COMMAND, &table(ws)?).map(|()| Outcome::Passed)
}

/// The program for the host, whose results are compared with those from the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// A debug build, which is fast to build.
    Debug,
    /// The shipped build, if it exists anyway.
    Shipped,
}

impl Host {
    fn build(self, ws: &Workspace) -> Result<()> {
        match self {
            Self::Debug => ws.cargo(&["build", "-p", "runtap"]).run(),
            Self::Shipped => size::build(ws).map(drop),
        }
    }

    /// Returns the flag that selects it.
    fn flag(self) -> Option<&'static str> {
        (self == Self::Shipped).then_some("--shipped")
    }

    fn program(self, ws: &Workspace) -> PathBuf {
        match self {
            Self::Debug => ws.target().join("debug/runtap"),
            Self::Shipped => ws.shipped("runtap"),
        }
    }
}

/// Builds and runs everything, or returns what is missing.
fn run(ws: &Workspace, host: Host) -> Result<Result<(), String>> {
    if !cfg!(target_os = "linux") {
        return Ok(Err("qemu can only run programs for Linux on Linux".to_owned()));
    }
    let Some(emulator) = process::find(ws.root(), EMULATOR) else {
        return Ok(Err(format!("{EMULATOR} is not installed")));
    };
    if !foreign::has_linker(ws) {
        return Ok(Err(format!("{ARM_LINKER} is not installed")));
    }
    if !foreign::is_installed(ws, ARM_MUSL)? {
        return Ok(Err(format!("no standard library for {ARM_MUSL} (rustup target add {ARM_MUSL})")));
    }
    if let Err(why) = namespace::can_be_made(ws, &emulator) {
        return Ok(Err(why));
    }
    host.build(ws)?;
    let build = ws.cargo(&["build", "-p", "runtap", "--target", ARM_MUSL]);
    foreign::lean(foreign::with_linkers(build)).env(GIVEN_AGENT, foreign::no_agent(ws)?).run()?;
    is_for_arm(&program(ws))?;
    unit_tests(ws, &emulator)?;
    let xtask = env::current_exe().context("xtask has no path")?;
    namespace::enter(ws, &emulator)
        .arg(xtask)
        .args(&["qemu", "--inside"])
        .args(host.flag().as_slice())
        // xtask locates its workspace through this variable.
        .env("CARGO_MANIFEST_DIR", ws.root().join("xtask"))
        .run()?;
    Ok(Ok(()))
}

fn program(ws: &Workspace) -> PathBuf {
    ws.target().join(ARM_MUSL).join("debug/runtap")
}

/// Runs the unit tests of libraries in the emulator.
fn unit_tests(ws: &Workspace, emulator: &Path) -> Result<()> {
    let packages: Vec<&str> = TESTED.iter().flat_map(|package| ["-p", package]).collect();
    let cargo = ws.cargo(&["test", "--lib", "--target", ARM_MUSL]).args(&packages);
    foreign::lean(foreign::with_linkers(cargo)).env(RUNNER, emulator).run()?;
    // The rest of the crate depends on the system, not on the processor.
    let cargo =
        ws.cargo(&["test", "--lib", "--target", ARM_MUSL, "-p", "runtap-os", "--features", "objfile"]);
    foreign::lean(foreign::with_linkers(cargo)).args(&["--", "objfile::"]).env(RUNNER, emulator).run()
}

/// Checks that the file is static and for the right machine.
fn is_for_arm(program: &Path) -> Result<()> {
    let file = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let machine = elf::machine(&file)?;
    if machine != EM_AARCH64 {
        bail!("{} is for machine {machine}, not {EM_AARCH64}", program.display());
    }
    let linking = elf::linking(&file)?;
    if !linking.is_static() {
        bail!("{} is not static: {linking:?}", program.display());
    }
    output::note("aarch64, static: no loader, no shared library");
    Ok(())
}

/// Runs the commands inside the namespace.
fn inside(ws: &Workspace, host: Host) -> Result<()> {
    let folder = ws.target().join("qemu");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut rows = runs::all(ws, ARM_MUSL, [&program(ws), &host.program(ws)], &folder)?;
    rows.push(format!("unit tests: `{}`, `runtap_os::objfile`", TESTED.join("`, `")));
    let head = "| aarch64 Linux, musl, static, by qemu-user | |\n| --- | --- |\n".to_owned();
    let table = rows.iter().fold(head, |table, row| table + "| " + row + " | ran |\n");
    fs::write(table_of(ws), table).context("cannot write the table")?;
    Ok(())
}

/// Path of the table that is passed from the inner to the outer process.
fn table_of(ws: &Workspace) -> PathBuf {
    ws.target().join("qemu/platforms.md")
}

fn table(ws: &Workspace) -> Result<String> {
    fs::read_to_string(table_of(ws)).context("the run has left no table")
}
