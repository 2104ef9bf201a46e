//! The subcommands, one file each.

mod advisories;
mod bench;
mod book;
mod ci;
mod conformance;
mod cross;
mod dist;
mod doc;
mod extras;
mod fmt;
mod foreign;
mod fuzz;
pub(crate) mod layers;
mod licenses;
mod lint;
mod musl;
mod packages;
mod peers;
mod qemu;
mod semver;
mod size;
mod sweep;
mod test;
mod wine;

use anyhow::Result;

use crate::args::Args;
use crate::workspace::Workspace;

/// A subcommand.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Its flags as shown; also what the argument parser accepts.
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Workspace, &Args) -> Result<()>,
}

/// In the order in which the list shows them.
pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        usage: "[--all]",
        about: "every check; --all fails where an extra tool is missing",
        run: ci::command,
    },
    Command { name: "fmt", usage: "[--check]", about: "format the code", run: fmt::command },
    Command { name: "lint", usage: "", about: "clippy, file sizes and file docs", run: lint::command },
    Command {
        name: "cross",
        usage: "",
        about: "compile for other systems, as far as their standard library is here",
        run: cross::command,
    },
    Command {
        name: "qemu",
        usage: "[--check|--inside] [--release]",
        about: "the program for aarch64, run under qemu (--inside: where it starts them; --release: compared with that)",
        run: qemu::command,
    },
    Command { name: "musl", usage: "", about: "the static program with musl, run here", run: musl::command },
    Command {
        name: "licenses",
        usage: "[--check]",
        about: "the list behind `runtap licenses`: writes it, or compares it",
        run: licenses::command,
    },
    Command { name: "layers", usage: "", about: "who may depend on whom", run: layers::command },
    Command {
        name: "advisories",
        usage: "",
        about: "known vulnerabilities of what we depend on, where the database can be had",
        run: advisories::command,
    },
    Command { name: "test", usage: "", about: "unit, integration and doc tests", run: test::command },
    Command {
        name: "book",
        usage: "[--check] [--preprocess]",
        about: "the user guide, in target/book; --check: only whether links lead somewhere",
        run: book::command,
    },
    Command { name: "doc", usage: "", about: "the API documentation, without warnings", run: doc::command },
    Command {
        name: "fuzz",
        usage: "[--seconds N] [--runs N]",
        about: "every fuzz target for N seconds (default 10) or inputs",
        run: fuzz::command,
    },
    Command {
        name: "peers",
        usage: "[--download]",
        about: "bring real .NET runtimes and tools into target/peers",
        run: peers::command,
    },
    Command {
        name: "conformance",
        usage: "[--check]",
        about: "every command against live runtimes: writes docs/conformance.md, or compares it",
        run: conformance::command,
    },
    Command {
        name: "size",
        usage: "",
        about: "size, linking and start-up of the binary",
        run: size::command,
    },
    Command {
        name: "bench",
        usage: "[decode|bytefrog|capture|nettrace|ports|ps|tests|clients|host|events|instruments|samples|jvm] [--events N]",
        about: "what reading a recording costs (default), or recording and listing real runtimes",
        run: bench::command,
    },
    Command {
        name: "sweep",
        usage: "[classes|coverage|damage|hostile|jvm|jvm-programs|repair|replay|tests] [--megabytes N]",
        about: "what the tests take samples of, in full: hours",
        run: sweep::command,
    },
    Command {
        name: "packages",
        usage: "",
        about: "whether every crate could be published: its metadata, and that cargo packages it",
        run: packages::command,
    },
    Command {
        name: "semver",
        usage: "",
        about: "what the libraries' interfaces have become since the last release",
        run: semver::command,
    },
    Command {
        name: "dist",
        usage: "[linux-x86_64|linux-aarch64|windows-x86_64] [--check] [--try] [--without-dotnet]",
        about: "what a release offers, in target/dist; --check: built twice and compared; --try: run in an empty root",
        run: dist::command,
    },
    Command {
        name: "wine",
        usage: "[--check]",
        about: "runtap.exe under Wine, over real named pipes: writes docs/platforms.md, or compares it",
        run: wine::command,
    },
];
