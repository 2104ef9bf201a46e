//! Java virtual machines: each keeps its performance counters in `/tmp/hsperfdata_USER/PID`, always in `/tmp`.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType};

/// As many as a machine can have processes.
const MOST: usize = 4 << 20;

/// Process ids (of the machines' own pid namespace) and owners by the files in a folder. A file may have been left
/// behind: whether such a process of that owner lives is the caller's to check.
pub(super) fn candidates(folder: OwnedFd) -> Vec<(u32, u32)> {
    let Ok(mut entries) = Dir::new(folder) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some(Ok(entry)) = entries.read() {
        let Some(pid) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) else { continue };
        let Ok(folder) = entries.fd() else { break };
        // A link may lead to a file of anybody.
        let Ok(file) = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        if FileType::from_raw_mode(file.st_mode) == FileType::RegularFile {
            found.push((pid, file.st_uid));
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}
