//! `runtap perfmap enable|disable`: has the files written, and tells where they are as seen from here.

use std::path::{Path, PathBuf};

use runtap_diag::{Client, PerfMapType};
use runtap_target::Subject;
use serde::Serialize;

use super::failure::explain;
use super::target::{choose_all, each};
use crate::cli::{DisablePerfMap, EnablePerfMap, PerfMap, PerfMapKind, PerfMapVerb};
use crate::exit;
use crate::output::{Clean, Output};
use crate::units::Bytes;

/// Moves all of the files; the second is its name of old.
const FOLDER_VARIABLES: [&str; 2] = ["DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath"];
/// Where they are without that: the runtime does not look at TMPDIR here.
const FOLDER: &str = "/tmp";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    pid: u32,
    enabled: bool,
    files: Vec<MapFile>,
}

#[derive(Serialize)]
struct MapFile {
    path: String,
    target_path: String,
    bytes: u64,
}

pub(super) async fn run(options: PerfMap, output: Output) -> anyhow::Result<u8> {
    match options.what {
        PerfMapVerb::Enable(options) => enable(&options, output).await,
        PerfMapVerb::Disable(options) => disable(&options, output).await,
    }
}

async fn enable(options: &EnablePerfMap, output: Output) -> anyhow::Result<u8> {
    let kind = match options.r#type {
        PerfMapKind::All => PerfMapType::All,
        PerfMapKind::Jitdump => PerfMapType::JitDump,
        PerfMapKind::Perfmap => PerfMapType::PerfMap,
    };
    let all = choose_all(&options.target, options.all.all, output).await?;
    let enable = async |chosen: Subject, output: Output| {
        let folder = folder(&chosen.client).await?;
        chosen.client.enable_perf_map(kind).await.map_err(explain)?;
        let document = Document::of(&chosen, true, &folder, names(options.r#type)).await?;
        if document.files.is_empty() {
            output.warning(format_args!(
                "the runtime says that it writes, but there is no file in the target's {}",
                folder.display()
            ));
        }
        document.print(output)?;
        Ok(exit::OK)
    };
    each(all, output, enable).await
}

async fn disable(options: &DisablePerfMap, output: Output) -> anyhow::Result<u8> {
    let all = choose_all(&options.target, options.all.all, output).await?;
    let disable = async |chosen: Subject, output: Output| {
        let folder = folder(&chosen.client).await?;
        chosen.client.disable_perf_map().await.map_err(explain)?;
        Document::of(&chosen, false, &folder, names(PerfMapKind::All)).await?.print(output)?;
        Ok(exit::OK)
    };
    each(all, output, disable).await
}

/// Names of the files around the process id.
fn names(kind: PerfMapKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        PerfMapKind::All => &[("perf-", ".map"), ("perfinfo-", ".map"), ("jit-", ".dump")],
        PerfMapKind::Jitdump => &[("jit-", ".dump")],
        PerfMapKind::Perfmap => &[("perf-", ".map"), ("perfinfo-", ".map")],
    }
}

/// Where the runtime writes them, as the target sees it. Variables that were set later count too.
async fn folder(client: &Client) -> anyhow::Result<PathBuf> {
    let variables = client.environment().await.map_err(explain)?;
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable.name() == name);
        found.and_then(|variable| variable.value()).filter(|value| !value.is_empty())
    };
    Ok(FOLDER_VARIABLES.into_iter().find_map(value).unwrap_or(FOLDER).into())
}

impl Document {
    async fn of(
        chosen: &Subject,
        enabled: bool,
        folder: &Path,
        names: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let (pid, own_pid) = chosen.pids().await.map_err(explain)?;
        let mut files = Vec::new();
        // Where we may not look the answer was yes all the same.
        if let Ok(view) = runtap_discover::file_view(pid) {
            for (before, behind) in names {
                let theirs = folder.join(format!("{before}{}{behind}", own_pid.unwrap_or(pid)));
                let Ok(meta) = view.metadata(&theirs) else { continue };
                let ours = view.shown(&theirs);
                let text = |path: &Path| path.to_string_lossy().into_owned();
                files.push(MapFile { path: text(&ours), target_path: text(&theirs), bytes: meta.len() });
            }
        }
        Ok(Self { schema: "runtap.perfmap/1", pid, enabled, files })
    }

    fn print(&self, output: Output) -> anyhow::Result<()> {
        if output.json() {
            return output.document(self);
        }
        let lines = self.files.iter().map(|file| format!("{}  {}\n", Clean(&file.path), Bytes(file.bytes)));
        output.text(lines.collect::<String>())
    }
}
