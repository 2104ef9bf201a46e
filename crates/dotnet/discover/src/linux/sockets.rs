//! The kernel's list of bound sockets. For sockets in directories, see [`listings`](super::listings).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use runtap_transport::linux::path_of;
use runtap_transport::naming::{SocketName, truncated_pid};

/// The maximum number of sockets in the kernel's table. Only an attacker creates more.
const MAX_BOUND: usize = 50_000;

/// The listening diagnostics sockets of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// The sockets with the paths that they were bound to, by process id.
    by_pid: HashMap<u32, Vec<(PathBuf, SocketName)>>,
    /// What is left of the process ids in truncated names.
    truncated: HashSet<Vec<u8>>,
}

impl Bound {
    /// Returns the sockets with this process id.
    pub(super) fn of(&self, pid: u32) -> &[(PathBuf, SocketName)] {
        self.by_pid.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of all sockets.
    pub(super) fn names(&self) -> impl Iterator<Item = SocketName> {
        self.by_pid.values().flatten().map(|(_, name)| *name)
    }

    /// Whether a truncated name may be that of this process's socket.
    pub(super) fn may_be_truncated(&self, pid: u32) -> bool {
        if self.truncated.is_empty() {
            return false;
        }
        let pid = format!("{pid}-");
        (0..=pid.len()).any(|end| self.truncated.contains(pid.as_bytes().get(..end).unwrap_or_default()))
    }
}

/// Reads the kernel's table of bound sockets, which covers every TMPDIR. Returns `None` if the table can't be read or has more than
/// [`MAX_BOUND`] entries; every process is then examined instead.
pub(super) fn bound(proc_root: &Path) -> Option<Bound> {
    read_bound(BufReader::with_capacity(64 << 10, File::open(proc_root.join("net/unix")).ok()?), MAX_BOUND)
}

/// Reads line by line and keeps only diagnostics sockets, because the table may be very long.
fn read_bound(mut table: impl BufRead, most: usize) -> Option<Bound> {
    /// A path has up to 108 bytes and is no longer than this with the kernel's escapes.
    const LONGEST: u64 = 1024;
    let (mut found, mut kept) = (Bound::default(), 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = table.by_ref().take(LONGEST).read_until(b'\n', &mut line).ok()?;
        if n == 0 {
            return Some(found);
        }
        let Some(path) = listening(line.strip_suffix(b"\n").unwrap_or(&line)) else { continue };
        if let Some(name) = name_of(&path) {
            kept += 1;
            found.by_pid.entry(name.pid).or_default().push((path, name));
        } else if let Some(left) = truncated_pid(path.as_os_str().as_encoded_bytes())
            && !found.truncated.contains(left)
        {
            kept += 1;
            found.truncated.insert(left.to_vec());
        }
        if kept > most {
            return None;
        }
    }
}

/// Parses a line of the table. `None` if it is not a diagnostics socket.
#[cfg(any(test, fuzzing))]
pub(super) fn parse_bound(line: &[u8]) -> Option<(PathBuf, SocketName)> {
    let path = listening(line)?;
    let name = name_of(&path)?;
    Some((path, name))
}

fn name_of(path: &Path) -> Option<SocketName> {
    SocketName::parse(path.file_name()?.to_str()?)
}

/// Returns the path of a listening socket. The fields are `Num RefCount Protocol Flags Type St Inode Path`; the path extends to the
/// end of the line.
fn listening(line: &[u8]) -> Option<PathBuf> {
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
    (flags & LISTENING != 0 && !path.as_os_str().as_encoded_bytes().starts_with(b"@")).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// If there are very many sockets, those at the end are still found, or it is known that some may be missing.
    #[test]
    fn a_long_table_hides_no_socket() {
        let line = |path: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 1 {path}\n");
        let other = line(&format!("/tmp/{}", "x".repeat(100))).into_bytes();
        let own = line("/run/x/dotnet-diagnostic-12-34-socket").into_bytes();
        // 50 MB, which are not kept in memory.
        let many = (0..300_000).map(|_| other.as_slice()).chain([own.as_slice()]);
        let mut lines = many.flatten().copied();
        let table = BufReader::new(Bytes(&mut lines));
        let found = read_bound(table, 10).unwrap();
        assert_eq!(found.of(12), [(own_path(), SocketName::runtime(12, 34))]);
        assert_eq!(found.by_pid.len(), 1);

        let text = "head\n".to_owned() + &line("/tmp/dotnet-diagnostic-1-2-socket").repeat(10);
        assert_eq!(read_bound(text.as_bytes(), 10).unwrap().of(1).len(), 10);
        assert!(read_bound(text.as_bytes(), 9).is_none());
    }

    fn own_path() -> PathBuf {
        "/run/x/dotnet-diagnostic-12-34-socket".into()
    }

    struct Bytes<'a, I>(&'a mut I);

    impl<I: Iterator<Item = u8>> Read for Bytes<'_, I> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let mut n = 0;
            for (to, from) in buffer.iter_mut().zip(&mut *self.0) {
                *to = from;
                n += 1;
            }
            Ok(n)
        }
    }

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
