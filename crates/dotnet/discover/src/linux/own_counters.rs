//! Checks whether a file of performance counters belongs to a certain process.
//!
//! Containers that share a `/tmp` keep their counters side by side, each under the process id in its own PID namespace:
//! `hsperfdata_root/1` may belong to any of them, or to the first process of the host. A Java virtual machine has its file mapped
//! while it runs (`openjdk/jdk` `src/hotspot/os/posix/perfMemory_posix.cpp`, `mmap_create_shared`), and no other process maps a file
//! with that number.

use runtap_transport::linux::ProcDir;

use super::proc_files::ProcFiles as _;

/// The number of bytes that are read of each memory map even if the budget is used up.
const MIN: u64 = 16 << 10;

/// Whether the process has mapped its counters. `pid` is the id in its own PID namespace. `None` if the memory map can't be read
/// completely.
pub(super) fn are_mapped(dir: &ProcDir, pid: u32, budget: &mut u64) -> Option<bool> {
    let mut found = false;
    let read = dir.lines("maps", (*budget).max(MIN), |line| {
        found = is_file_of(line, pid);
        found
    });
    let (n, is_truncated) = read.ok()?;
    *budget = budget.saturating_sub(n);
    // A process that is exiting has an empty memory map.
    (found || n > 0 && !is_truncated).then_some(found)
}

/// Whether a line of `maps` is the file, as in `7f…-7f… rw-s 00000000 08:01 42     /tmp/hsperfdata_ann/42`. From another mount
/// namespace, the beginning of the path may be missing. The path of a deleted file ends differently.
fn is_file_of(line: &[u8], pid: u32) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut parts = line.rsplit('/');
    let (file, folder) = (parts.next(), parts.next());
    file.is_some_and(|file| file.parse() == Ok(pid))
        && folder.is_some_and(|folder| folder.starts_with("hsperfdata_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_like_the_machine() {
        let maps =
            |path: &str| is_file_of(format!("7f0-7f8 rw-s 00000000 08:01 42     {path}").as_bytes(), 42);
        assert!(
            maps("/tmp/hsperfdata_ann/42") && maps("/hsperfdata_b c/42") && maps("/run/x/tmp/hsperfdata_/42")
        );
        assert!(!maps("/tmp/hsperfdata_ann/43") && !maps("/tmp/hsperfdata_ann/420") && !maps("/tmp/ann/42"));
        assert!(!maps("/tmp/hsperfdata_ann/42 (deleted)") && !maps("") && !maps("/42"));
        assert!(!is_file_of(b"7f0-7f8 r--p 00000000 08:01 42  /tmp/hsperfdata_\xff/42", 42));
    }
}
