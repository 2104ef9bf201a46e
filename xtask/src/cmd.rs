//! The subcommands, one file each; those of `xtask-dist` are listed here, too.

mod advisories;
mod bench;
mod book;
pub mod ci;
mod conformance;
mod doc;
mod extras;
mod fmt;
mod fuzz;
mod layers;
mod licenses;
mod lint;
mod packages;
mod semver;
pub mod size;
mod sweep;
mod test;
mod words;

use std::env;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::workspace::Workspace;

/// A subcommand.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The flags as displayed, from which the argument parser derives what it accepts.
    pub usage: &'static str,
    /// What it does, for the list.
    pub about: &'static str,
    /// What it does.
    pub run: Run,
}

/// A subcommand's function.
pub type Run = fn(&Workspace, &Args) -> Result<()>;

/// Runs this command line with the program of `xtask-dist`.
fn in_dist(ws: &Workspace, _: &Args) -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match ws.cargo(&["run", "--quiet", "--package", "xtask-dist", "--"]).args(&words).quiet().code()? {
        Some(0) => Ok(()),
        _ => bail!("`{}` failed", words.join(" ")),
    }
}

/// In the order in which they are listed.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        usage: "[--all]",
        about: "run the checks that need only cargo, rustfmt and clippy; --all: every check, which fails if a tool is missing",
        run: ci::command,
    },
    Command { name: "fmt", usage: "[--check]", about: "format the code", run: fmt::command },
    Command {
        name: "lint",
        usage: "",
        about: "run clippy, and check file sizes and file docs",
        run: lint::command,
    },
    Command {
        name: "cross",
        usage: "",
        about: "compile for other systems whose standard library is installed",
        run: in_dist,
    },
    Command {
        name: "qemu",
        usage: "[--check|--inside] [--shipped]",
        about: "build the program for aarch64 and run it under qemu (--inside: where it starts them; --shipped: compare with the shipped build)",
        run: in_dist,
    },
    Command { name: "musl", usage: "", about: "build the static program with musl and run it", run: in_dist },
    Command {
        name: "licenses",
        usage: "[--check]",
        about: "write the list behind `runtap licenses`, or compare it",
        run: licenses::command,
    },
    Command {
        name: "layers",
        usage: "",
        about: "check the dependencies between crates",
        run: layers::command,
    },
    Command {
        name: "words",
        usage: "[--list]",
        about: "count words and names that the project avoids",
        run: words::command,
    },
    Command {
        name: "advisories",
        usage: "",
        about: "look for known vulnerabilities in dependencies, if the database is available",
        run: advisories::command,
    },
    Command { name: "test", usage: "", about: "run unit, integration and doc tests", run: test::command },
    Command {
        name: "book",
        usage: "[--check] [--preprocess]",
        about: "build the user guide in target/book; --check: only check links",
        run: book::command,
    },
    Command {
        name: "doc",
        usage: "",
        about: "build the API documentation without warnings",
        run: doc::command,
    },
    Command {
        name: "fuzz",
        usage: "[--seconds N] [--runs N]",
        about: "run every fuzz target for N seconds (default 10) or inputs",
        run: fuzz::command,
    },
    Command {
        name: "peers",
        usage: "[--download]",
        about: "bring real .NET runtimes and tools into target/peers",
        run: in_dist,
    },
    Command {
        name: "conformance",
        usage: "[--check]",
        about: "run every command against live runtimes, and write docs/conformance.md or compare it",
        run: conformance::command,
    },
    Command {
        name: "size",
        usage: "",
        about: "check the size, linking and start-up cost of the binary",
        run: size::command,
    },
    Command {
        name: "bench",
        usage: "[decode|bytefrog|capture|nettrace|ports|ps|tests|clients|host|events|instruments|samples|jvm] [--events N]",
        about: "measure the cost of reading a recording (default), or of recording and listing real runtimes",
        run: bench::command,
    },
    Command {
        name: "sweep",
        usage: "[classes|coverage|damage|hostile|jvm|jvm-programs|repair|replay|tests] [--megabytes N]",
        about: "run the full versions of sampled tests, which takes hours",
        run: sweep::command,
    },
    Command {
        name: "packages",
        usage: "",
        about: "check that every crate can be published",
        run: packages::command,
    },
    Command {
        name: "semver",
        usage: "",
        about: "compare the public interfaces of the libraries with the last release",
        run: semver::command,
    },
    Command {
        name: "dist",
        usage: "[linux-x86_64|linux-aarch64|windows-x86_64] [--check] [--try] [--without-dotnet]",
        about: "build the release files in target/dist; --check: build twice and compare; --try: run in an empty root",
        run: in_dist,
    },
    Command {
        name: "wine",
        usage: "[--check]",
        about: "run runtap.exe under Wine over real named pipes, and write docs/platforms.md or compare it",
        run: in_dist,
    },
];
