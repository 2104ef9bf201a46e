//! Whether the counters of a Java virtual machine that have a process's number are its own.
//!
//! Containers that share a `/tmp` keep their counters side by side, each under the number that it has in its own pid
//! namespace: `hsperfdata_root/1` may be of any of them, or of the first process of the host, if it is of the same user. A
//! machine has its file mapped as long as it runs (`openjdk/jdk` `src/hotspot/os/posix/perfMemory_posix.cpp`,
//! `mmap_create_shared`), and no other process has that of this number.

use runtap_transport::linux::ProcDir;

use super::proc_files::ProcFiles as _;

/// Bytes that are read of each memory map, whatever was read of others.
const MIN: u64 = 16 << 10;

/// `pid`: the number by which the machine calls itself. `None`: its memory map can't be read, or not to its end.
pub(super) fn are_mapped(dir: &ProcDir, pid: u32, budget: &mut u64) -> Option<bool> {
    let mut found = false;
    let read = dir.lines("maps", (*budget).max(MIN), |line| {
        found = is_file_of(line, pid);
        found
    });
    let (n, is_truncated) = read.ok()?;
    *budget = budget.saturating_sub(n);
    // One that is about to end has no memory.
    (found || n > 0 && !is_truncated).then_some(found)
}

/// Of a line of `maps`: `7f…-7f… rw-s 00000000 08:01 42     /tmp/hsperfdata_ann/42`. Seen from another mount namespace, there
/// may be less of the path. A deleted file has another end, and is not the one that was found.
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
