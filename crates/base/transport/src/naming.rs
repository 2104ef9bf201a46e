//! Names of diagnostics sockets and pipes, and their directory. The functions do no I/O.
//!
//! Source: "Naming and Location Conventions" of the Diagnostic IPC specification, and the behavior of .NET 8, 9 and 10.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The parsed file name of a diagnostics socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketName {
    /// Process id in the pid namespace of the process itself.
    pub pid: u32,
    /// For a runtime, the start time of the process in the unit of the operating system (Linux: clock ticks since boot;
    /// macOS: seconds). For a router, seconds since 1970.
    pub key: u64,
    /// The kind of process that created the socket.
    pub kind: SocketKind,
}

/// The kind of process that created a diagnostics socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SocketKind {
    /// A runtime.
    Runtime,
    /// A `dotnet-dsrouter`, which represents a runtime elsewhere.
    Router,
}

impl SocketName {
    /// Creates the name of a runtime's socket.
    pub fn runtime(pid: u32, key: u64) -> Self {
        Self { pid, key, kind: SocketKind::Runtime }
    }

    /// Parses a file name: `dotnet-diagnostic-PID-KEY-socket` or `dotnet-diagnostic-dsrouter-PID-KEY-socket`. `None`
    /// for other names.
    pub fn parse(file_name: &str) -> Option<Self> {
        Self::parse_bytes(file_name.as_bytes())
    }

    /// Like [`parse`](Self::parse), for bytes: directories may contain thousands of entries, most of them with other
    /// names.
    pub fn parse_bytes(file_name: &[u8]) -> Option<Self> {
        let parts = file_name.strip_prefix(b"dotnet-diagnostic-")?.strip_suffix(b"-socket")?;
        let (kind, parts) = match parts.strip_prefix(b"dsrouter-") {
            Some(parts) => (SocketKind::Router, parts),
            None => (SocketKind::Runtime, parts),
        };
        let dash = parts.iter().position(|b| *b == b'-')?;
        let (pid, key) = (parts.get(..dash)?, parts.get(dash + 1..)?);
        Some(Self { pid: decimal(pid)?.try_into().ok().filter(|pid| *pid != 0)?, key: decimal(key)?, kind })
    }
}

/// Maximum length of a socket path: `sun_path` has 108 bytes, the last of which is zero.
pub const LONGEST_SOCKET_PATH: usize = 107;

/// Returns the path at which a runtime binds its socket in a directory. Runtimes truncate paths that do not fit into a
/// socket address, including the file name (behavior of .NET 8, 9 and 10). `None` if nothing of the file name remains.
#[cfg(unix)]
pub fn bound_path(directory: &Path, name: SocketName) -> Option<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut path = directory.as_os_str().as_bytes().to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    if path.len() >= LONGEST_SOCKET_PATH {
        return None;
    }
    path.extend_from_slice(name.to_string().as_bytes());
    path.truncate(LONGEST_SOCKET_PATH);
    Some(std::ffi::OsString::from_vec(path).into())
}

/// Returns the remainder of a runtime's process id in a truncated socket name (see [`bound_path`]): its first digits,
/// followed by a dash if they are complete. `None` if the name is complete or not that of a runtime's socket.
pub fn truncated_pid(path: &[u8]) -> Option<&[u8]> {
    const PREFIX: &[u8] = b"dotnet-diagnostic-";
    let name = path.get(path.iter().rposition(|byte| *byte == b'/')? + 1..)?;
    if path.len() != LONGEST_SOCKET_PATH || name.is_empty() || SocketName::parse_bytes(name).is_some() {
        return None;
    }
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return PREFIX.starts_with(name).then_some(&[]);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits) {
        None => Some(rest),
        Some(b'-') => rest.get(..=digits),
        Some(_) => None,
    }
}

/// Parses decimal digits without a sign, which `parse` would accept.
fn decimal(text: &[u8]) -> Option<u64> {
    let digit = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, key, kind } = self;
        match kind {
            SocketKind::Runtime => write!(f, "dotnet-diagnostic-{pid}-{key}-socket"),
            SocketKind::Router => write!(f, "dotnet-diagnostic-dsrouter-{pid}-{key}-socket"),
        }
    }
}

/// Returns the name of a runtime's pipe on Windows, without `\\.\pipe\`.
pub fn windows_pipe(pid: u32) -> String {
    format!("dotnet-diagnostic-{pid}")
}

/// The environment variable with the diagnostic ports of a process.
pub const PORTS: &str = "DOTNET_DiagnosticPorts";

