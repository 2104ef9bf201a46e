//! The verbs for which the agent is needed that the program carries.

use super::super::{at_once, block_on, on_processes};
use super::{attach as attaching, detach as detaching, library, run as running};
use crate::cli::{JvmAgent, JvmAttach, JvmDetach, JvmRun};
use crate::output::Output;

pub(super) fn run(options: JvmRun, output: Output) -> anyhow::Result<u8> {
    block_on(running::run(options, output))
}

pub(super) fn attach(options: &JvmAttach, output: Output) -> anyhow::Result<u8> {
    on_processes(attaching::run(options, output), output)
}

pub(super) fn detach(options: &JvmDetach, output: Output) -> anyhow::Result<u8> {
    at_once(detaching::run(options, output), output)
}

pub(super) fn write(options: &JvmAgent, output: Output) -> anyhow::Result<u8> {
    library::run(options, output)
}
