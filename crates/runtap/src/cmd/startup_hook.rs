//! `runtap startup-hook`: loads a startup hook into running processes.

use runtap_target::ResolvedTarget;

use super::failure::explain;
use super::target::{DotnetVerb, choose_all, each, reject_remote, split_target};
use crate::cli::StartupHook;
use crate::exit::{self, usage};
use crate::output::Output;

pub(super) async fn run(options: &StartupHook, output: Output) -> anyhow::Result<u8> {
    let (target, words) =
        split_target(&options.target, &options.words, "the path of the assembly (./hook.dll)")?;
    let [path] = words else {
        return Err(usage("a process is named by an option already: give the path of one assembly"));
    };
    // Runtimes require absolute paths. An empty path is an error, not the current directory.
    let absolute = if path.is_empty() { path.clone() } else { absolute_path(path)? };
    let path = &absolute;
    let all = choose_all(&target, options.all.all, DotnetVerb::STARTUP_HOOK, output).await?;
    reject_remote(
        &all,
        "the assembly lies on the target's machine, and a wrong one would end the program: it is checked there",
    )?;
    let apply = async |chosen: ResolvedTarget, output: Output| {
        chosen.client.apply_startup_hook(path).await.map_err(explain)?;
        output.note(format_args!("the runtime has taken {path}"));
        Ok(exit::OK)
    };
    each(all, output, apply).await
}

/// Makes a path absolute.
fn absolute_path(path: &str) -> anyhow::Result<String> {
    Ok(std::path::absolute(path)?.to_string_lossy().into_owned())
}
