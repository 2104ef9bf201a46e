//! Java virtual machines: each keeps its performance counters in `/tmp/hsperfdata_USER/PID`, always in `/tmp`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Process ids (of the machines' own pid namespace) and owners by the files in `temp_dir`. A file may have been
/// left behind: whether such a process of that owner lives is the caller's to check.
pub(super) fn candidates(temp_dir: &Path, folders: &[OsString]) -> Vec<(u32, u32)> {
    let entries = folders.iter().filter_map(|folder| fs::read_dir(temp_dir.join(folder)).ok());
    entries
        .flat_map(Iterator::flatten)
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, entry.metadata().ok()?.uid()))
        })
        .collect()
}
