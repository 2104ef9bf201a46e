//! The verbs for which the agent is needed, where the program carries none: it is a library for Linux.

use crate::cli::{JvmAgent, JvmAttach, JvmDetach, JvmRun};
use crate::exit::{self, expected};
use crate::output::Output;

fn refused() -> anyhow::Result<u8> {
    let hint = "collect from agents that dial in, of Linux machines or of the original tracer: runtap jvm hq";
    Err(expected(
        exit::USAGE,
        "the agent for JVMs is a library for Linux: there is none here",
        hint.to_owned(),
    ))
}

#[allow(clippy::needless_pass_by_value, reason = "the same as on Linux")]
pub(super) fn run(_options: JvmRun, _output: Output) -> anyhow::Result<u8> {
    refused()
}

pub(super) fn attach(_options: &JvmAttach, _output: Output) -> anyhow::Result<u8> {
    refused()
}

pub(super) fn detach(_options: &JvmDetach, _output: Output) -> anyhow::Result<u8> {
    refused()
}

pub(super) fn write(_options: &JvmAgent, _output: Output) -> anyhow::Result<u8> {
    refused()
}
