//! `runtap jvm detach`: unloads agents that a killed runtap, or `attach --hq`, has left in a program.

use runtap_jvm_attach::AGENT_NAME;
use runtap_text::Output;

use super::{carried, program};
use crate::cli::JvmDetach;
use crate::exit::{self, expected};

pub(super) async fn run(options: &JvmDetach, output: Output) -> anyhow::Result<u8> {
    let jvm = program::choose(&options.target).await?;
    let pid = jvm.pid();
    // Do not make a JVM without an agent start its attach listener.
    if jvm.libraries(AGENT_NAME).map_err(program::explain)?.is_empty() {
        let message = format!("process {pid} has not loaded runtap's agent");
        return Err(expected(exit::NO_TARGET, message, None));
    }
    let client = program::attach(jvm).await?;
    if client.unload_agents(&carried::name()).await.map_err(program::explain)? {
        output.note(format_args!("the agent has left process {pid}"));
    } else {
        output.note(format_args!("the agent had already left process {pid}; nothing was traced"));
    }
    Ok(exit::OK)
}
