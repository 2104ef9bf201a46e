//! The checks of the workspace, one subcommand each; `cargo xtask` lists them. The exit code is 0 when everything
//! succeeded, 1 when a check failed and 2 for wrong usage. Nothing here depends on the product's code: subcommands run
//! tools and read the files that these write.

mod args;
mod callgrind;
mod cmd;
mod elf;
mod graph;
mod output;
mod process;
mod step;
mod workspace;

use std::env;
use std::process::ExitCode;

use crate::args::{Args, UsageError};
use crate::cmd::COMMANDS;
use crate::workspace::Workspace;

fn main() -> ExitCode {
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
    let done = Args::parse(command, words).and_then(|args| {
        let _removed_afterwards = process::temporary()?;
        (command.run)(&Workspace::find()?, &args)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&format!("{error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}
