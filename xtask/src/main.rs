//! `cargo xtask`: the subcommands of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main(&[])
}
