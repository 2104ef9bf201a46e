//! `runtap jvm detach`: agents leave a program in which a killed runtap, or `attach --hq`, has left them.

use super::program;
use crate::cli::JvmDetach;
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) async fn run(options: &JvmDetach, output: Output) -> anyhow::Result<u8> {
    let jvm = program::choose(&options.target).await?;
    let pid = jvm.pid();
    // A JVM without one is not even asked to listen.
    if jvm.libraries(super::carried::NAME).map_err(program::explain)?.is_empty() {
        let message = format!("process {pid} has no agent of runtap");
        return Err(expected(exit::NO_TARGET, message, None));
    }
    let client = program::attach(jvm).await?;
    if program::unload(&client).await.map_err(program::explain)? {
        output.note(format_args!("the agent has left process {pid}"));
    } else {
        output.note(format_args!("the agent has left process {pid} before: nothing was traced"));
    }
    Ok(exit::OK)
}
