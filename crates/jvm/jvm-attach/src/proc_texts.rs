//! What two files of `/proc/PID` say of a JVM: `maps`, which libraries it has, and `status`, which signals it handles. Pure;
//! the process chooses most of the bytes. Source: `proc(5)`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Paths of one library that are kept: each stands several times in a map.
const MOST_LIBRARIES: usize = 64;
/// What the kernel adds to the path of a file that has no name any more.
const DELETED: &[u8] = b" (deleted)";
/// Signal 3, whose bit is the third.
const SIGQUIT: u64 = 1 << (3 - 1);

/// The C library that a process has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CLibrary {
    /// That of most distributions.
    Glibc,
    /// That of Alpine Linux.
    Musl,
    /// None that is known.
    #[default]
    Unknown,
}

/// The make of a Java virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    /// `OpenJDK`'s, and whatever is built on it.
    HotSpot,
    /// Eclipse's. It has a `libjvm.so`, too.
    OpenJ9,
}

/// What a memory map says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// `None`: no Java virtual machine.
    pub(crate) make: Option<Make>,
    pub(crate) c_library: CLibrary,
    /// The paths of the libraries that were asked for, each once, as the process has loaded them.
    pub(crate) wanted: Vec<PathBuf>,
}

impl Mapped {
    /// Takes a map apart. `wanted`: how the names of further libraries begin; none without any.
    pub(crate) fn parse(maps: &[u8], wanted: &str) -> Self {
        let mut found = Self::default();
        let mut last: &[u8] = &[];
        for line in maps.split(|byte| *byte == b'\n') {
            let Some(path) = path(line).filter(|path| *path != last) else { continue };
            last = path;
            let path = path.strip_suffix(DELETED).unwrap_or(path);
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let begins = |with: [&[u8]; 2]| with.iter().any(|start| name.starts_with(start));
            if begins([b"libj9vm", b"libj9jit"]) {
                found.make = Some(Make::OpenJ9);
            } else if name == b"libjvm.so" {
                found.make.get_or_insert(Make::HotSpot);
            } else if begins([b"ld-musl-", b"libc.musl-"]) {
                // Programs for glibc run on musl by a library that has its name.
                found.c_library = CLibrary::Musl;
            } else if begins([b"libc.so.6", b"libc-2."]) && found.c_library == CLibrary::Unknown {
                found.c_library = CLibrary::Glibc;
            }
            if !wanted.is_empty() && name.starts_with(wanted.as_bytes()) {
                let path = Path::new(OsStr::from_bytes(path));
                if found.wanted.len() < MOST_LIBRARIES && !found.wanted.iter().any(|known| known == path) {
                    found.wanted.push(path.to_owned());
                }
            }
        }
        found
    }
}

/// `7f0c-7f0d r-xp 00000000 fe:00 1234    /usr/lib/libc.so.6`
fn path(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|byte| *byte == b'/')?;
    // A path has five fields before it, of which none has a slash.
    line.get(at..)
}

/// What becomes of SIGQUIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnQuit {
    /// The process handles it.
    Handled,
    /// Nothing happens.
    Ignored,
    /// The process ends.
    Deadly,
}

/// By `/proc/PID/status`.
pub(crate) fn on_quit(status: &[u8]) -> Option<OnQuit> {
    let set = |key: &[u8]| {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(key))?;
        u64::from_str_radix(str::from_utf8(line).ok()?.trim(), 16).ok()
    };
    let (caught, ignored) = (set(b"SigCgt:")?, set(b"SigIgn:")?);
    Some(match (caught & SIGQUIT, ignored & SIGQUIT) {
        (0, 0) => OnQuit::Deadly,
        (0, _) => OnQuit::Ignored,
        _ => OnQuit::Handled,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "5581b0a00000-5581b0a01000 r--p 00000000 fe:00 1 /opt/my jdk/bin/java
7f00a0000000-7f00a1000000 r-xp 00000000 fe:00 2                    /opt/my jdk/lib/server/libjvm.so
7f00a1000000-7f00a1100000 rw-p 00000000 fe:00 2                    /opt/my jdk/lib/server/libjvm.so
7f00a2000000-7f00a2100000 rw-p 00000000 00:00 0 
7f00a3000000-7f00a3100000 r-xp 00000000 00:2b 77                   /tmp/runtap-1/librt-a.so (deleted)
7f00a4000000-7f00a4100000 r--p 00000000 00:2b 77                   /tmp/runtap-1/librt-a.so (deleted)
7f00a5000000-7f00a5100000 r-xp 00000000 fe:00 3                    /usr/lib/x86_64-linux-gnu/libc.so.6
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn a_map_says_what_runs() {
        let hotspot = Mapped {
            make: Some(Make::HotSpot),
            c_library: CLibrary::Glibc,
            wanted: vec!["/tmp/runtap-1/librt-a.so".into()],
        };
        assert_eq!(Mapped::parse(MAPS.as_bytes(), "librt-"), hotspot);
        assert_eq!(Mapped::parse(MAPS.as_bytes(), "").wanted, Vec::<PathBuf>::new());
        let alpine = MAPS.replace("/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/ld-musl-x86_64.so.1");
        let alpine = Mapped::parse(alpine.as_bytes(), "");
        assert_eq!((alpine.make, alpine.c_library), (Some(Make::HotSpot), CLibrary::Musl));
        let j9 = [MAPS, "0-1 r-xp 0 0:0 1 /opt/jdk/lib/default/libj9vm29.so\n", MAPS].concat();
        assert_eq!(Mapped::parse(j9.as_bytes(), "").make, Some(Make::OpenJ9));
        // A folder of that name is no library.
        let folder = Mapped::parse(b"0-1 r-xp 0 0:0 1 /home/libjvm.so/data", "");
        assert_eq!(folder, Mapped::default());
    }

    #[test]
    fn what_sigquit_does() {
        let status = |caught: &str, ignored: &str| {
            on_quit(format!("Name:\tx\nSigIgn:\t{ignored}\nSigCgt:\t{caught}\n").as_bytes())
        };
        assert_eq!(status("2000000101005ccf", "0000000000000000"), Some(OnQuit::Handled));
        assert_eq!(status("2000000101005ccb", "0000000000000000"), Some(OnQuit::Deadly), "-Xrs");
        assert_eq!(status("0000000000000000", "0000000000000004"), Some(OnQuit::Ignored), "nohup");
        assert_eq!(status("x", "0"), None);
        assert_eq!(on_quit(b"SigCgt:\t4\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(bytes: Vec<u8>, at in 0..MAPS.len()) {
            let mut damaged = MAPS.as_bytes().to_vec();
            damaged.splice(at..at, bytes.iter().copied());
            let mapped = Mapped::parse(&damaged, "librt-");
            prop_assert!(mapped.wanted.len() <= MOST_LIBRARIES);
            let _ = Mapped::parse(&bytes, "l");
            let _ = on_quit(&bytes);
        }
    }
}
