//! The checks of the workspace, one subcommand each; `cargo xtask` lists them. The exit code is 0 when everything
//! succeeded, 1 when a check failed and 2 for wrong usage. Nothing here depends on the product's code: subcommands run
//! tools and read the files that these write.
//!
//! Subcommands for other systems and for releases are in the package `xtask-dist`, which is only built when one of them
//! runs: [`main`] of this package's program starts its program.

pub mod args;
mod callgrind;
pub mod cmd;
pub mod elf;
pub mod graph;
pub mod output;
pub mod process;
pub mod step;
mod symbols;
pub mod workspace;

use std::env;
use std::process::ExitCode;

use crate::args::{Args, UsageError};
use crate::cmd::{COMMANDS, Run};
use crate::workspace::Workspace;

/// Runs the subcommand that the command line names. `own` are the subcommands that are in the calling program.
pub fn main(own: &[(&str, Run)]) -> ExitCode {
    let mut words = env::args().skip(1);
    let Some(name) = words.next() else {
        output::list(COMMANDS);
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        output::list(COMMANDS);
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        output::error(&format!("no subcommand is called `{name}`"));
        output::list(COMMANDS);
        return ExitCode::from(2);
    };
    let run = own.iter().find(|(own, _)| *own == name).map_or(command.run, |(_, run)| *run);
    let done = Args::parse(command, words).and_then(|args| {
        let _removed_afterwards = process::temporary()?;
        run(&Workspace::find()?, &args)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&format!("{error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}
