//! `runtap startup-hook`: loads a startup hook into running processes.

use runtap_target::ResolvedTarget;
use runtap_text::Output;

use super::failure::explain;
use super::target::{DotnetVerb, choose_all, each, reject_remote, split_target};
use crate::cli::StartupHook;
use crate::exit::{self, usage};

pub(super) async fn run(options: &StartupHook, output: Output) -> anyhow::Result<u8> {
    let (target, words) =
        split_target(&options.target, &options.words, "the path of the assembly (./hook.dll)")?;
    let [path] = words else {
        return Err(usage("an option already selects the process; specify the path of one assembly"));
    };
    // Runtimes require absolute paths. An empty path is an error, not the current directory.
    let absolute = if path.is_empty() { path.clone() } else { absolute_path(path)? };
    let path = &absolute;
    let all = choose_all(&target, options.all.all, DotnetVerb::STARTUP_HOOK, output).await?;
    reject_remote(
        &all,
        "the assembly is on the target's machine and must be checked there, because an invalid one would crash the program",
    )?;
    let apply = async |chosen: ResolvedTarget, output: Output| {
        chosen.client.apply_startup_hook(path).await.map_err(explain)?;
        let process = chosen.process.as_ref().map(|process| format!("process {}", process.pid));
        let process = process.unwrap_or_else(|| chosen.label());
        output.note(format_args!("Loaded startup hook {path} into {process}."));
        Ok(exit::OK)
    };
    each(all, output, apply).await
}

/// Makes a path absolute.
fn absolute_path(path: &str) -> anyhow::Result<String> {
    Ok(std::path::absolute(path)?.to_string_lossy().into_owned())
}
