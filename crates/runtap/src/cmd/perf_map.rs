//! `runtap perfmap enable|disable`: has the files written, and tells where they are as seen from here.

use std::path::Path;

use runtap_diag::{PerfMapType, perf_map};
use runtap_target::Subject;
use serde::Serialize;

use super::failure::explain;
use super::target::{choose_all, each};
use crate::cli::{DisablePerfMap, EnablePerfMap, PerfMap, PerfMapKind, PerfMapVerb};
use crate::exit;
use crate::output::{Clean, Output};
use crate::units::Bytes;

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
    let kind = options.r#type.into();
    let all = choose_all(&options.target, options.all.all, output).await?;
    let enable = async |chosen: Subject, output: Output| {
        let folder = perf_map::folder(&chosen.client).await.map_err(explain)?;
        chosen.client.enable_perf_map(kind).await.map_err(explain)?;
        let document = Document::of(&chosen, true, &folder, kind).await?;
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
        let folder = perf_map::folder(&chosen.client).await.map_err(explain)?;
        chosen.client.disable_perf_map().await.map_err(explain)?;
        Document::of(&chosen, false, &folder, PerfMapType::All).await?.print(output)?;
        Ok(exit::OK)
    };
    each(all, output, disable).await
}

impl From<PerfMapKind> for PerfMapType {
    fn from(kind: PerfMapKind) -> Self {
        match kind {
            PerfMapKind::All => Self::All,
            PerfMapKind::Jitdump => Self::JitDump,
            PerfMapKind::Perfmap => Self::PerfMap,
        }
    }
}

impl Document {
    async fn of(chosen: &Subject, enabled: bool, folder: &Path, kind: PerfMapType) -> anyhow::Result<Self> {
        let (pid, own_pid) = chosen.pids().await.map_err(explain)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // Where we may not look the answer was yes all the same.
        let files = perf_map::files(kind, folder, pid, own_pid.unwrap_or(pid)).into_iter().map(|file| {
            MapFile { path: text(&file.path), target_path: text(&file.target_path), bytes: file.bytes }
        });
        Ok(Self { schema: "runtap.perfmap/1", pid, enabled, files: files.collect() })
    }

    fn print(&self, output: Output) -> anyhow::Result<()> {
        if output.json() {
            return output.document(self);
        }
        let lines = self.files.iter().map(|file| format!("{}  {}\n", Clean(&file.path), Bytes(file.bytes)));
        output.text(lines.collect::<String>())
    }
}
