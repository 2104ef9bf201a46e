//! Where the files are that a runtime writes for `perf`, as the target sees them and as we do.
//!
//! [`Client::enable_perf_map`] has them written; nothing here reads them.

#[cfg(all(test, target_os = "linux"))]
mod bsd;
#[cfg_attr(target_os = "linux", path = "perf_map/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "perf_map/bsd.rs")]
mod view;

use std::path::{Path, PathBuf};

use runtap_diag_proto::PerfMapType;

use crate::{Client, Error};

/// Moves all of the files; the second is its name of old.
const FOLDER_VARIABLES: [&str; 2] = ["DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath"];
/// Where they are without that: the runtime does not look at TMPDIR here.
const FOLDER: &str = "/tmp";

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapFile {
    /// As we reach it.
    pub path: PathBuf,
    /// As the target sees it.
    pub target_path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// The folder to which a runtime writes, as the target sees it. Variables that were set later count too.
///
/// # Errors
/// Those of [`Client::environment`].
pub async fn folder(client: &Client) -> Result<PathBuf, Error> {
    let variables = client.environment().await?;
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable.name() == name);
        found.and_then(|variable| variable.value()).filter(|value| !value.is_empty())
    };
    Ok(FOLDER_VARIABLES.into_iter().find_map(value).unwrap_or(FOLDER).into())
}

/// The files of a process that are there. `own_pid` is its number in its own pid namespace. None where we may not look.
pub fn files(kind: PerfMapType, folder: &Path, pid: u32, own_pid: u32) -> Vec<MapFile> {
    let Some(find) = view::finder(pid) else { return Vec::new() };
    let file = |(before, behind): &(&str, &str)| {
        let theirs = folder.join(format!("{before}{own_pid}{behind}"));
        let (path, bytes) = find(&theirs)?;
        Some(MapFile { path, target_path: theirs, bytes })
    };
    names(kind).iter().filter_map(file).collect()
}

/// Names of the files around the process id.
fn names(kind: PerfMapType) -> &'static [(&'static str, &'static str)] {
    match kind {
        PerfMapType::JitDump => &[("jit-", ".dump")],
        PerfMapType::PerfMap => &[("perf-", ".map"), ("perfinfo-", ".map")],
        _ => &[("perf-", ".map"), ("perfinfo-", ".map"), ("jit-", ".dump")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_there_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (pid, map) = (std::process::id(), folder.path().join("perf-7.map"));
        std::fs::write(&map, "1 2 x").unwrap();
        std::fs::write(folder.path().join("perf-8.map"), "").unwrap();
        let found = files(PerfMapType::All, folder.path(), pid, 7);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].target_path, found[0].bytes), (&map, 5));
        assert_eq!(files(PerfMapType::JitDump, folder.path(), pid, 7), []);
    }
}
