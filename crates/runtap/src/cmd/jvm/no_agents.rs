//! Substitute for the subcommands that load the agent into a Java program, on systems without an agent.

use runtap_text::Output;

use crate::cli::JvmAgents;
use crate::cmd::not_there;

#[expect(clippy::needless_pass_by_value, reason = "the same as elsewhere")]
pub(super) fn run(verb: JvmAgents, _output: Output) -> anyhow::Result<u8> {
    let name = format!("jvm {}", verb.name());
    Err(not_there(&name, "the agent for JVMs is a library for Linux; 'jvm hq' collects from other agents"))
}
