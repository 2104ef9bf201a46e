//! Finds the files that a runtime writes for `perf`, as the target sees them and as this process does.
//!
//! [`Client::enable_perf_map`] makes the runtime write them; nothing here reads them.

#[cfg(all(test, target_os = "linux"))]
mod bsd;
#[cfg_attr(target_os = "linux", path = "perf_map/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "perf_map/bsd.rs")]
mod view;

use std::path::{Path, PathBuf};

use runtap_diag_proto::PerfMapType;

use crate::{Client, Error};

/// Variables that set the directory of all files; the second is the older name.
const FOLDER_VARIABLES: [&str; 2] = ["DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath"];
/// The default directory: the runtime ignores TMPDIR here.
const FOLDER: &str = "/tmp";

/// An existing perf map file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapFile {
    /// The path for this process.
    pub path: PathBuf,
    /// The path as the target sees it.
    pub target_path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// Returns the directory to which a runtime writes, as the target sees it. Takes variables into account that were set
/// after startup.
///
/// # Errors
/// The errors of [`Client::environment`].
pub async fn folder(client: &Client) -> Result<PathBuf, Error> {
    let variables = client.environment().await?;
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable.name() == name);
        found.and_then(|variable| variable.value()).filter(|value| !value.is_empty())
    };
    Ok(FOLDER_VARIABLES.into_iter().find_map(value).unwrap_or(FOLDER).into())
}

/// Returns the existing files of a process. `own_pid` is its id in its own pid namespace. Empty if the files are not
/// accessible.
pub fn files(kind: PerfMapType, folder: &Path, pid: u32, own_pid: u32) -> Vec<MapFile> {
    let Some(find) = view::finder(pid) else { return Vec::new() };
    let file = |(before, behind): &(&str, &str)| {
        let theirs = folder.join(format!("{before}{own_pid}{behind}"));
        let (path, bytes) = find(&theirs)?;
        Some(MapFile { path, target_path: theirs, bytes })
    };
    names(kind).iter().filter_map(file).collect()
}

/// Returns the prefixes and suffixes of the file names, around the process id.
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
    fn only_existing_files_are_returned() {
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
