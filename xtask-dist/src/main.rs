//! The subcommands of `cargo xtask` for other systems, real peers and releases, and `ci --all`, which runs some of them.
//!
//! They are in a package of their own because the checks of a change do without them: `cargo xtask` builds this program
//! when one of them is named.

mod cross;
mod dist;
mod foreign;
mod musl;
mod peers;
mod qemu;
mod wine;

use std::process::ExitCode;

use anyhow::Result;
use xtask::args::Args;
use xtask::cmd::Run;
use xtask::cmd::ci::{self, Check};
use xtask::workspace::Workspace;

const COMMANDS: &[(&str, Run)] = &[
    ("ci", every_check),
    ("cross", cross::command),
    ("dist", dist::command),
    ("musl", musl::command),
    ("peers", peers::command),
    ("qemu", qemu::command),
    ("wine", wine::command),
];

const STEPS: &[(&str, Check)] =
    &[("cross", cross::check), ("peers", peers::from_here), ("qemu", qemu::check), ("wine", wine::check)];

fn main() -> ExitCode {
    xtask::main(COMMANDS)
}

fn every_check(ws: &Workspace, args: &Args) -> Result<()> {
    ci::run(ws, args.has("--all"), STEPS)
}
