//! Names of diagnostics sockets and pipes, and the directory they are in. Pure functions, for every system.
//!
//! Source: "Naming and Location Conventions" of the Diagnostic IPC specification, and .NET 8, 9 and 10 as measured.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file name of a diagnostics socket, in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketName {
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// A runtime's: its start time, as the system counts it (Linux: clock ticks since boot; macOS: seconds).
    /// A router's: seconds since 1970.
    pub key: u64,
    /// Whose socket it is.
    pub kind: SocketKind,
}

/// Whose socket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SocketKind {
    /// A runtime's own.
    Runtime,
    /// That of a `dotnet-dsrouter`, which stands for a runtime elsewhere.
    Router,
}

impl SocketName {
    /// The name of a runtime's socket.
    pub fn runtime(pid: u32, key: u64) -> Self {
        Self { pid, key, kind: SocketKind::Runtime }
    }

    /// Takes a file name apart: `dotnet-diagnostic-PID-KEY-socket` or `dotnet-diagnostic-dsrouter-PID-KEY-socket`.
    pub fn parse(file_name: &str) -> Option<Self> {
        Self::parse_bytes(file_name.as_bytes())
    }

    /// The same for a name as a folder has it: one may hold thousands, and most of another kind.
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

/// The longest path of a socket: `sun_path` has 108 bytes, the last of which is zero.
pub const LONGEST_SOCKET_PATH: usize = 107;

/// Where a runtime binds its socket in a directory. It writes the path into a buffer as long as a socket address: a longer
/// path is truncated, and the socket has the truncated name (.NET 8, 9 and 10 as measured). `None` if nothing of the name
/// remains.
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

/// What is left of a runtime's process id in the truncated name of a socket ([`bound_path`]): its first digits, with the
/// dash behind them if they are complete. `None` for a name that is none, or is complete.
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

/// Digits only: no sign, which `parse` would take.
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

/// The name of a runtime's pipe on Windows, without `\\.\pipe\`.
pub fn windows_pipe(pid: u32) -> String {
    format!("dotnet-diagnostic-{pid}")
}

/// How `DOTNET_DiagnosticPorts` names a port: by its path, on Windows by the name of the pipe alone.
pub fn port_address(path: &Path) -> &Path {
    path.to_str().and_then(|path| path.strip_prefix(r"\\.\pipe\")).map_or(path, Path::new)
}

/// The name of a router's pipe on Windows, without `\\.\pipe\`.
pub fn windows_router_pipe(pid: u32) -> String {
    format!("dotnet-diagnostic-dsrouter-{pid}")
}

/// The process id in the name of a runtime's pipe on Windows.
pub fn parse_windows_pipe(name: &str) -> Option<u32> {
    decimal(name.strip_prefix("dotnet-diagnostic-")?.as_bytes())?.try_into().ok()
}

/// The process that a pipe is named after: a runtime's, or a router's (`dotnet-diagnostic-dsrouter-PID`). `None` for other
/// names.
pub fn owner_of_pipe(name: &str) -> Option<u32> {
    let router = name.strip_prefix("dotnet-diagnostic-dsrouter-");
    router.map_or_else(|| parse_windows_pipe(name), |pid| decimal(pid.as_bytes())?.try_into().ok())
}

/// Where a runtime puts its socket: TMPDIR as it is, `/tmp` if that is not set or empty. A relative TMPDIR is
/// relative to the process's working directory.
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
    fn a_pipe_is_named_without_its_folder() {
        assert_eq!(port_address(Path::new(r"\\.\pipe\grün")), Path::new("grün"));
        assert_eq!(port_address(Path::new("/tmp/p")), Path::new("/tmp/p"));
    }

    #[test]
    #[cfg(unix)]
    fn a_long_path_is_truncated_as_runtimes_do() {
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
    fn names_come_back() {
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
    fn other_names_are_no_sockets() {
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
    fn an_empty_tmpdir_is_none() {
        assert_eq!(temp_dir(None), Path::new("/tmp"));
        assert_eq!(temp_dir(Some(OsStr::new(""))), Path::new("/tmp"));
        assert_eq!(temp_dir(Some(OsStr::new("x/"))), Path::new("x"));
    }
}
