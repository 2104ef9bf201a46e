//! The kernel's own list of bound sockets. What lies in folders: [`listings`](super::listings).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use runtap_transport::linux::path_of;
use runtap_transport::naming::SocketName;

/// More sockets than this in the kernel's table are made by somebody who wants to be in the way.
const MAX_BOUND: usize = 50_000;

/// The listening diagnostics sockets of a network namespace by process id, with the paths that they were bound to.
pub(super) type Bound = HashMap<u32, Vec<(PathBuf, SocketName)>>;

/// The kernel's table of them, whatever TMPDIR their owners have. `None` where the kernel does not tell, and where
/// somebody has made more than [`MAX_BOUND`]: every process is then looked at instead.
pub(super) fn bound(proc_root: &Path) -> Option<Bound> {
    read_bound(BufReader::with_capacity(64 << 10, File::open(proc_root.join("net/unix")).ok()?), MAX_BOUND)
}

/// Line by line, because the table is as long as people have made sockets: what is no diagnostics socket is not kept.
fn read_bound(mut table: impl BufRead, most: usize) -> Option<Bound> {
    /// A path in it has up to 108 bytes, which none of the kernel's escapes makes longer than this.
    const LONGEST: u64 = 1024;
    let (mut found, mut kept) = (Bound::new(), 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = table.by_ref().take(LONGEST).read_until(b'\n', &mut line).ok()?;
        if n == 0 {
            return Some(found);
        }
        if let Some((path, name)) = parse_bound(line.strip_suffix(b"\n").unwrap_or(&line)) {
            kept += 1;
            if kept > most {
                return None;
            }
            found.entry(name.pid).or_default().push((path, name));
        }
    }
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
    use std::io;

    use super::*;

    /// However many sockets somebody makes, those that come behind are seen, or it is known that they may be there.
    #[test]
    fn a_long_table_hides_nobody() {
        let line = |path: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 1 {path}\n");
        let other = line(&format!("/tmp/{}", "x".repeat(100))).into_bytes();
        let own = line("/run/x/dotnet-diagnostic-12-34-socket").into_bytes();
        // 50 MB, and not in memory.
        let many = (0..300_000).map(|_| other.as_slice()).chain([own.as_slice()]);
        let mut lines = many.flatten().copied();
        let table = BufReader::new(Bytes(&mut lines));
        let found = read_bound(table, 10).unwrap();
        assert_eq!(found.get(&12), Some(&vec![(own_path(), SocketName::runtime(12, 34))]));
        assert_eq!(found.len(), 1);

        let text = "head\n".to_owned() + &line("/tmp/dotnet-diagnostic-1-2-socket").repeat(10);
        assert_eq!(read_bound(text.as_bytes(), 10).unwrap()[&1].len(), 10);
        assert_eq!(read_bound(text.as_bytes(), 9), None);
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
