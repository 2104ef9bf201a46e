//! `runtap test PATH --help`: the subcommand's options and the options of the applications.

use clap::CommandFactory as _;
use runtap_mtp::{Mode, RunSpec, Stop, run};
use runtap_text::Output;
use runtap_text::test::MergedOptions;

use crate::cli::Cli;

/// Prints the help of the subcommand.
pub(super) fn print_own(output: Output) -> anyhow::Result<()> {
    let mut all = Cli::command();
    all.build();
    match all.find_subcommand_mut("test") {
        Some(test) => Ok(output.text(test.render_help().ansi())?),
        None => Ok(()),
    }
}

/// Requests and prints the options of the applications. Returns the exit code.
pub(super) fn of_applications(spec: &RunSpec, stop: &Stop, output: Output) -> anyhow::Result<u8> {
    let help_spec = RunSpec { mode: Mode::Help, ..spec.clone() };
    let mut merged = MergedOptions::new(&spec.modules);
    let outcome = run(&help_spec, stop, |event| merged.event(event))?;
    output.text(&merged)?;
    Ok(u8::try_from(outcome.exit_code).unwrap_or(u8::MAX))
}
