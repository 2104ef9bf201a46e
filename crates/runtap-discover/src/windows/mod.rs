//! Discovery on Windows: every runtime has a named pipe with its process id in the name, and the system lists its pipes
//! as a folder. Nothing else of a process is known here; its runtime says the rest.
//!
//! What the names mean is tested on Linux; on Windows it was never run.
//! Source: "Naming and Location Conventions" of the specification.

use std::fs;
use std::path::Path;

use runtap_transport::naming::{SocketName, parse_windows_pipe, windows_pipe};
use runtap_transport::{Socket, SocketState};

use crate::{Kind, NotFound, Process, Reason};

/// The folder of all pipes.
const PIPES: &str = r"\\.\pipe\";

/// The .NET processes, by pid.
pub(super) fn processes() -> Vec<Process> {
    of_names(
        fs::read_dir(PIPES)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|pipe| pipe.file_name().into_string().ok()),
    )
}

/// The .NET process `pid`, or what stands in the way.
pub(super) fn process(pid: u32) -> Result<Process, NotFound> {
    let found = processes().into_iter().find(|process| process.pid == pid);
    found.ok_or_else(|| NotFound {
        pid,
        reason: Reason::NotDotnet,
        looked_at: vec![format!("{PIPES}{}: not there", windows_pipe(pid))],
    })
}

fn of_names(names: impl Iterator<Item = String>) -> Vec<Process> {
    let mut pids: Vec<u32> = names.filter_map(|name| parse_windows_pipe(&name)).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().map(describe).collect()
}

fn describe(pid: u32) -> Process {
    // A pipe goes with its process: it is never stale.
    let path = Path::new(PIPES).join(windows_pipe(pid));
    Process {
        pid,
        ns_pid: pid,
        kind: Kind::Dotnet,
        start_time: 0,
        uid: 0,
        user: String::new(),
        comm: String::new(),
        exe: None,
        command_line: Vec::new(),
        sockets: vec![Socket::new(path, SocketName::runtime(pid, 0), SocketState::Matching)],
        other_mount_namespace: false,
        other_pid_namespace: false,
        container: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_by_the_names_of_pipes() {
        let names = [
            "dotnet-diagnostic-42",
            "lsass",
            "dotnet-diagnostic-7",
            "dotnet-diagnostic-",
            "dotnet-diagnostic-42",
        ];
        let found = of_names(names.into_iter().map(str::to_owned));
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [7, 42]);
        assert!(found[1].sockets[0].path.to_str().unwrap().ends_with("dotnet-diagnostic-42"));
    }

    #[test]
    fn elsewhere_there_are_no_pipes() {
        assert_eq!(processes(), []);
        assert_eq!(process(1).unwrap_err().reason, Reason::NotDotnet);
    }
}