/// Returns a port's name in `DOTNET_DiagnosticPorts`: its path or, on Windows, the name of the pipe without
/// `\\.\pipe\`.
pub fn port_address(path: &Path) -> &Path {
    path.to_str().and_then(|path| path.strip_prefix(r"\\.\pipe\")).map_or(path, Path::new)
}

/// Returns the name of a router's pipe on Windows, without `\\.\pipe\`.
pub fn windows_router_pipe(pid: u32) -> String {
    format!("dotnet-diagnostic-dsrouter-{pid}")
}

/// Returns the process id in the name of a runtime's pipe on Windows. `None` for other names.
pub fn parse_windows_pipe(name: &str) -> Option<u32> {
    decimal(name.strip_prefix("dotnet-diagnostic-")?.as_bytes())?.try_into().ok()
}

/// Returns the process id in the name of a pipe of a runtime or a router (`dotnet-diagnostic-dsrouter-PID`). `None` for
/// other names.
pub fn owner_of_pipe(name: &str) -> Option<u32> {
    let router = name.strip_prefix("dotnet-diagnostic-dsrouter-");
    router.map_or_else(|| parse_windows_pipe(name), |pid| decimal(pid.as_bytes())?.try_into().ok())
}

/// Returns the directory in which a runtime creates its socket: `TMPDIR`, or `/tmp` if it is unset or empty. A relative
/// `TMPDIR` is relative to the working directory of the process.
pub fn temp_dir(tmpdir: Option<&OsStr>) -> PathBuf {
    match tmpdir {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => Path::new("/tmp").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_without_the_pipe_prefix() {
        assert_eq!(port_address(Path::new(r"\\.\pipe\grün")), Path::new("grün"));
        assert_eq!(port_address(Path::new("/tmp/p")), Path::new("/tmp/p"));
    }

    #[test]
    #[cfg(unix)]
    fn a_long_path_is_truncated_like_runtimes_do() {
        let name = SocketName::runtime(31442, 230_100);
        let bound = |length| bound_path(Path::new(&format!("/{}", "d".repeat(length - 1))), name);
        let file_name = |length: usize| {
            let path = bound(length)?;
            assert!(path.as_os_str().len() <= LONGEST_SOCKET_PATH);
            let left = truncated_pid(path.as_os_str().as_encoded_bytes()).map(<[u8]>::to_vec);
            let left = left.map(|left| String::from_utf8(left).unwrap());
            Some((path.file_name()?.to_str()?.to_owned(), left))
        };
        let of = |name: &str, left: Option<&str>| Some((name.to_owned(), left.map(str::to_owned)));
        assert_eq!(file_name(60), of("dotnet-diagnostic-31442-230100-socket", None));
        assert_eq!(file_name(71), of("dotnet-diagnostic-31442-230100-sock", Some("31442-")));
        assert_eq!(file_name(75), of("dotnet-diagnostic-31442-230100-", Some("31442-")));
        assert_eq!(file_name(84), of("dotnet-diagnostic-3144", Some("3144")));
        assert_eq!(file_name(90), of("dotnet-diagnosti", Some("")));
        assert_eq!(bound(107), None);
        assert_eq!(bound_path(Path::new("/tmp/"), name), Some(Path::new("/tmp").join(name.to_string())));
        let other = format!("/{}/dotnet-other", "d".repeat(93));
        assert_eq!((other.len(), truncated_pid(other.as_bytes())), (LONGEST_SOCKET_PATH, None));
    }

    #[test]
    fn names_round_trip() {
        for name in [
            SocketName::runtime(1, 0),
            SocketName::runtime(4_294_967_295, u64::MAX),
            SocketName { pid: 77, key: 1_763_000_000, kind: SocketKind::Router },
        ] {
            assert_eq!(SocketName::parse(&name.to_string()), Some(name));
        }
        assert_eq!(
            SocketName::parse("dotnet-diagnostic-1234-5678-socket"),
            Some(SocketName::runtime(1234, 5678))
        );
    }

    #[test]
    fn other_names_are_rejected() {
        for name in [
            "",
            "dotnet-diagnostic-",
            "dotnet-diagnostic--socket",
            "dotnet-diagnostic-1-socket",
            "dotnet-diagnostic-1--socket",
            "dotnet-diagnostic--1-socket",
            "dotnet-diagnostic-0-1-socket",
            "dotnet-diagnostic-+1-1-socket",
            "dotnet-diagnostic-1-2-3-socket",
            "dotnet-diagnostic-4294967296-1-socket",
            "dotnet-diagnostic-1-18446744073709551616-socket",
            "dotnet-diagnostic-1-2-socket.bak",
            "dotnet-diagnostic-dsrouter-1-socket",
            "clr-debug-pipe-1-2-in",
        ] {
            assert_eq!(SocketName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn windows_pipes() {
        assert_eq!(parse_windows_pipe(&windows_pipe(4711)), Some(4711));
        assert_eq!(parse_windows_pipe("dotnet-diagnostic-dsrouter-1"), None);
        assert_eq!(parse_windows_pipe("dotnet-diagnostic-"), None);
        assert_eq!(owner_of_pipe("dotnet-diagnostic-4711"), Some(4711));
        assert_eq!(owner_of_pipe("dotnet-diagnostic-dsrouter-4711"), Some(4711));
        assert_eq!(owner_of_pipe("dotnet-diagnostic-dsrouter-"), None);
        assert_eq!(owner_of_pipe("my-port"), None);
    }

    #[test]
    fn an_empty_tmpdir_is_ignored() {
        assert_eq!(temp_dir(None), Path::new("/tmp"));
        assert_eq!(temp_dir(Some(OsStr::new(""))), Path::new("/tmp"));
        assert_eq!(temp_dir(Some(OsStr::new("x/"))), Path::new("x"));
    }
}
