//! Where diagnostics sockets are: listings of directories, and the kernel's own list of bound sockets.
//!
//! A directory is read once however many stale sockets are in it, and none of them is touched for that.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::RawDir;
use rustix::io::Errno;

use super::linux::{self, path_of};
use super::naming::SocketName;

/// What lies in a temporary directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// By process id. Killed processes leave thousands of them behind: no memory is taken for each.
    sockets: Vec<SocketName>,
    /// The folders `hsperfdata_USER` of Java virtual machines.
    pub hsperfdata: Vec<OsString>,
    /// There were more entries than are taken.
    pub is_cut: bool,
}

/// More sockets than this in one folder are made by somebody who wants to be in the way. A process's own is then looked
/// for by its name.
const MOST_ENTRIES: usize = 50_000;

impl Listing {
    /// Reads a folder; one that can't be read is empty.
    pub(super) fn read(folder: io::Result<OwnedFd>) -> Self {
        let mut listing = Self::default();
        if let Ok(folder) = folder {
            // What was seen up to a failure is better than nothing.
            let _ = listing.add(folder);
        }
        listing.sockets.sort_unstable();
        listing
    }

    fn add(&mut self, directory: OwnedFd) -> Result<(), Errno> {
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(text) = entry.file_name().to_str() else { continue };
            if self.sockets.len() >= MOST_ENTRIES || self.hsperfdata.len() >= MOST_ENTRIES {
                self.is_cut = true;
                break;
            }
            if let Some(name) = SocketName::parse(text) {
                self.sockets.push(name);
            } else if text.starts_with("hsperfdata_") {
                self.hsperfdata.push(text.into());
            }
        }
        Ok(())
    }

    pub(super) fn of(&self, ns_pid: u32) -> &[SocketName] {
        let start = self.sockets.partition_point(|name| name.pid < ns_pid);
        let rest = self.sockets.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|name| name.pid == ns_pid)).unwrap_or_default()
    }
}

/// The listening diagnostics sockets of a network namespace with the paths that they were bound to, whatever
/// TMPDIR their owners have. `None` where the kernel does not tell.
pub(super) fn bound(proc_root: &Path) -> Option<HashMap<u32, Vec<(PathBuf, SocketName)>>> {
    let table = linux::read(&proc_root.join("net/unix")).ok()?;
    let mut found: HashMap<u32, Vec<_>> = HashMap::new();
    for line in table.split(|b| *b == b'\n').skip(1) {
        if let Some((path, name)) = parse_bound(line) {
            found.entry(name.pid).or_default().push((path, name));
        }
    }
    Some(found)
}

/// `Num RefCount Protocol Flags Type St Inode Path`; the path is all the rest.
pub(super) fn parse_bound(line: &[u8]) -> Option<(PathBuf, SocketName)> {
    const LISTENING: u32 = 0x1_0000;
    let mut rest = line;
    let mut flags = 0;
    for field in 0..7 {
        rest = rest.trim_ascii_start();
        let (token, after) = rest.split_at(rest.iter().position(|b| *b == b' ')?);
        if field == 3 {
            flags = u32::from_str_radix(str::from_utf8(token).ok()?, 16).ok()?;
        }
        rest = after;
    }
    let path = path_of(rest.get(1..)?);
    let name = SocketName::parse(path.file_name()?.to_str()?)?;
    (flags & LISTENING != 0 && !path.as_os_str().as_encoded_bytes().starts_with(b"@")).then_some((path, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernels_table() {
        for line in [
            &b"00000000a1b2c3d4: 00000002 00000000 00010000 0001 01 26613 /tmp/x  y/dotnet-diagnostic-12-34-socket"[..],
            b"00000000a1b2c3d4: 00000002 00000000 00010000 0001 01   613 /tmp/x  y/dotnet-diagnostic-12-34-socket",
        ] {
            let (path, name) = parse_bound(line).unwrap();
            assert_eq!(path, Path::new("/tmp/x  y/dotnet-diagnostic-12-34-socket"));
            assert_eq!(name, SocketName::runtime(12, 34));
        }
        for other in [
            // An accepted connection, a socket without a name, an abstract one, another listener.
            &b"0: 00000003 00000000 00000000 0001 03 26614 /tmp/dotnet-diagnostic-12-34-socket"[..],
            b"0: 00000003 00000000 00000000 0001 03 1065",
            b"0: 00000002 00000000 00010000 0001 01 26615 @dotnet-diagnostic-12-34-socket",
            b"0: 00000002 00000000 00010000 0001 01 26616 /run/other.sock",
            b"",
        ] {
            assert_eq!(parse_bound(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
