//! Where the files of a perf map are: the runtime says only that it writes them.
//!
//! Source: what .NET 8 to 10 were measured to do.

use std::path::{Path, PathBuf};

use runtap_diag_proto::PerfMapType;

use crate::{Client, Error};

/// Moves all of the files; the second is its name of old.
const FOLDER_VARIABLES: [&str; 2] = ["DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath"];
/// Where they are without that: the runtime does not look at TMPDIR here.
const FOLDER: &str = "/tmp";

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapFile {
    /// What it is called from here.
    pub ours: PathBuf,
    /// What the target calls it.
    pub theirs: PathBuf,
    /// How large it is.
    pub bytes: u64,
}

/// Where the runtime writes them, as the target sees it. Variables that were set later count too.
///
/// # Errors
/// It does not tell its environment.
pub async fn folder(client: &Client) -> Result<PathBuf, Error> {
    let variables = client.environment().await?;
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable.name() == name);
        found.and_then(|variable| variable.value()).filter(|value| !value.is_empty())
    };
    Ok(FOLDER_VARIABLES.into_iter().find_map(value).unwrap_or(FOLDER).into())
}

/// The files of this type that are there, of the process that calls itself `own_pid`. None where we may not look.
pub fn files(pid: u32, own_pid: u32, folder: &Path, kind: PerfMapType) -> Vec<MapFile> {
    let Ok(view) = runtap_discover::file_view(pid) else { return Vec::new() };
    let file = |(before, behind): &(&str, &str)| {
        let theirs = folder.join(format!("{before}{own_pid}{behind}"));
        let bytes = view.metadata(&theirs).ok()?.len();
        Some(MapFile { ours: view.shown(&theirs), theirs, bytes })
    };
    names(kind).iter().filter_map(file).collect()
}

/// What stands around the process id in their names.
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
    fn of_all_files_those_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["perf-42.map", "jit-42.dump", "perf-43.map"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let names = |kind| -> Vec<_> {
            let files = files(std::process::id(), 42, folder.path(), kind);
            assert!(files.iter().all(|file| file.theirs == file.ours && file.bytes == 11), "{files:?}");
            files.iter().map(|file| file.ours.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(PerfMapType::All), ["perf-42.map", "jit-42.dump"]);
        assert_eq!(names(PerfMapType::PerfMap), ["perf-42.map"]);
        assert_eq!(names(PerfMapType::JitDump), ["jit-42.dump"]);
    }
}
