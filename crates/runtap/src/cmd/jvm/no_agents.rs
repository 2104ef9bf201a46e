//! The verbs that bring the agent's library into a Java program, where there is none to bring.

use crate::cli::JvmAgents;
use crate::cmd::not_there;
use crate::output::Output;

#[expect(clippy::needless_pass_by_value, reason = "the same as elsewhere")]
pub(super) fn run(verb: JvmAgents, _output: Output) -> anyhow::Result<u8> {
    let name = format!("jvm {}", verb.name());
    Err(not_there(&name, "the agent for JVMs is a library for Linux; 'jvm hq' collects from other agents"))
}

/// What is to be done with a Java program that can't be attached to: none is found here.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(in crate::cmd) async fn instead_of_attaching(_pid: u32) -> Option<String> {
    None
}
