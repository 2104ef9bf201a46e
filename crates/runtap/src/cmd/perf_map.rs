//! `runtap perfmap enable|disable`: switches perf maps on or off and prints the paths of the files outside the target's
//! container.

use std::path::Path;

use runtap_diag::{PerfMapType, perf_map};
use runtap_target::ResolvedTarget;
use runtap_text::Output;
use runtap_text::document::{MapFile, PerfMapDocument};

use super::failure::explain;
use super::target::{DotnetVerb, choose_all, each};
use crate::cli::PerfMap;
use crate::exit;

pub(super) async fn run(options: PerfMap, output: Output) -> anyhow::Result<u8> {
    let (enable, target, all) = match &options {
        PerfMap::Enable(options) => (Some(options.r#type), &options.target, options.all),
        PerfMap::Disable(options) => (None, &options.target, options.all),
    };
    let all = choose_all(target, all.all, DotnetVerb::PERF_MAP, output).await?;
    each(all, output, async |chosen, output| set_perf_map(&chosen, enable, output).await).await
}

/// Enables the files of a type, or disables all if `enable` is `None`.
async fn set_perf_map(
    chosen: &ResolvedTarget,
    enable: Option<PerfMapType>,
    output: Output,
) -> anyhow::Result<u8> {
    let client = &chosen.client;
    let folder = perf_map::folder(client).await.map_err(explain)?;
    match enable {
        Some(kind) => client.enable_perf_map(kind).await,
        None => client.disable_perf_map().await,
    }
    .map_err(explain)?;
    if chosen.is_remote() {
        let pid = u32::try_from(chosen.number()).unwrap_or_default();
        output.note(format_args!("the files are on the target's machine, in its {}", folder.display()));
        output.show(&PerfMapDocument::new(pid, enable.is_some(), Vec::new()))?;
        return Ok(exit::OK);
    }
    let (pid, own_pid) = chosen.pids().await.map_err(explain)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    // The list is empty if the files are unreadable for runtap, although the command succeeded.
    let files = perf_map::files(enable.unwrap_or(PerfMapType::All), &folder, pid, own_pid.unwrap_or(pid));
    let file = |file: &perf_map::MapFile| MapFile {
        path: text(&file.path),
        target_path: text(&file.target_path),
        bytes: file.bytes,
    };
    let document = PerfMapDocument::new(pid, enable.is_some(), files.iter().map(file).collect());
    if enable.is_some() && document.files.is_empty() {
        output.warning(format_args!(
            "the runtime reported success, but there is no file in the target's {}",
            folder.display()
        ));
    }
    output.show(&document)?;
    Ok(exit::OK)
}
