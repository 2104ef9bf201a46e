//! `runtap startup-hook`

use super::failure::explain;
use super::target::{choose, first_word};
use crate::cli::StartupHook;
use crate::exit::{self, usage};
use crate::output::Output;

pub(super) async fn run(options: &StartupHook, output: Output) -> anyhow::Result<u8> {
    let (target, words) = first_word(&options.target, &options.words)?;
    let [path] = words else {
        return Err(usage("a process is named by an option already: give the path of one assembly"));
    };
    let chosen = choose(&target, output).await?;
    chosen.client.apply_startup_hook(path).await.map_err(explain)?;
    output.note(format_args!("the runtime has taken {path}"));
    Ok(exit::OK)
}
