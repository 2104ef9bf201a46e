//! Parsing of two files in `/proc/PID`: `maps` (the libraries of a JVM) and `status` (the signals that it handles).
//! The process controls most of the bytes. Source: `proc(5)`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum number of library paths that are kept.
const MAX_LIBRARIES: usize = 64;
/// The suffix that the kernel adds to the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";
/// The bit of SIGQUIT, which is signal 3.
const SIGQUIT: u64 = 1 << (3 - 1);

/// The C library of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CLibrary {
    /// The GNU C library, used by most distributions.
    Glibc,
    /// musl, used by Alpine Linux.
    Musl,
    /// An unknown C library.
    #[default]
    Unknown,
}

/// An implementation of the Java virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JvmKind {
    /// `HotSpot`, of `OpenJDK` and its derivatives.
    HotSpot,
    /// Eclipse `OpenJ9`, which has a `libjvm.so` too.
    OpenJ9,
}

/// The parsed memory map of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryMap {
    /// The JVM; `None` if the process has not mapped one.
    pub(crate) jvm: Option<JvmKind>,
    pub(crate) c_library: CLibrary,
    /// The paths of the requested libraries as they were loaded, without duplicates.
    pub(crate) libraries: Vec<PathBuf>,
}

impl MemoryMap {
    /// Parses a map. `library` is the prefix of the names of requested libraries; empty for none.
    pub(crate) fn parse(maps: &[u8], library: &str) -> Self {
        let mut found = Self::default();
        let mut last: &[u8] = &[];
        for line in maps.split(|byte| *byte == b'\n') {
            let Some(path) = path(line).filter(|path| *path != last) else { continue };
            last = path;
            let path = path.strip_suffix(DELETED).unwrap_or(path);
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let starts_with = |prefixes: [&[u8]; 2]| prefixes.iter().any(|prefix| name.starts_with(prefix));
            if starts_with([b"libj9vm", b"libj9jit"]) {
                found.jvm = Some(JvmKind::OpenJ9);
            } else if name == b"libjvm.so" {
                found.jvm.get_or_insert(JvmKind::HotSpot);
            } else if starts_with([b"ld-musl-", b"libc.musl-"]) {
                // On musl, a compatibility library may have the name of glibc, so musl takes precedence.
                found.c_library = CLibrary::Musl;
            } else if starts_with([b"libc.so.6", b"libc-2."]) && found.c_library == CLibrary::Unknown {
                found.c_library = CLibrary::Glibc;
            }
            if !library.is_empty() && name.starts_with(library.as_bytes()) {
                let path = Path::new(OsStr::from_bytes(path));
                if found.libraries.len() < MAX_LIBRARIES && !found.libraries.iter().any(|known| known == path)
                {
                    found.libraries.push(path.to_owned());
                }
            }
        }
        found
    }
}

/// Returns the path in a line such as `7f0c-7f0d r-xp 00000000 fe:00 1234    /usr/lib/libc.so.6`.
fn path(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|byte| *byte == b'/')?;
    // None of the five fields before the path contains a slash.
    line.get(at..)
}

/// The effect of SIGQUIT on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnQuit {
    /// The process handles it.
    Handled,
    /// The process ignores it.
    Ignored,
    /// The process is terminated.
    Deadly,
}

/// Returns the effect of SIGQUIT according to `/proc/PID/status`; `None` if that is malformed.
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
    fn a_map_shows_the_jvm_and_the_libraries() {
        let hotspot = MemoryMap {
            jvm: Some(JvmKind::HotSpot),
            c_library: CLibrary::Glibc,
            libraries: vec!["/tmp/runtap-1/librt-a.so".into()],
        };
        assert_eq!(MemoryMap::parse(MAPS.as_bytes(), "librt-"), hotspot);
        assert_eq!(MemoryMap::parse(MAPS.as_bytes(), "").libraries, Vec::<PathBuf>::new());
        let alpine = MAPS.replace("/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/ld-musl-x86_64.so.1");
        let alpine = MemoryMap::parse(alpine.as_bytes(), "");
        assert_eq!((alpine.jvm, alpine.c_library), (Some(JvmKind::HotSpot), CLibrary::Musl));
        let j9 = [MAPS, "0-1 r-xp 0 0:0 1 /opt/jdk/lib/default/libj9vm29.so\n", MAPS].concat();
        assert_eq!(MemoryMap::parse(j9.as_bytes(), "").jvm, Some(JvmKind::OpenJ9));
        // A folder with that name is not a library.
        let folder = MemoryMap::parse(b"0-1 r-xp 0 0:0 1 /home/libjvm.so/data", "");
        assert_eq!(folder, MemoryMap::default());
    }

    #[test]
    fn the_effect_of_sigquit_is_in_the_status() {
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
        fn any_text_is_parsed(bytes: Vec<u8>, at in 0..MAPS.len()) {
            let mut damaged = MAPS.as_bytes().to_vec();
            damaged.splice(at..at, bytes.iter().copied());
            let mapped = MemoryMap::parse(&damaged, "librt-");
            prop_assert!(mapped.libraries.len() <= MAX_LIBRARIES);
            let _ = MemoryMap::parse(&bytes, "l");
            let _ = on_quit(&bytes);
        }
    }
}
