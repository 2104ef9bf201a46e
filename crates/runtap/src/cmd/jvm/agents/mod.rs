//! The subcommands that load the agent's library into a Java program.

mod attach;
mod carried;
mod collection;
mod detach;
mod library;
mod program;
mod run;

use super::hq;
use crate::cli::JvmAgents;
use crate::cmd::{at_once, block_on, on_processes};
use crate::output::Output;

pub(super) fn run(verb: JvmAgents, output: Output) -> anyhow::Result<u8> {
    match verb {
        JvmAgents::Run(options) => block_on(run::run(*options, output)),
        JvmAgents::Attach(options) => on_processes(attach::run(&options, output), output),
        JvmAgents::Agent(options) => library::run(&options, output),
        JvmAgents::Detach(options) => at_once(detach::run(&options, output), output),
    }
}
